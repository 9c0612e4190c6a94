/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * erfc_v32() and erfc_v64(), for processors with multiply-add instructions; narrower vectors call SLEEF, whose errors are up to 1.5 ulp.
 * For 0 <= x <= ERFC_ZERO,
 *
 *   erfc(x) = exp(-x^2) (1 + p) / (1 + 2 x),
 *
 * where 0 <= p < 0.29 is a polynomial in q = (x - 1.5) / (x + 3). Those of f32 are computed in f64.
 * With AVX-512, exp(x^2) erfc(x) of f64 is a polynomial in each of 16 pieces. Polynomials interpolate at Chebyshev nodes.
 */
#ifndef TENSOR_VEC_ERFC_H
#define TENSOR_VEC_ERFC_H

#include "kernels/cpu/simd/vec_halves.h"
#include "kernels/cpu/simd/vecmath.h"

#if defined(__AVX2__) && defined(__FMA__)
#define ERFC_ZERO_F32 10.1 /* above it the result is rounded to 0 */
#define ERFC_ZERO_F64 27.3

/* p - 1/8; error 2^-56. */
static inline vec_f64 erfc_polynomial_f64(vec_f64 q)
{
	vec_f64 p = -8.1835234963053568e-07 * q + 1.0365132301560039e-06;

	p = p * q + 4.8289937993224543e-06;
	p = p * q - 4.6255398686435166e-06;
	p = p * q - 1.5633664707965547e-05;
	p = p * q + 4.945361340124051e-07;
	p = p * q + 4.7268066263604408e-05;
	p = p * q + 5.2035926841462356e-05;
	p = p * q - 0.00011874174299220833;
	p = p * q - 0.00030981083879505115;
	p = p * q + 0.00022807058354212692;
	p = p * q + 0.0014146431210393024;
	p = p * q - 0.000345113625418585;
	p = p * q - 0.0063655817619370078;
	p = p * q + 0.0019127290126339366;
	p = p * q + 0.030592368315260233;
	p = p * q - 0.035275227983257912;
	p = p * q - 0.12282339782213345;
	p = p * q + 0.49220878381037114;
	p = p * q - 0.86606470534822277;
	p = p * q + 0.9072803811229273;
	p = p * q - 0.50943771097223367;
	p = p * q - 0.050943771097223693;
	return p * q + 0.16134166581727;
}

#if defined(__AVX512F__)
/* exp(x + low) (a + more) for x <= 0, where low is less than an ulp of x, and `more` a third of a; as in exp_f64v(). */
static inline vec_f64 erfc_exp_f64(vec_f64 x, vec_f64 low, vec_f64 a, vec_f64 more)
{
	vec_f64 t = x * (16 * M_LOG2E) + ROUND_F64, n = t - ROUND_F64, p, power, y;
	vec_f64 r = ((x - n * LN2_16_HIGH) - n * LN2_16_LOW) + low;

	p = 0.0013889034348876907 * r + 0.008333449701475412;
	p = p * r + 0.041666666664960446;
	p = p * r + 0.16666666665301685;
	p = p * r + 0.5;
	p = p * (r * r) + r;
	power = vec_entry_f64(exp2_table, (__m512i)t);
	y = power * a;
	low = vec_fma_f64(power, a, -y) + vec_entry_f64(exp2_table_low, (__m512i)t) * a +
	      power * more;
	return vec_scale_f64(y + (low + (y + low) * p), n * 0.0625);
}

#else
static inline vec_f64 erfc_exp_f64(vec_f64 x, vec_f64 low, vec_f64 a, vec_f64 more)
{
	struct vec_exp_f64 e = vec_exp_parts_f64(x);
	vec_f64 p, product, sum, y;

	/* e^r = 1 + r + p: a (1 + r) is computed with its rounding errors. */
	low += e.low;
	p = e.p * (e.r * e.r) + low;
	p += low * (e.r + p);
	product = a * e.r;
	sum = a + product;
	low = (a - sum) + product + vec_fma_f64(a, e.r, -product);
	y = sum + (low + (a * p + more * (1 + (e.r + p))));
	if (__builtin_expect(vec_some_f64(~(x > -700)), 0)) /* NaN, too */
		return vec_exp_far_f64(x, y, e.t);
	return (vec_f64)((vec_m64)y + ((vec_m64)e.t << 52));
}
#endif

static inline vec_f64 erfc_quotient_f64(vec_f64 x)
{
	vec_f64 square = x * x, square_low = vec_fma_f64(x, x, -square);
	vec_f64 below = 2 * x + 1, below_low = 2 * x - (below - 1), quotient = 1 / below;
	vec_f64 sum = x + 3, difference = x - 1.5, inverse = 1 / sum, q = difference * inverse;
	vec_f64 p = erfc_polynomial_f64(q), rest, slope;
	/* 1 + p as 9/8 and a smaller number. */
	vec_f64 most = quotient * 1.125;

	/* What q lost, times the derivative of p, and what the quotient lost. */
	rest = vec_fnma_f64(q, sum, difference) + (x - (difference + 1.5)) - q * (x - (sum - 3));
	slope = ((3.2391 - 2.3422 * q) * q - 1.2232) * q - 0.0671;
	p += rest * inverse * slope;
	p += 1.125 * (vec_fnma_f64(below, quotient, (vec_f64){ 0 } + 1) - below_low * quotient);
	p = vec_fma_f64(quotient, (vec_f64){ 0 } + 1.125, -most) + quotient * p;
	return erfc_exp_f64(-square, -square_low, most, p);
}

#if defined(__AVX512F__)
/*
 * exp(x^2) erfc(x) in pieces of 3/8: with t, the distance from the middle of a piece, it is first + second + t p(t), where the rows of
 * the table are first, second and the coefficients of p from the highest one on. Error of the result 2^-58. Those of f32 are 5/8 wide,
 * and the error is 2^-27.
 */
static const double erfc_pieces[][PIECES] = {
	{ 0x1.a36bbb7f3686dp-1, 0x1.2b84f076e14fbp-1, 0x1.c7f81382721efp-2, 0x1.6bb376a9390cdp-2,
	  0x1.2c6c3d2ac6111p-2, 0x1.fdb50ebdc92cep-3, 0x1.b9739404354ecp-3, 0x1.84ae4301fe0b3p-3,
	  0x1.5acd331e82254p-3, 0x1.38d60190223f4p-3, 0x1.1cc7d25f7330ap-3, 0x1.053e861ffc32bp-3,
	  0x1.e277e0aabb532p-4, 0x1.c00c8546be50ap-4, 0x1.a2258dfa0e771p-4, 0x1.87efff770a69ap-4 },
	{ -0x1.c5a2bb61934d2p-56, 0x1.b8bd1accf8123p-55, -0x1.3f947ee724dfcp-62,
	  0x1.9155d83c491ecp-56, 0x1.ce9d3cfcc8c99p-57, 0x1.7daf962f0823dp-59,
	  0x1.6bdaf6c65c328p-57, -0x1.00d13ec7739b3p-60, 0x1.cc6b42cc68277p-57,
	  -0x1.defdc81c4b0efp-60, 0x1.333b37aaaacdbp-57, -0x1.2f6f8cb2b0998p-58,
	  -0x1.5424ffbbd2763p-58, -0x1.1a1a885eccbafp-58, 0x1.5d8fc678cdaafp-61,
	  0x1.2e8275eb1ee67p-58 },
	{ -0x1.b45220b94e8e7p-13, -0x1.1b35418f913e2p-15, -0x1.9fe4fed2199f8p-18,
	  -0x1.561d9d0dcda28p-20, -0x1.38607c34ccc9cp-22, -0x1.39d47ad0ba1e7p-24,
	  -0x1.58148968292b7p-26, -0x1.98945351a22e3p-28, -0x1.04e7c1e10a5cap-29,
	  -0x1.64192778ba3dfp-31, -0x1.0233e24f80b2dp-32, -0x1.8bc3cfe111744p-34,
	  -0x1.3f114869d836cp-35, -0x1.0d7265188d5e3p-36, -0x1.dadd77fff42d3p-38,
	  -0x1.b31f9eab277b3p-39 },
	{ 0x1.2661bdbac3393p-11, 0x1.9b0b0448ddf6cp-14, 0x1.44633344ee258p-16,
	  0x1.1e7f0470e3b57p-18, 0x1.187a734bf1644p-20, 0x1.2da523d1d1307p-22,
	  0x1.6167417b98879p-24, 0x1.bf93c30a5c8fbp-26, 0x1.3038cc527d62fp-27,
	  0x1.b912bc8d30d7cp-29, 0x1.5309bdc5b4829p-30, 0x1.12e4939dd91d3p-31,
	  0x1.d3fffd9219f20p-33, 0x1.a07d9febeff87p-34, 0x1.820a0b92f421ep-35,
	  0x1.7368fc813896fp-36 },
	{ -0x1.78a74370e31bep-10, -0x1.1c4d9acace296p-12, -0x1.e497a7b8f7597p-15,
	  -0x1.cd7fcc63d04acp-17, -0x1.e6521b72029d5p-19, -0x1.18ee23f0033fep-20,
	  -0x1.60d160c8b4f5bp-22, -0x1.ddea153cfbfcep-24, -0x1.5aa351bfa8a3cp-25,
	  -0x1.0b86a28c1aa45p-26, -0x1.b4db10267808cp-28, -0x1.7763bd2509956p-29,
	  -0x1.51ec0b13cad02p-30, -0x1.3d5aaf36aff71p-31, -0x1.35c946d1b508dp-32,
	  -0x1.3948c71a80473p-33 },
	{ 0x1.d62daddc0f8c9p-9, 0x1.802fb62aedea5p-11, 0x1.6216ec9b99145p-13, 0x1.6c2b36f1ddcdap-15,
	  0x1.9db488815ff27p-17, 0x1.011da3470b0e2p-18, 0x1.5aa51cacfc414p-20,
	  0x1.f6e4d815bee9bp-22, 0x1.85b889403a173p-23, 0x1.4096563f235b3p-24,
	  0x1.1653280a32053p-25, 0x1.fb6ccdd85fe46p-27, 0x1.e376e5149ea91p-28,
	  0x1.df8332d53fc62p-29, 0x1.ed4deae326d04p-30, 0x1.065b122a89e25p-30 },
	{ -0x1.1903b73324b5bp-7, -0x1.f30108ed5bf9fp-10, -0x1.f329c86d5d326p-12,
	  -0x1.1624fa9f9cb07p-13, -0x1.55b7120a13429p-15, -0x1.ca4d0989b2703p-17,
	  -0x1.4c861f9e38516p-18, -0x1.02f19c4acba9cp-19, -0x1.adb8637cb3506p-21,
	  -0x1.797cffb9c4404p-22, -0x1.5d101c9706754p-23, -0x1.520e42b7bfb3ep-24,
	  -0x1.555c9ce8586bdp-25, -0x1.65fcee7af5ebdp-26, -0x1.8489d69dd0a25p-27,
	  -0x1.b3151b9cd41afp-28 },
	{ 0x1.403cc10675ab3p-6, 0x1.364eb7b5f1bcap-8, 0x1.524f5feee172bp-10, 0x1.9a25c688f626cp-12,
	  0x1.1172b73e9a119p-13, 0x1.8d033fabae0c7p-15, 0x1.36f5d82aa8021p-16,
	  0x1.04a5ed3aea7b5p-17, 0x1.d038f295c4e64p-19, 0x1.b4628796e6513p-20,
	  0x1.ae95ff9cb5793p-21, 0x1.bbc07c58b4de9p-22, 0x1.db933143f1723p-23,
	  0x1.0800578bae8dap-23, 0x1.2e9fcd7c0ab44p-24, 0x1.651b973e35376p-25 },
	{ -0x1.5a29d8c8cf067p-5, -0x1.6ff6b3822708bp-7, -0x1.b75cb1ab446f9p-9,
	  -0x1.2309306007d63p-10, -0x1.a6efc319e8368p-12, -0x1.4d9b56a6c3c80p-13,
	  -0x1.1b0388223be3dp-14, -0x1.00189e76f508ap-15, -0x1.eac93ce8179d8p-17,
	  -0x1.eed2e86a6cd40p-18, -0x1.050417bb498a2p-18, -0x1.1ebfc456346d9p-19,
	  -0x1.46a944dea3755p-20, -0x1.80780048935b5p-21, -0x1.d2049d76d2dcbp-22,
	  -0x1.220d87ceb2098p-22 },
	{ 0x1.60b0a4ddcff80p-4, 0x1.9dcc1510f19d4p-6, 0x1.102167d9d0cf7p-7, 0x1.8c10e9aa1d9ccp-9,
	  0x1.3b26815ad9048p-10, 0x1.0f44e8539ba8bp-11, 0x1.f46739b7d035fp-13,
	  0x1.ea75954d041f6p-14, 0x1.fb26991685659p-15, 0x1.12e63c6a93993p-15,
	  0x1.36c2c74ab0d93p-16, 0x1.6c9ecf3436c6dp-17, 0x1.ba40c2da7b716p-18,
	  0x1.144bfb1e37c34p-18, 0x1.62931cb549b3fp-19, 0x1.d21f1c3f462f6p-20 },
	{ -0x1.4ff52d286674fp-3, -0x1.b659430180e1ap-5, -0x1.3fc8366a2e717p-6,
	  -0x1.014991d657a58p-7, -0x1.c2f162807b2c1p-9, -0x1.a9b3057f70dc1p-10,
	  -0x1.acc072bb231e3p-11, -0x1.c8e5724e4970ep-12, -0x1.ff7ec750c6c92p-13,
	  -0x1.2af41f3a94b50p-13, -0x1.6b00a15e82208p-14, -0x1.c7d52a57299b4p-15,
	  -0x1.26dc75b45f77dp-15, -0x1.87bd49da2fc4ep-16, -0x1.0a7c3e1fb81b2p-16,
	  -0x1.7264156094e90p-17 },
	{ 0x1.280377e651fcep-2, 0x1.b1a22aa7a7ce3p-4, 0x1.61fee765ffb06p-5, 0x1.3d5e9f54c999bp-6,
	  0x1.346c4610699b8p-7, 0x1.413a25f5219dep-8, 0x1.6318a0bc89342p-9, 0x1.9d37605d814c7p-10,
	  0x1.f6b043889a5b2p-11, 0x1.3dcc9724290fdp-11, 0x1.9f99243709e65p-12,
	  0x1.17e7cc3fe1cc6p-12, 0x1.83006c33dba0fp-13, 0x1.11cce846e7875p-13,
	  0x1.8b7eaf241d3d3p-14, 0x1.22f62cdb23824p-14 },
	{ -0x1.db731eedadcb5p-2, -0x1.8bed65e01718cp-3, -0x1.6dcc9e7a2c9b5p-4,
	  -0x1.711413b59af42p-5, -0x1.9126c9e5ff890p-6, -0x1.d04be8dc9de70p-7,
	  -0x1.1b6113e021160p-7, -0x1.69eec99dfa61ep-8, -0x1.e08044f57a0f0p-9,
	  -0x1.49c05b7d5bce0p-9, -0x1.d1d2d8dcf2139p-10, -0x1.51628f83aeb06p-10,
	  -0x1.f396f130f44b4p-11, -0x1.79221fbec8c29p-11, -0x1.21a1cfe50641bp-11,
	  -0x1.c3bd8ad9fb3b7p-12 },
	{ 0x1.549642cc98b78p-1, 0x1.482bd9fad9ecep-2, 0x1.5c775dfc44978p-3, 0x1.90e47c99926d2p-4,
	  0x1.ecaedd6244629p-5, 0x1.3fb5ad8f09d0fp-5, 0x1.b22478684a9f1p-6, 0x1.3222d1cec4362p-6,
	  0x1.bdbc3f64b08f4p-7, 0x1.4d68e4602ae56p-7, 0x1.fe7eb2005f880p-8, 0x1.8ebb3c41f48fbp-8,
	  0x1.3cea7815ecde2p-8, 0x1.ff88cd3653073p-9, 0x1.a26fe18d96552p-9, 0x1.5a6719b012c15p-9 },
	{ -0x1.a47283b89efb1p-1, -0x1.e18ab7052be7fp-2, -0x1.2c84af7c10e14p-2,
	  -0x1.917d7928e2332p-3, -0x1.1b110b4094c34p-3, -0x1.a0c196a4dfbadp-4,
	  -0x1.3db06d1993ad1p-4, -0x1.f25dbcd862de7p-5, -0x1.903e08fb40239p-5,
	  -0x1.47db73f966cfap-5, -0x1.11183dc68a5dep-5, -0x1.cd831a6b740b8p-6,
	  -0x1.8acdd807fd07ep-6, -0x1.55622b5951f3bp-6, -0x1.29fba10cf878fp-6,
	  -0x1.064559eb0983ep-6 },
};

static const float erfc_pieces_f32[][16] = {
	{ 0.726085961f, 0.44528228f, 0.311648607f, 0.236745372f, 0.18978551f, 0.157918692f,
	  0.135004252f, 0.117790103f, 0.104411006f, 0.0937273651f, 0.0850065127f, 0.0777572691f,
	  0.0716386437f, 0.066406846f, 0.0618831106f, 0.0579334721f },
	{ -5.74125147e-09f, -7.30821714e-09f, 1.39410172e-09f, 6.32555741e-09f, -7.39259542e-09f,
	  -4.64440442e-09f, -6.72154776e-09f, 2.48447374e-09f, 3.49922935e-09f, 4.84274731e-10f,
	  -1.17221755e-09f, -2.30743424e-09f, 2.66795852e-09f, 3.48958906e-09f, 1.51139889e-09f,
	  2.45911125e-10f },
	{ 0.0124318413f, 0.00132403651f, 0.00018986121f, 3.48708272e-05f, 7.85996417e-06f,
	  2.09841528e-06f, 6.44675879e-07f, 2.22803948e-07f, 8.50134967e-08f, 3.52028664e-08f,
	  1.56871032e-08f, 7.32181604e-09f, 3.71380104e-09f, 2.00076555e-09f, 1.07161391e-09f,
	  5.43838696e-10f },
	{ -0.0278190281f, -0.00344657688f, -0.000571676937f, -0.000120516845f, -3.09087918e-05f,
	  -9.30604892e-06f, -3.19666765e-06f, -1.2247018e-06f, -5.13985754e-07f, -2.32937396e-07f,
	  -1.12696618e-07f, -5.76688564e-08f, -3.09779224e-08f, -1.7360005e-08f, -1.00972013e-08f,
	  -6.05379746e-09f },
	{ 0.0564159714f, 0.00830271002f, 0.00161932048f, 0.000396828953f, 0.000116928997f,
	  3.99941418e-05f, 1.54450718e-05f, 6.59000489e-06f, 3.05429239e-06f, 1.5172642e-06f,
	  7.99314762e-07f, 4.42802474e-07f, 2.56142641e-07f, 1.53857769e-07f, 9.5535853e-08f,
	  6.10866948e-08f },
	{ -0.111365698f, -0.0195121523f, -0.00448931288f, -0.00128315645f, -0.000435707014f,
	  -0.000169733219f, -7.38461749e-05f, -3.51497147e-05f, -1.80154166e-05f, -9.82039728e-06f,
	  -5.63846061e-06f, -3.38368454e-06f, -2.10923986e-06f, -1.35888365e-06f, -9.01080114e-07f,
	  -6.12889721e-07f },
	{ 0.204146266f, 0.0432124063f, 0.0118743237f, 0.00399774313f, 0.00157629524f,
	  0.000703462807f, 0.000346342276f, 0.000184536766f, 0.000104870764f, 6.28607886e-05f,
	  3.94005219e-05f, 2.56486619e-05f, 1.72469081e-05f, 1.19272117e-05f, 8.45266641e-06f,
	  6.12058057e-06f },
	{ -0.342367947f, -0.089306578f, -0.0297787301f, -0.0119532468f, -0.00552265625f,
	  -0.00284250034f, -0.0015916347f, -0.000952891598f, -0.000602164888f, -0.00039778708f,
	  -0.000272662146f, -0.000192809006f, -0.000140014585f, -0.000104033061f, -7.88549878e-05f,
	  -6.08253467e-05f },
	{ 0.515281141f, 0.17014955f, 0.0702778846f, 0.0341432095f, 0.0186850596f, 0.0111780204f,
	  0.00715870038f, 0.00483575277f, 0.00340874237f, 0.00248758239f, 0.00186814624f,
	  0.00143711199f, 0.00112835772f, 0.00090163335f, 0.000731528678f, 0.00060148671f },
	{ -0.674575448f, -0.293474913f, -0.154477268f, -0.0926181376f, -0.0608357117f,
	  -0.0426881947f, -0.0314696729f, -0.0240969285f, -0.0190121923f, -0.0153667005f,
	  -0.0126687037f, -0.0106184566f, -0.00902531669f, -0.00776358135f, -0.00674776081f,
	  -0.00591814052f },
};

static inline vec_f64 erfc_near_f64(vec_f64 size)
{
	vec_f64 square = size * size, square_low = vec_fma_f64(size, size, -square);
	vec_f64 number = (size * (8. / 3) - 0.5) + ROUND_F64;
	vec_f64 t = size - ((number - ROUND_F64) * 0.375 + 0.1875), p;
	__m512i at = (__m512i)number;

	p = vec_entry_f64(erfc_pieces[2], at);
#pragma GCC unroll 16
	for (size_t i = 3; i < ARRAY_SIZE(erfc_pieces); i++)
		p = p * t + vec_entry_f64(erfc_pieces[i], at);
	p = p * t + vec_entry_f64(erfc_pieces[1], at);
	return erfc_exp_f64(-square, -square_low, vec_entry_f64(erfc_pieces[0], at), p);
}

/* As erfc_exp_f64(), with the table of exp_f32v(). */
static inline vec_f32 erfc_exp_f32(vec_f32 x, vec_f32 low, vec_f32 a, vec_f32 more)
{
	const float magic = 12582912; /* as in exp_reduced_f32() */
	vec_f32 t = x * (float)(16 * M_LOG2E) + magic, n = t - magic, p, power, y;
	vec_f32 r = ((x - n * 0.0433216989f) + n * 1.19040894e-10f) + low;

	p = 0.166668698f * r + 0.500010192f;
	p = p * (r * r) + r;
	power = vec_entry_f32(exp2_table_f32, (__m512i)t);
	y = power * a;
	low = vec_fma_f32(power, a, -y) + vec_entry_f32(exp2_table_low_f32, (__m512i)t) * a +
	      power * more;
	return vec_scale_f32(y + (low + (y + low) * p), n * 0.0625f);
}

static inline vec_f32 erfc_v32(vec_f32 x)
{
	vec_f32 size = vec_limit_f32(vec_size_f32(x), 0, ERFC_ZERO_F32), square = size * size;
	vec_f32 square_low = vec_fma_f32(size, size, -square), number, t, p, y;
	__m512i at;

	number = vec_limit_f32(size * 1.6f - 0.5f, -0.5f, 15) + 12582912;
	t = size - ((number - 12582912) * 0.625f + 0.3125f);
	at = (__m512i)number;
	p = vec_entry_f32(erfc_pieces_f32[2], at);
#pragma GCC unroll 16
	for (size_t i = 3; i < ARRAY_SIZE(erfc_pieces_f32); i++)
		p = p * t + vec_entry_f32(erfc_pieces_f32[i], at);
	p = p * t + vec_entry_f32(erfc_pieces_f32[1], at);
	y = erfc_exp_f32(-square, -square_low, vec_entry_f32(erfc_pieces_f32[0], at), p);
	return vec_select_f32(x < 0, 2 - y, y);
}

static inline vec_f64 erfc_v64(vec_f64 x)
{
	vec_f64 size = vec_limit_f64((vec_f64)_mm512_abs_pd((__m512d)x), 0, ERFC_ZERO_F64);
	vec_f64 y = erfc_near_f64(size);
	__mmask8 far = _mm512_cmp_pd_mask((__m512d)size, _mm512_set1_pd(5.95), _CMP_GT_OQ);

	if (__builtin_expect(far, 0))
		y = (vec_f64)_mm512_mask_mov_pd((__m512d)y, far, (__m512d)erfc_quotient_f64(size));
	return vec_select_f64(x < 0, 2 - y, y);
}
#else
/* exp(x) for -103 < x <= 0, error 2^-29. */
static inline vec_f64 erfc_exp_short_f64(vec_f64 x)
{
	vec_f64 t = x * M_LOG2E + ROUND_F64, r = x - (t - ROUND_F64) * M_LN2;
	vec_f64 p = 0.00139412131 * r + 0.00837521020087;

	p = p * r + 0.0416663516384;
	p = p * r + 0.166664145072;
	p = p * r + 0.50000000474;
	p = p * r + 1.00000003794;
	p = p * r + 1;
	return (vec_f64)((vec_m64)p + ((vec_m64)t << 52));
}

/* erfc(x) with an error of 2^-28; q is (x - 3) / (x + 3). */
static inline vec_f64 erfc_short_f64(vec_f64 x)
{
	vec_f64 first = 2 * x + 1, second = x + 3, inverse = 1 / (first * second);
	vec_f64 q = (x - 3) * (first * inverse), p = 3.69894362824e-05 * q - 0.000178775971853;

	p = p * q - 0.000739813226771;
	p = p * q + 0.00194785495237;
	p = p * q + 0.00252794790245;
	p = p * q - 0.0237872881379;
	p = p * q + 0.0683064417937;
	p = p * q - 0.119271644838;
	p = p * q + 0.12964536701;
	p = p * q - 0.0475623842915;
	p = p * q - 0.135621111469;
	p = p * q + 1.25300805895;
	return erfc_exp_short_f64(-(x * x)) * (p * (second * inverse));
}

static inline vec_f32 erfc_v32(vec_f32 x)
{
	vec_f32 size = vec_limit_f32(vec_size_f32(x), 0, ERFC_ZERO_F32);
	vec_f32 y =
		vec_join_f32(erfc_short_f64(vec_low_f64(size)), erfc_short_f64(vec_high_f64(size)));

	return vec_select_f32(x < 0, 2 - y, y);
}

static inline vec_f64 erfc_v64(vec_f64 x)
{
	vec_f64 y = erfc_quotient_f64(vec_limit_f64(vec_size_f64(x), 0, ERFC_ZERO_F64));

	return vec_select_f64(x < 0, 2 - y, y);
}
#endif
#else
static inline vec_f32 erfc_v32(vec_f32 x)
{
	return (vec_f32)SLEEF_F32_(erfc, _u15)((sleef_f32)x);
}

static inline vec_f64 erfc_v64(vec_f64 x)
{
	return (vec_f64)SLEEF_F64_(erfc, _u15)((sleef_f64)x);
}
#endif

#endif
