/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * tanh of f32 as a polynomial in each of 16 pieces of the positive axis, whose coefficients are read from registers by
 * permutation; see vec_pieces_f64.h for the rows. Points were selected whose f(c) is within 2^-6 of a unit in the last place
 * of an f32, where there are such points. Errors are below 0.72 units of the last place of the result.
 */
#ifndef TENSOR_VEC_PIECES_F32_H
#define TENSOR_VEC_PIECES_F32_H

#define PIECES_F32 16

/* The pieces are those of tanh_pieces, up to 9.006, where the last one begins, in which tanh is 1. */
static const float tanh_pieces_f32[9][PIECES_F32] = {
	{ 0x1.418f9p0f, 0x1.c1830ap0f, 0x1.20d44p1f, 0x1.60be98p1f, 0x1.c0d38ap1f, 0x1.1072bp2f,
	  0x1.571aap2f, 0x1.a21cacp2f, 0x1.03ae14p3f, 0x1.20a4p3f, 0x1.20a4p3f, 0x1.20a4p3f, 0,
	  0x1.8619eep-2f, 0x1.431c8cp-1f, 0x1.c308eap-1f },
	{ 0x1.b3312ap-1f, 0x1.e25396p-1f, 0x1.f4e482p-1f, 0x1.fbe154p-1f, 0x1.ff143cp-1f,
	  0x1.ffcb6ap-1f, 0x1.fffa38p-1f, 0x1.ffff72p-1f, 0x1.fffffap-1f, 0x1p0f, 0x1p0f, 0x1p0f, 0,
	  0x1.7443acp-2f, 0x1.1e1a2ep-1f, 0x1.69eca6p-1f },
	{ -0x1.29200ep-8f, -0x1.f6de82p-10f, -0x1.9f6118p-14f, 0x1.b956aep-14f, 0x1.595ec2p-15f,
	  0x1.bdaca8p-18f, 0x1.dd22ecp-21f, 0x1.efb7c8p-24f, 0x1.a0727ap-28f, 0, 0, 0,
	  -0x1.683656p-5f, 0x1.c0da96p-7f, 0x1.e0823cp-6f, 0x1.5b7e4cp-7f },
	{ 0x1.e83566p-7f, 0x1.055a1cp-9f, -0x1.7c2b2p-11f, -0x1.1bba98p-11f, -0x1.449e2p-13f,
	  -0x1.1b1b32p-15f, -0x1.076c18p-18f, -0x1.a056dcp-22f, -0x1.310daap-26f, 0, 0, 0,
	  -0x1.2e144p-8f, -0x1.188d26p-4f, -0x1.75644ap-6f, 0x1.b88f3cp-7f },
	{ -0x1.318676p-6f, 0x1.ed87f2p-9f, 0x1.03824ap-8f, 0x1.edf84ap-10f, 0x1.e8ed9ep-12f,
	  0x1.be1bbap-14f, 0x1.8c0922p-17f, 0x1.2e6138p-20f, 0x1.8c9bp-25f, 0, 0, 0, 0x1.12e4e6p-3f,
	  0x1.090f6p-6f, -0x1.cab11p-5f, -0x1.de2bb6p-5f },
	{ -0x1.af46cp-7f, -0x1.7f961ap-6f, -0x1.8f936cp-7f, -0x1.4a9faap-8f, -0x1.35ffacp-10f,
	  -0x1.17c388p-12f, -0x1.ed3f1ap-16f, -0x1.7a75dp-19f, -0x1.fc3572p-24f, 0, 0, 0,
	  -0x1.611ae2p-14f, 0x1.5959ep-3f, 0x1.16f3a8p-3f, 0x1.e3cd54p-5f },
	{ 0x1.ba5accp-4f, 0x1.fee99p-5f, 0x1.b698cp-6f, 0x1.55b98p-7f, 0x1.3860e8p-9f,
	  0x1.1811f6p-11f, 0x1.ed3ce6p-15f, 0x1.7aab4cp-18f, 0x1.007494p-22f, 0, 0, 0,
	  -0x1.55545ep-2f, -0x1.658cfcp-3f, -0x1.db226cp-7f, 0x1.54e6eep-4f },
	{ -0x1.e31bf4p-3f, -0x1.b24c88p-4f, -0x1.57f42cp-5f, -0x1.047e7cp-6f, -0x1.d643p-9f,
	  -0x1.a46eccp-11f, -0x1.71fa36p-14f, -0x1.1bffcp-17f, -0x1.802574p-22f, 0, 0, 0,
	  -0x1.013b2p-24f, -0x1.4310c8p-2f, -0x1.898898p-2f, -0x1.6a272p-2f },
	{ 0x1.1c2fe2p-2f, 0x1.cd049p-4f, 0x1.5f94c2p-5f, 0x1.069b6ep-6f, 0x1.d71b6ep-9f,
	  0x1.a49a6p-11f, 0x1.71fe9ep-14f, 0x1.1bffa8p-17f, 0x1.80025p-22f, 0, 0, 0,
	  0x1.58f058p-33f, 0x1.bc5568p-1f, 0x1.6020cp-1f, 0x1.00295cp-1f },
};

/* The entries of a row that the lowest 4 bits of each lane of `at` select. */
static inline vec_f32 vec_entry_f32(const float *row, __m512i at)
{
	return (vec_f32)_mm512_permutexvar_ps(at, _mm512_loadu_ps(row));
}

/* The function whose pieces are in the table, for |x| within them; `at` selects the pieces. */
static inline vec_f32 vec_pieces_f32(const float (*table)[PIECES_F32], int rows, vec_f32 x,
				     __m512i at)
{
	vec_f32 size = (vec_f32)_mm512_abs_ps((__m512)x), c = vec_entry_f32(table[0], at);
	vec_f32 t = size - c, p = vec_entry_f32(table[2], at), y;

#pragma GCC unroll 16
	for (int i = 3; i < rows; i++)
		p = p * t + vec_entry_f32(table[i], at);
	y = vec_select_f32(c == 0, size, vec_entry_f32(table[1], at)) + t * p;
	/* The sign of x: bits of y where the mask is 0. */
	return (vec_f32)_mm512_ternarylogic_epi32((__m512i)y, _mm512_set1_epi32(INT32_MIN),
						  (__m512i)x, 0xb8);
}

#endif
