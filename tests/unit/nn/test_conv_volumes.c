// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions with three spatial dimensions and their gradients, in f64, f32 and bf16, against a
 * plain loop in f64. All inputs are bf16 numbers, so that the exact results are the same.
 */
#include "bf16.h"

struct volume {
	int64_t batch, in, out, groups, size[3], taps[3], stride[3], padding[3], dilation[3];
};

/* Planes at the border have fewer taps; each part has enough positions to be summed apart. */
static const struct volume volumes[] = {
	{ 1, 6, 9, 1, { 4, 20, 21 }, { 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 } },
	{ 2, 5, 16, 1, { 7, 23, 19 }, { 3, 2, 3 }, { 2, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 } },
	{ 1, 4, 24, 2, { 5, 22, 22 }, { 5, 1, 3 }, { 1, 1, 1 }, { 2, 0, 1 }, { 1, 1, 1 } },
	/* Planes that no tap reads. */
	{ 1, 3, 8, 1, { 3, 20, 24 }, { 3, 3, 1 }, { 1, 1, 1 }, { 4, 1, 0 }, { 1, 1, 1 } },
	{ 1, 3, 8, 1, { 9, 21, 20 }, { 2, 3, 3 }, { 4, 1, 1 }, { 3, 1, 1 }, { 1, 1, 1 } },
	{ 3, 2, 8, 1, { 5, 13, 15 }, { 3, 3, 3 }, { 1, 1, 2 }, { 2, 1, 1 }, { 2, 1, 1 } },
	/* One position along an axis; more channels than a block of rows. */
	{ 2, 64, 72, 1, { 2, 6, 7 }, { 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 } },
	{ 1, 40, 300, 1, { 3, 8, 8 }, { 3, 1, 1 }, { 2, 2, 2 }, { 1, 0, 0 }, { 1, 1, 1 } },
	/* Depthwise, also with several outputs for each input. */
	{ 2, 5, 5, 5, { 6, 9, 20 }, { 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 } },
	{ 1, 7, 7, 7, { 5, 11, 13 }, { 3, 5, 5 }, { 2, 2, 2 }, { 1, 2, 2 }, { 1, 1, 1 } },
	{ 1, 3, 6, 3, { 8, 7, 33 }, { 5, 1, 3 }, { 1, 2, 1 }, { 5, 0, 3 }, { 2, 1, 2 } },
	{ 0, 3, 4, 1, { 4, 4, 4 }, { 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 } },
};

/* y, the gradients of x and w, and the sums of the absolute values of their terms. */
struct sums {
	tensor *y, *x, *w, *y_size, *x_size, *w_size;
};

static int64_t result_size(const struct volume *v, int d)
{
	return (v->size[d] + 2 * v->padding[d] - v->dilation[d] * (v->taps[d] - 1) - 1) /
		       v->stride[d] +
	       1;
}

static void add_term(tensor *sum, tensor *size, int64_t at, double term)
{
	((double *)tensor_mutable_data(sum))[at] += term;
	((double *)tensor_mutable_data(size))[at] += fabs(term);
}

/* All terms of one result: position p of channel o of image n, group g. */
static void add_position(const struct volume *v, const struct sums *s, const double *x,
			 const double *w, const double *grad, int64_t n, int64_t o, int64_t at,
			 const int64_t *p)
{
	int64_t ig = v->in / v->groups, first = o / (v->out / v->groups) * ig;

	for (int64_t i = 0; i < ig; i++)
		for (int64_t a = 0; a < v->taps[0]; a++)
			for (int64_t b = 0; b < v->taps[1]; b++)
				for (int64_t c = 0; c < v->taps[2]; c++) {
					const int64_t r[3] = { a, b, c };
					int64_t from = n * v->in + first + i, tap = o * ig + i;
					bool inside = true;

					for (int d = 0; d < 3; d++) {
						int64_t k = p[d] * v->stride[d] - v->padding[d] +
							    r[d] * v->dilation[d];

						inside &= k >= 0 && k < v->size[d];
						from = from * v->size[d] + k;
						tap = tap * v->taps[d] + r[d];
					}
					if (!inside)
						continue;
					add_term(s->y, s->y_size, at, x[from] * w[tap]);
					add_term(s->x, s->x_size, from, grad[at] * w[tap]);
					add_term(s->w, s->w_size, tap, grad[at] * x[from]);
				}
}

static struct sums sums_of(const struct volume *v, tensor *x, tensor *w, tensor *grad)
{
	struct sums s = { .y = ok(tensor_zeros(tensor_shape(grad), F64)),
			  .x = ok(tensor_zeros(tensor_shape(x), F64)),
			  .w = ok(tensor_zeros(tensor_shape(w), F64)),
			  .y_size = ok(tensor_zeros(tensor_shape(grad), F64)),
			  .x_size = ok(tensor_zeros(tensor_shape(x), F64)),
			  .w_size = ok(tensor_zeros(tensor_shape(w), F64)) };
	const double *xs = tensor_data(in_f64(x)), *ws = tensor_data(in_f64(w)),
		     *gs = tensor_data(in_f64(grad));
	int64_t at = 0, p[3];

	for (int64_t n = 0; n < v->batch; n++)
		for (int64_t o = 0; o < v->out; o++)
			for (p[0] = 0; p[0] < result_size(v, 0); p[0]++)
				for (p[1] = 0; p[1] < result_size(v, 1); p[1]++)
					for (p[2] = 0; p[2] < result_size(v, 2); p[2]++)
						add_position(v, &s, xs, ws, gs, n, o, at++, p);
	return s;
}

static bool is_close(tensor *found, tensor *exact, tensor *sizes, double rounding)
{
	tensor *error = ok(tensor_abs(ok(tensor_sub(in_f64(found), exact))));
	tensor *most = ok(tensor_mul_scalar(sizes, TENSOR_SCALAR(rounding)));
	double all;

	assert_done(tensor_item(ok(tensor_all(ok(tensor_le(error, most)))), &all));
	return all;
}

/* Each error is at most a rounding of the terms and, in bf16, of the result. */
static void check_sums(tensor *found, tensor *exact, tensor *sizes, const char *what,
		       const struct volume *v)
{
	enum tensor_dtype d = tensor_dtype(found);

	if (d == TENSOR_BF16 ? !is_rounded_once(found, exact, sizes) :
			       !is_close(found, exact, sizes, d == TENSOR_F64 ? 1e-15 : 1e-6))
		fail_msg("%s of %s: in %lld, out %lld, groups %lld, size %lld %lld %lld, taps "
			 "%lld %lld %lld",
			 what, tensor_dtype_name(d), (long long)v->in, (long long)v->out,
			 (long long)v->groups, (long long)v->size[0], (long long)v->size[1],
			 (long long)v->size[2], (long long)v->taps[0], (long long)v->taps[1],
			 (long long)v->taps[2]);
}

#define TRIPLE(p) ((tensor_ints){ (p), 3 })
#define ARGS(v)                                                                  \
	TRIPLE((v)->stride), TRIPLE((v)->padding), TRIPLE((v)->dilation), false, \
		TENSOR_INTS(0, 0, 0), (v)->groups

static void check_dtype(const struct volume *v, const struct sums *s, tensor *x, tensor *w,
			tensor *grad, enum tensor_dtype dtype)
{
	tensor *y, *gx, *gw, *none;

	x = ok(tensor_to(x, TENSOR_OPTIONS(.dtype = dtype)));
	w = ok(tensor_to(w, TENSOR_OPTIONS(.dtype = dtype)));
	grad = ok(tensor_to(grad, TENSOR_OPTIONS(.dtype = dtype)));
	y = ok(tensor_convolution(x, w, tensor_none, ARGS(v)));
	assert_done(tensor_convolution_backward(grad, x, w, TENSOR_NO_INTS, ARGS(v), 3, &gx, &gw,
						&none));
	check_sums(y, s->y, s->y_size, "result", v);
	check_sums(gx, s->x, s->x_size, "gradient of the input", v);
	check_sums(gw, s->w, s->w_size, "gradient of the weight", v);
}

static void check_volume(const struct volume *v)
{
	tensor *x = bf16_values(TENSOR_INTS(v->batch, v->in, v->size[0], v->size[1], v->size[2])),
	       *w = bf16_values(
		       TENSOR_INTS(v->out, v->in / v->groups, v->taps[0], v->taps[1], v->taps[2])),
	       *grad = bf16_values(TENSOR_INTS(v->batch, v->out, result_size(v, 0),
					       result_size(v, 1), result_size(v, 2)));
	struct sums s = sums_of(v, x, w, grad);

	check_dtype(v, &s, x, w, grad, TENSOR_F64);
	check_dtype(v, &s, x, w, grad, TENSOR_F32);
	check_dtype(v, &s, x, w, grad, TENSOR_BF16);
}

static void volumes_agree_with_a_plain_loop(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++)
		tensor_scope
			check_volume(&volumes[i]);
}

static int64_t below(uint32_t *state, int64_t n)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % n;
}

static void drawn_volumes_agree_with_a_plain_loop(void **state)
{
	uint32_t seed = 5;

	for (int i = 0; i < 60; i++) {
		int64_t groups = 1 + below(&seed, 3) * (i % 2);
		int64_t more = i % 4 == 0 ? 20 : 3;
		struct volume v = { .batch = 1 + below(&seed, 2),
				    .in = groups * (1 + below(&seed, more)),
				    .out = groups * (1 + below(&seed, more)),
				    .groups = groups };

		for (int d = 0; d < 3; d++) {
			v.taps[d] = 1 + below(&seed, 4);
			v.dilation[d] = 1 + below(&seed, 2);
			v.stride[d] = 1 + below(&seed, 3);
			v.padding[d] = below(&seed, v.taps[d] + 2);
			v.size[d] = v.dilation[d] * (v.taps[d] - 1) + 1 + below(&seed, 5 + 8 * d);
		}
		tensor_scope
			check_volume(&v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volumes_agree_with_a_plain_loop),
		cmocka_unit_test(drawn_volumes_agree_with_a_plain_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
