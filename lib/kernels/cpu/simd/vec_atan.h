/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * atan on vectors of AVX-512, atan_v32() and atan_v64(): a polynomial in each of 16 pieces of [0, 1], whose coefficients are read
 * from registers by permutation, and above 1 the complement of atan(1 / x). Piece i is around i / 15. A table has rows as in
 * vec_pieces_f64.h: a point c of each piece, f(c), and coefficients, highest power of t = x - c first, of (f(c + t) - f(c)) / t - 1. Errors
 * are below 0.6 ulp.
 */
#ifndef TENSOR_VEC_ATAN_H
#define TENSOR_VEC_ATAN_H

#include "kernels/cpu/simd/vec_trig.h"

static const double atan_table_v64[11][TURNS] = {
	{ 0, 0x1.fcf492p-5, 0x1.162d1p-3, 0x1.a46529p-3, 0x1.12800cp-2, 0x1.5a8de5p-2,
	  0x1.9daa864p-2, 0x1.d871acp-2, 0x1.0f2599ep-1, 0x1.31ae90ap-1, 0x1.546ed5ep-1,
	  0x1.776f7d2p-1, 0x1.9a677b8p-1, 0x1.bba1636p-1, 0x1.e071768p-1, 0x1.fccba58p-1 },
	{ 0, 0x1.fc4d5141625efp-5, 0x1.147be76fcc7cbp-3, 0x1.9ea2addaba937p-3, 0x1.0c31d9a65e157p-2,
	  0x1.4e2a0971463aap-2, 0x1.892394f45bd6p-2, 0x1.baa4f03cff952p-2, 0x1.f2b8eca38d23ep-2,
	  0x1.1393bad5cd664p-1, 0x1.2c6ef8e558216p-1, 0x1.43f2779b337c1p-1, 0x1.59f51631140d8p-1,
	  0x1.6d8e3fee7c774p-1, 0x1.81d96806f3c24p-1, 0x1.90843eba46596p-1 },
	{ 0x1.c62e77a6e9d7ap-4, 0x1.70dc66c405a6ap-4, 0x1.342fa1263abd5p-5, -0x1.3c92a090b3d55p-6,
	  -0x1.d28b25561d3c2p-5, -0x1.122e4d3343159p-4, -0x1.bed2a13119eedp-5,
	  -0x1.0a13449ed46bfp-5, -0x1.648ece76573cdp-7, 0x1.0d719a35ae23ep-8, 0x1.7bd536fe191c8p-7,
	  0x1.b42e4f5eef83p-7, 0x1.7ff09c91b9da2p-7, 0x1.21a1b230a07f3p-7, 0x1.8105526b226adp-8,
	  0x1.ca25aa02e9b87p-9 },
	{ -0x1.7c4eace76473bp-134, 0x1.df67a3a61616ep-5, 0x1.a2e52ad2c30eep-4, 0x1.b11dd3574a64dp-4,
	  0x1.4f684b32cc614p-4, 0x1.501cd13fa783bp-5, 0x1.3da9ebe430478p-8, -0x1.25c3886e904b3p-6,
	  -0x1.047c0efecb242p-5, -0x1.1584d50896cb2p-5, -0x1.d93291dbed7f6p-6,
	  -0x1.5837cc9da5554p-6, -0x1.b12dc6698a6cfp-7, -0x1.d8487e5700a38p-8,
	  -0x1.4a673aee819f3p-9, -0x1.ad4c08ef99fe2p-13 },
	{ -0x1.24922fc518685p-3, -0x1.05d78f3eb24fap-3, -0x1.41825f39a3f1dp-4,
	  -0x1.3600b10a3ba07p-6, 0x1.dc7f8919f5a74p-6, 0x1.0607485f4be75p-4, 0x1.35ccd8802ce3ep-4,
	  0x1.27cb5cf500b05p-4, 0x1.db1140928569bp-5, 0x1.463d5f5cd6d17p-5, 0x1.719290dd61b93p-6,
	  0x1.2259510eb4f0cp-7, -0x1.cd96959fc53c4p-12, -0x1.7345205a0ee75p-8,
	  -0x1.11ece25503e5ap-7, -0x1.2466174bd42d4p-7 },
	{ 0x1.8d66d0f25f924p-143, -0x1.eaef12ddad547p-5, -0x1.d410764a6f849p-4,
	  -0x1.1aaae0853c713p-3, -0x1.152e843474f75p-3, -0x1.c8964d13ab85fp-4,
	  -0x1.426ed616a6629p-4, -0x1.8ea9e69245abap-5, -0x1.1b1360b0aa4f3p-6, 0x1.7fddbe068e355p-8,
	  0x1.50f8e12d66156p-6, 0x1.c94d7cf04ca95p-6, 0x1.e77e2cd935f78p-6, 0x1.ced5b33ba4cedp-6,
	  0x1.9329d742c4177p-6, 0x1.5bbdbd4643afp-6 },
	{ 0x1.999999979879ap-3, 0x1.824e8ec5c103bp-3, 0x1.317d46b3c6ac2p-3, 0x1.878ca7fbc209ap-4,
	  0x1.63c7ef99ba40ap-5, -0x1.2ffa7d3d3262p-7, -0x1.7fc24416d4d16p-5, -0x1.19901496fbcbap-4,
	  -0x1.4fe0dc023bfadp-4, -0x1.58273fb004761p-4, -0x1.40f8a9cbdaf7ep-4,
	  -0x1.1753f2e5700ecp-4, -0x1.cc9f0ece49a46p-5, -0x1.6f7c2b17d677p-5, -0x1.11b0d5ea9012bp-5,
	  -0x1.a689d1817f224p-6 },
	{ -0x1.c927aaf94dda4p-154, 0x1.f33cec4dc39fp-5, 0x1.fb9492950f206p-4, 0x1.556665fabfec1p-3,
	  0x1.820abd94f3d6p-3, 0x1.8dbc8ac23ac8fp-3, 0x1.7a2e3eba2b33fp-3, 0x1.57b3eb03d504bp-3,
	  0x1.224e991e4ed81p-3, 0x1.d0dd0b8cdd057p-4, 0x1.5f4f7078447abp-4, 0x1.f0b9c0065731bp-5,
	  0x1.4283fd85536b8p-5, 0x1.78986df3654bdp-6, 0x1.25bccc6c969f4p-7, 0x1.a0a28cd1d2442p-11 },
	{ -0x1.55555555554fep-2, -0x1.4d8101ba7a2dap-2, -0x1.313bd00269427p-2,
	  -0x1.0775961e25807p-2, -0x1.b2dac56e14fbdp-3, -0x1.43a8fcf77009bp-3,
	  -0x1.bace79a5afef5p-4, -0x1.1491a3b242c3ap-4, -0x1.9ca31b0d6b90bp-6, 0x1.2f833dbe9a8ep-7,
	  0x1.291a94d3ea9fp-5, 0x1.cc6ff1a060dabp-5, 0x1.1dca13e222da5p-4, 0x1.3e9c7aeb2a633p-4,
	  0x1.51067f16e2c57p-4, 0x1.554af4f46a123p-4 },
	{ 0x1.7d64a1c412d6ep-167, -0x1.f90c860ecd7c7p-5, -0x1.0c305f3239cc9p-3,
	  -0x1.83164dfbfb42p-3, -0x1.dddb0df0a635cp-3, -0x1.16fc80a843bb3p-2, -0x1.31bc758f2dae7p-2,
	  -0x1.4129f1a17fde6p-2, -0x1.4ac0ab7495edp-2, -0x1.4c453966bcea8p-2, -0x1.47648fd301d5p-2,
	  -0x1.3d8fe2797e53dp-2, -0x1.303e9946e74cbp-2, -0x1.21772701a10fep-2,
	  -0x1.0fb6b2ccdff9ap-2, -0x1.019a291ab816p-2 },
	{ 0x1.5ec458342f4c2p-331, -0x1.f7fbc4aa5d913p-9, -0x1.28cc1f510196dp-6,
	  -0x1.4b392e300e8b9p-5, -0x1.129ab4fadb1f2p-4, -0x1.a4edb62e54f12p-4,
	  -0x1.1f5409bfe6fd2p-3, -0x1.676f0d5b0b02ap-3, -0x1.c092cf6e1173ep-3,
	  -0x1.0d16b450e04cbp-2, -0x1.39ed009583709p-2, -0x1.6610bd56d1069p-2,
	  -0x1.9090ea3151c6fp-2, -0x1.b71cb0c651777p-2, -0x1.df7902144ba8fp-2,
	  -0x1.fcc9144e57e4dp-2 },
};

static const float atan_table_v32[7][TURNS] = {
	{ 0, 0x1.1f64p-4f, 0x1.0f3b2p-3f, 0x1.8e828p-3f, 0x1.15cf7p-2f, 0x1.4ee91p-2f,
	  0x1.95c2bp-2f, 0x1.ddcdfp-2f, 0x1.0fa1bp-1f, 0x1.3649fp-1f, 0x1.54dfd8p-1f, 0x1.75883p-1f,
	  0x1.9c9458p-1f, 0x1.be30c8p-1f, 0x1.e028a8p-1f, 0x1.fccba8p-1f },
	{ 0, 0x1.1eebap-4f, 0x1.0da964p-3f, 0x1.899766p-3f, 0x1.0f47cap-2f, 0x1.43ae5cp-2f,
	  0x1.825308p-2f, 0x1.bf0e1cp-2f, 0x1.f37aaap-2f, 0x1.16f5bep-1f, 0x1.2cbd4ep-1f,
	  0x1.42b5p-1f, 0x1.5b476ap-1f, 0x1.6f03acp-1f, 0x1.81b2aep-1f, 0x1.90844p-1f },
	{ 0x1.9931aap-3f, 0x1.7e08d6p-3f, 0x1.34f302p-3f, 0x1.9c48ecp-4f, 0x1.684926p-5f,
	  -0x1.49aa5p-8f, -0x1.6cd768p-5f, -0x1.1f4e1ap-4f, -0x1.50e49ap-4f, -0x1.574e14p-4f,
	  -0x1.4006d6p-4f, -0x1.17aab4p-4f, -0x1.cd8106p-5f, -0x1.6e296p-5f, -0x1.16fee6p-5f,
	  -0x1.9bf1f4p-6f },
	{ 0, 0x1.1811e2p-4f, 0x1.f08134p-4f, 0x1.4a26b4p-3f, 0x1.831caap-3f, 0x1.8e2186p-3f,
	  0x1.7d86eep-3f, 0x1.53d8c8p-3f, 0x1.21778cp-3f, 0x1.c17264p-4f, 0x1.5e0b72p-4f,
	  0x1.fb70cep-5f, 0x1.390d74p-5f, 0x1.66ed3p-6f, 0x1.29be5ep-7f, 0x1.abb0cep-11f },
	{ -0x1.555552p-2f, -0x1.4b5ffep-2f, -0x1.32efd2p-2f, -0x1.0ea34p-2f, -0x1.addbe6p-3f,
	  -0x1.55c352p-3f, -0x1.d24538p-4f, -0x1.0640c6p-4f, -0x1.93da0ep-6f, 0x1.b32422p-7f,
	  0x1.2b8582p-5f, 0x1.c4f82ap-5f, 0x1.207dbap-4f, 0x1.40736cp-4f, 0x1.50f1f8p-4f,
	  0x1.554a7p-4f },
	{ 0, -0x1.1c94e8p-4f, -0x1.05f5fep-3f, -0x1.71f698p-3f, -0x1.e20c66p-3f, -0x1.114fbap-2f,
	  -0x1.2f1ab6p-2f, -0x1.4238b4p-2f, -0x1.4ad338p-2f, -0x1.4bf564p-2f, -0x1.474bep-2f,
	  -0x1.3e32e4p-2f, -0x1.2f546p-2f, -0x1.204462p-2f, -0x1.0fdaa4p-2f, -0x1.019a28p-2f },
	{ 0, -0x1.410cc2p-8f, -0x1.1a6a28p-6f, -0x1.2adc2cp-5f, -0x1.18cf6cp-4f, -0x1.8bce3ap-4f,
	  -0x1.15ed52p-3f, -0x1.6e2b7cp-3f, -0x1.c1d37cp-3f, -0x1.1310c6p-2f, -0x1.3a7d82p-2f,
	  -0x1.63b3a6p-2f, -0x1.9325bap-2f, -0x1.ba003ap-2f, -0x1.df2bb6p-2f, -0x1.fcc916p-2f },
};

typedef __mmask8 atan_mask_v64;
typedef __m512i atan_index_v64;

static inline vec_f64 at_most_v64(vec_f64 v, double high)
{
	return (vec_f64)_mm512_min_pd(_mm512_set1_pd(high), (__m512d)v); /* NaN stays NaN */
}

static inline __mmask8 atan_above_v64(vec_f64 a, vec_f64 b)
{
	return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ);
}

/* 1 / v in the lanes of the mask, v in the others. */
static inline vec_f64 atan_inverse_v64(__mmask8 lanes, vec_f64 v)
{
	return (vec_f64)_mm512_mask_div_pd((__m512d)v, lanes, _mm512_set1_pd(1), (__m512d)v);
}

/* v in the lanes of the mask, 0 in the others. */
static inline vec_f64 atan_keep_v64(__mmask8 lanes, vec_f64 v)
{
	return (vec_f64)_mm512_maskz_mov_pd(lanes, (__m512d)v);
}

/* -v in the lanes of the mask, v in the others. */
static inline vec_f64 atan_minus_v64(__mmask8 lanes, vec_f64 v)
{
	return (vec_f64)_mm512_mask_sub_pd((__m512d)v, lanes, _mm512_setzero_pd(), (__m512d)v);
}

typedef __mmask16 atan_mask_v32;
typedef __m512i atan_index_v32;

static inline vec_f32 at_most_v32(vec_f32 v, float high)
{
	return (vec_f32)_mm512_min_ps(_mm512_set1_ps(high), (__m512)v); /* NaN stays NaN */
}

static inline __mmask16 atan_above_v32(vec_f32 a, vec_f32 b)
{
	return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
}

/* 1 / v in the lanes of the mask, v in the others. */
static inline vec_f32 atan_inverse_v32(__mmask16 lanes, vec_f32 v)
{
	return (vec_f32)_mm512_mask_div_ps((__m512)v, lanes, _mm512_set1_ps(1), (__m512)v);
}

/* v in the lanes of the mask, 0 in the others. */
static inline vec_f32 atan_keep_v32(__mmask16 lanes, vec_f32 v)
{
	return (vec_f32)_mm512_maskz_mov_ps(lanes, (__m512)v);
}

/* -v in the lanes of the mask, v in the others. */
static inline vec_f32 atan_minus_v32(__mmask16 lanes, vec_f32 v)
{
	return (vec_f32)_mm512_mask_sub_ps((__m512)v, lanes, _mm512_setzero_ps(), (__m512)v);
}

#define no_turn_v64 _mm512_setzero_si512
#define no_turn_v32 _mm512_setzero_si512

#define V	    vec_f64
#define F(x)	    x##_v64
#define ATAN_ROWS   11
#define HALF_PI	    0x1.921fb54442d18p0
#define HALF_PI_LOW 0x1.1a62633145c07p-54
#define ROUND_PIECE 0x1.8p52
#define LARGE	    0x1p1000
#include "kernels/cpu/simd/vec_atan_float.h"
#undef V
#undef F
#undef ATAN_ROWS
#undef HALF_PI
#undef HALF_PI_LOW
#undef ROUND_PIECE
#undef LARGE

#define V	    vec_f32
#define F(x)	    x##_v32
#define ATAN_ROWS   7
#define HALF_PI	    0x1.921fb6p0f
#define HALF_PI_LOW -0x1.777a5cp-25f
#define ROUND_PIECE 0x1.8p23f
#define LARGE	    0x1p100f
#include "kernels/cpu/simd/vec_atan_float.h"
#undef V
#undef F
#undef ATAN_ROWS
#undef HALF_PI
#undef HALF_PI_LOW
#undef ROUND_PIECE
#undef LARGE

#endif
