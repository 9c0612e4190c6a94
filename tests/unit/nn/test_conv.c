// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Convolutions and their gradients against the sum that defines them; errors. */
#include "check.h"

/* A case with one or two spatial dimensions; output_padding is for transposed ones. */
struct shape {
	int64_t batch, in, out, groups, size[2], taps[2], stride[2], padding[2], dilation[2],
		extra[2];
	bool transposed;
};

static const struct shape shapes[] = {
	{ 2, 3, 5, 1, { 6, 7 }, { 3, 2 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 3, 20, 1, { 9, 11 }, { 3, 3 }, { 2, 1 }, { 1, 2 }, { 1, 2 }, { 0, 0 }, false },
	{ 1, 40, 17, 1, { 5, 30 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, false },
	{ 3, 6, 4, 2, { 8, 8 }, { 1, 1 }, { 2, 3 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 8, 8, 8, { 9, 20 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 4, 8, 4, { 12, 9 }, { 5, 3 }, { 2, 2 }, { 2, 1 }, { 2, 1 }, { 0, 0 }, false },
	{ 1, 140, 130, 1, { 6, 6 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 4, 6, 1, { 5, 4 }, { 3, 4 }, { 3, 2 }, { 1, 2 }, { 1, 1 }, { 2, 1 }, true },
	{ 1, 6, 4, 2, { 4, 5 }, { 2, 2 }, { 3, 3 }, { 0, 0 }, { 1, 1 }, { 1, 0 }, true },
	{ 2, 4, 4, 4, { 7, 7 }, { 3, 3 }, { 1, 2 }, { 1, 1 }, { 2, 1 }, { 0, 1 }, true },
	/* One or two channels in a group: columns of more taps than a chain has, few and many lines. */
	{ 2, 4, 4, 4, { 23, 37 }, { 9, 3 }, { 1, 1 }, { 4, 1 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 3, 6, 3, { 14, 70 }, { 7, 7 }, { 1, 1 }, { 3, 3 }, { 1, 1 }, { 0, 0 }, false },
	{ 1, 6, 3, 3, { 29, 18 }, { 5, 5 }, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0, 0 }, false },
	{ 1, 4, 4, 4, { 4, 33 }, { 1, 9 }, { 1, 3 }, { 0, 4 }, { 1, 2 }, { 0, 0 }, false },
	/* Depthwise, with a border: lines of a vector or less, in blocks of 7 and of 4. */
	{ 2, 3, 3, 3, { 7, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 3, 6, 3, { 14, 14 }, { 5, 5 }, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0, 0 }, false },
	{ 1, 6, 3, 3, { 8, 16 }, { 4, 6 }, { 1, 1 }, { 2, 3 }, { 1, 2 }, { 0, 0 }, false },
	/* One input channel and strides that divide the taps and the input: phases are rows. */
	{ 1, 1, 9, 1, { 1, 260 }, { 1, 10 }, { 1, 5 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 1, 20, 1, { 7, 150 }, { 2, 6 }, { 1, 3 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, false },
	{ 1, 17, 1, 1, { 1, 63 }, { 1, 4 }, { 1, 4 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, true },
	/* Each element is read by one tap: rows of one product are interleaved, with 2 taps and with others. */
	{ 1, 70, 9, 1, { 6, 17 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, true },
	{ 3, 64, 5, 1, { 4, 7 }, { 3, 4 }, { 3, 4 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, true },
	{ 2, 3, 66, 1, { 12, 20 }, { 4, 2 }, { 4, 2 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, false },
	/* Nearly so: an element remains, taps are apart, elements between them are not read. */
	{ 1, 70, 9, 1, { 6, 7 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 1, 1 }, { 1, 0 }, true },
	{ 1, 70, 9, 1, { 6, 7 }, { 2, 2 }, { 2, 2 }, { 0, 0 }, { 2, 1 }, { 0, 0 }, true },
	{ 1, 70, 9, 1, { 6, 7 }, { 2, 2 }, { 2, 3 }, { 0, 0 }, { 1, 1 }, { 0, 0 }, true },
	{ 1, 70, 9, 1, { 6, 7 }, { 3, 3 }, { 3, 3 }, { 1, 0 }, { 1, 1 }, { 2, 0 }, true },
	/* Shapes that are computed in tiles of positions, with partial tiles at the edges. */
	{ 2, 20, 24, 1, { 13, 12 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, false },
	{ 1, 150, 16, 1, { 13, 17 }, { 3, 3 }, { 1, 1 }, { 2, 0 }, { 1, 1 }, { 0, 0 }, false },
	{ 3, 40, 34, 2, { 9, 18 }, { 3, 3 }, { 1, 1 }, { 0, 2 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 17, 70, 1, { 33, 29 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 16, 18, 1, { 24, 25 }, { 3, 3 }, { 2, 2 }, { 0, 2 }, { 1, 1 }, { 0, 0 }, false },
	{ 2, 16, 20, 1, { 11, 9 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, true },
	/* One panel of tiles for several blocks of rows, in two groups. */
	{ 1, 34, 140, 2, { 13, 11 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 }, false },
};

struct data {
	const struct shape *s;
	int64_t out_size[2];
	int64_t nx, nw, ny;
	double *x, *w, *y, *gy, *gx, *gw;
};

static bool whole; /* integer values, for integer dtypes */

static double pseudo_random(int64_t i)
{
	return whole ? (double)(i % 7 - 3) : sin(1.3 * (double)i + (double)(i % 7));
}

/* The definition: adds each product of an input element and a weight to its output element. */
static void convolve_by_definition(struct data *d, double *y, double *gx, double *gw)
{
	const struct shape *s = d->s;
	int64_t ig = s->in / s->groups, og = s->out / s->groups;

	for (int64_t n = 0; n < s->batch; n++)
		for (int64_t g = 0; g < s->groups; g++)
			for (int64_t i = 0; i < ig; i++)
				for (int64_t o = 0; o < og; o++)
					for (int64_t a = 0; a < s->size[0] * s->size[1]; a++)
						for (int64_t r = 0; r < s->taps[0] * s->taps[1];
						     r++) {
							int64_t at[2] = { a / s->size[1],
									  a % s->size[1] };
							int64_t tap[2] = { r / s->taps[1],
									   r % s->taps[1] },
								to[2];
							int64_t x, w, out;
							bool inside = true;

							for (int k = 0; k < 2; k++) {
								int64_t p = s->padding[k],
									step = tap[k] *
									       s->dilation[k];

								to[k] = s->transposed ?
										at[k] * s->stride[k] -
											p + step :
										at[k] + p - step;
								if (!s->transposed) {
									inside &=
										to[k] % s->stride[k] ==
										0;
									to[k] = to[k] < 0 ?
											-1 :
											to[k] / s->stride[k];
								}
								inside &= to[k] >= 0 &&
									  to[k] < d->out_size[k];
							}
							if (!inside)
								continue;
							x = ((n * s->in + g * ig + i) * s->size[0] +
							     at[0]) *
								    s->size[1] +
							    at[1];
							w = s->transposed ? (g * ig + i) * og + o :
									    (g * og + o) * ig + i;
							w = w * s->taps[0] * s->taps[1] + r;
							out = ((n * s->out + g * og + o) *
								       d->out_size[0] +
							       to[0]) *
								      d->out_size[1] +
							      to[1];
							y[out] += d->x[x] * d->w[w];
							gx[x] += d->gy[out] * d->w[w];
							gw[w] += d->gy[out] * d->x[x];
						}
}

static double *numbers(int64_t n, bool filled)
{
	double *p = calloc((size_t)n + 1, sizeof(*p));

	for (int64_t i = 0; filled && i < n; i++)
		p[i] = pseudo_random(i + n);
	return p;
}

static void data_begin(struct data *d, const struct shape *s)
{
	d->s = s;
	d->nx = s->batch * s->in * s->size[0] * s->size[1];
	d->nw = s->in * s->out / s->groups * s->taps[0] * s->taps[1];
	d->ny = s->batch * s->out;
	for (int k = 0; k < 2; k++) {
		int64_t reach = s->dilation[k] * (s->taps[k] - 1);

		d->out_size[k] =
			s->transposed ?
				(s->size[k] - 1) * s->stride[k] - 2 * s->padding[k] + reach +
					s->extra[k] + 1 :
				(s->size[k] + 2 * s->padding[k] - reach - 1) / s->stride[k] + 1;
		d->ny *= d->out_size[k];
	}
	d->x = numbers(d->nx, true);
	d->w = numbers(d->nw, true);
	d->gy = numbers(d->ny, true);
	d->y = numbers(d->ny, false);
	d->gx = numbers(d->nx, false);
	d->gw = numbers(d->nw, false);
	convolve_by_definition(d, d->y, d->gx, d->gw);
}

static void data_end(struct data *d)
{
	free(d->x), free(d->w), free(d->gy), free(d->y), free(d->gx), free(d->gw);
}

static tensor *tensor_of(const double *p, tensor_ints sizes, enum tensor_dtype dtype)
{
	return ok(tensor_to(ok(tensor_from_data(p, sizes, F64)), TENSOR_OPTIONS(.dtype = dtype)));
}

/* The default arguments after the bias. */
#define PLAIN	   TENSOR_INTS(1), TENSOR_INTS(0), TENSOR_INTS(1), 1
#define PLAIN_BACK TENSOR_INTS(1), TENSOR_INTS(0), TENSOR_INTS(0), 1, TENSOR_INTS(1)
#define PAIR(p)	   ((tensor_ints){ (p), 2 })
#define ARGS(s)                                                                      \
	PAIR((s)->stride), PAIR((s)->padding), PAIR((s)->dilation), (s)->transposed, \
		PAIR((s)->extra), (s)->groups

static void check_case(const struct shape *s, enum tensor_dtype dtype, double tol)
{
	struct data d;

	data_begin(&d, s);
	tensor_scope {
		int64_t first = s->transposed ? s->in : s->out;
		int64_t second = s->transposed ? s->out / s->groups : s->in / s->groups;
		tensor *x =
			tensor_of(d.x, TENSOR_INTS(s->batch, s->in, s->size[0], s->size[1]), dtype);
		tensor *w =
			tensor_of(d.w, TENSOR_INTS(first, second, s->taps[0], s->taps[1]), dtype);
		tensor *gy = tensor_of(
			d.gy, TENSOR_INTS(s->batch, s->out, d.out_size[0], d.out_size[1]), dtype);
		tensor *bias =
			ok(tensor_arange(TENSOR_SCALAR(s->out), TENSOR_OPTIONS(.dtype = dtype)));
		tensor *y = ok(tensor_convolution(x, w, tensor_none, ARGS(s))), *gx, *gw, *gb;
		tensor *biased = ok(tensor_convolution(x, w, bias, ARGS(s)));
		tensor *apart = ok(tensor_view(bias, TENSOR_INTS(s->out, 1, 1)));

		check_values_(y, d.y, d.ny, tol, __FILE__, __LINE__);
		check_values_(tensor_sub(biased, apart), d.y, d.ny, 4 * tol, __FILE__, __LINE__);
		assert_done(tensor_convolution_backward(gy, x, w, TENSOR_NO_INTS, ARGS(s), 7, &gx,
							&gw, &gb));
		check_values_(gx, d.gx, d.nx, tol, __FILE__, __LINE__);
		check_values_(gw, d.gw, d.nw, 4 * tol, __FILE__, __LINE__);
		assert_shape(gb, s->out);
		/* Another memory format of the input gives the same result. */
		y = ok(tensor_convolution(
			ok(tensor_transpose(ok(tensor_contiguous(ok(tensor_transpose(x, 1, 3)))), 1,
					    3)),
			w, tensor_none, ARGS(s)));
		check_values_(y, d.y, d.ny, tol, __FILE__, __LINE__);
	}
	data_end(&d);
}

static void agrees_with_the_definition(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		check_case(&shapes[i], TENSOR_F64, 1e-12);
		check_case(&shapes[i], TENSOR_F32, 1e-4);
	}
}

static int64_t below(uint32_t *state, int64_t n)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % n;
}

static void depthwise_of_any_shape(void **state)
{
	uint32_t seed = 11;

	for (int i = 0; i < 60; i++) {
		int64_t groups = 2 + below(&seed, 4);
		struct shape s = { .batch = below(&seed, 3) + (i > 0),
				   .in = groups * (1 + below(&seed, 2)),
				   .out = groups * (1 + below(&seed, 2)),
				   .groups = groups,
				   .transposed = i % 3 == 2 };

		for (int d = 0; d < 2; d++) {
			s.taps[d] = 1 + below(&seed, 8);
			s.dilation[d] = 1 + below(&seed, 2);
			s.stride[d] = 1 + below(&seed, 3);
			s.padding[d] = below(&seed, s.taps[d]);
			s.size[d] = s.dilation[d] * (s.taps[d] - 1) + 1 + below(&seed, 40);
		}
		check_case(&s, i % 2 ? TENSOR_F64 : TENSOR_F32, i % 2 ? 1e-12 : 1e-4);
	}
}

/* In a Winograd tile inf - inf would spread NaN to other elements. */
static void non_finite_values_affect_only_their_windows(void **state)
{
	static const float special[] = { INFINITY, -INFINITY, NAN, 3e38f };

	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		for (int stride = 1; stride <= 2; stride++)
			tensor_scope {
				tensor *x = ok(tensor_ones(TENSOR_INTS(1, 16, 25, 25), F32));
				tensor *w = ok(tensor_ones(TENSOR_INTS(16, 16, 3, 3), F32)), *y;
				int64_t n = stride == 1 ? 23 : 12;
				const float *got;

				((float *)tensor_mutable_data(x))[12 * 25 + 12] = special[i];
				y = ok(tensor_conv2d(x, w, tensor_none, TENSOR_INTS(stride),
						     TENSOR_INTS(0), TENSOR_INTS(1), 1));
				assert_shape(y, 1, 16, n, n);
				got = tensor_data(y);
				for (int64_t k = 0; k < 16 * n * n; k++) {
					int64_t row = k / n % n * stride, column = k % n * stride;
					float want = 144;

					if (row >= 10 && row <= 12 && column >= 10 && column <= 12)
						want += special[i] - 1;
					assert_true(isnan(want) ? isnan(got[k]) : got[k] == want);
				}
			}
}

static void integers_agree_with_the_definition(void **state)
{
	whole = true;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		check_case(&shapes[i], TENSOR_I64, 0);
		check_case(&shapes[i], TENSOR_I32, 0);
	}
	whole = false;
}

/* (1 + 2i) x * (3 - i) w = (5 + 5i) x * w */
static void complex_numbers_agree_with_the_definition(void **state)
{
	tensor_options c128 = TENSOR_OPTIONS(.dtype = TENSOR_C128);

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		const struct shape *s = &shapes[i];
		struct data d;
		double rest;

		data_begin(&d, s);
		tensor_scope {
			int64_t first = s->transposed ? s->in : s->out;
			int64_t second = s->transposed ? s->out / s->groups : s->in / s->groups;
			tensor *x = tensor_of(d.x,
					      TENSOR_INTS(s->batch, s->in, s->size[0], s->size[1]),
					      TENSOR_C128);
			tensor *w = tensor_of(d.w,
					      TENSOR_INTS(first, second, s->taps[0], s->taps[1]),
					      TENSOR_C128),
			       *y;

			x = ok(tensor_mul_scalar(x, tensor_scalar_complex(1, 2)));
			w = ok(tensor_mul_scalar(w, tensor_scalar_complex(3, -1)));
			y = ok(tensor_convolution(x, w, tensor_none, ARGS(s)));
			y = ok(tensor_div(y, ok(tensor_full(TENSOR_SCALAR_SHAPE,
							    tensor_scalar_complex(5, 5), c128))));
			y = ok(tensor_view_as_real(y));
			check_values_(tensor_select(y, -1, 0), d.y, d.ny, 1e-12, __FILE__,
				      __LINE__);
			y = ok(tensor_max(ok(tensor_abs(ok(tensor_select(y, -1, 1))))));
			assert_done(tensor_item(y, &rest));
			assert_true(rest < 1e-12);
		}
		data_end(&d);
	}
}

static void same_and_valid_padding_equal_explicit_padding(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(1, 4)), *w = iota(1, TENSOR_INTS(1, 1, 2));
		tensor *m = iota(0, TENSOR_INTS(1, 5, 5)), *k = iota(0, TENSOR_INTS(1, 1, 3, 3));
		tensor *same, *by_hand;
		double apart;

		/* Padding "same" with an even filter adds the odd zero at the end. */
		assert_values(tensor_conv1d_padding(x, w, tensor_none, TENSOR_INTS(1), "same",
						    TENSOR_INTS(1), 1),
			      0, 5, 8, 11, 4);
		assert_values(tensor_conv1d_padding(x, w, tensor_none, TENSOR_INTS(2), "valid",
						    TENSOR_INTS(1), 1),
			      0, 5, 11);
		same = ok(tensor_conv2d_padding(m, k, tensor_none, TENSOR_INTS(1), "same",
						TENSOR_INTS(1, 2), 1));
		by_hand = ok(tensor_conv2d(m, k, tensor_none, TENSOR_INTS(1), TENSOR_INTS(1, 2),
					   TENSOR_INTS(1, 2), 1));
		assert_shape(same, 1, 5, 5);
		assert_done(tensor_item(
			ok(tensor_max(ok(tensor_abs(ok(tensor_sub(same, by_hand)))))), &apart));
		assert_true(apart == 0);
		assert_fails(tensor_conv1d_padding(x, w, tensor_none, TENSOR_INTS(2), "same",
						   TENSOR_INTS(1), 1),
			     EINVAL, "needs stride 1, got 2");
		assert_fails(tensor_conv1d_padding(x, w, tensor_none, TENSOR_INTS(1), "some",
						   TENSOR_INTS(1), 1),
			     EINVAL, "valid or same, got 'some'");
	}
}

static void f16_and_bf16_are_summed_in_f32(void **state)
{
	tensor_scope {
		tensor_options bf16 = TENSOR_OPTIONS(.dtype = TENSOR_BF16);
		tensor *x = ok(tensor_ones(TENSOR_INTS(1, 258, 1), bf16));
		tensor *w = ok(tensor_ones(TENSOR_INTS(1, 258, 1), bf16));

		/* A sequential sum in bf16 would stay at 256. */
		w = ok(tensor_conv1d(x, ok(tensor_mul_scalar(w, TENSOR_SCALAR(2))), tensor_none,
				     PLAIN));
		assert_int_equal(tensor_dtype(w), TENSOR_BF16);
		assert_values(w, 0, 516);
	}
}

static void conv1d_and_conv3d_take_inputs_without_batch(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(1, 4)), *w = iota(1, TENSOR_INTS(1, 1, 2));
		tensor *cube = iota(0, TENSOR_INTS(1, 1, 2, 2, 2)), *y;

		y = ok(tensor_conv1d(x, w, tensor_none, PLAIN));
		assert_shape(y, 1, 3);
		assert_values(y, 0, 5, 8, 11);
		assert_values(tensor_conv_transpose1d(x, w, tensor_none, PLAIN_BACK), 0, 1, 4, 7,
			      10, 8);
		assert_values(tensor_conv3d(cube, cube, tensor_none, PLAIN), 0, 140);
		assert_values(tensor_conv_transpose3d(ok(tensor_ones(TENSOR_INTS(1, 1, 1, 1), F32)),
						      cube, tensor_none, PLAIN_BACK),
			      0, 0, 1, 2, 3, 4, 5, 6, 7);
		y = ok(tensor_conv2d(ok(tensor_empty(TENSOR_INTS(0, 2, 5, 5), F32)),
				     ok(tensor_ones(TENSOR_INTS(3, 2, 2, 2), F32)), tensor_none,
				     PLAIN));
		assert_shape(y, 0, 3, 4, 4);
		y = ok(tensor_conv2d(ok(tensor_empty(TENSOR_INTS(1, 0, 2, 2), F32)),
				     ok(tensor_empty(TENSOR_INTS(1, 0, 1, 1), F32)),
				     ok(tensor_ones(TENSOR_INTS(1), F32)), PLAIN));
		assert_values(y, 0, 1, 1, 1, 1);
	}
}

static void backward_computes_only_the_masked_outputs(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(1, 1, 3)), *w = iota(1, TENSOR_INTS(1, 1, 2));
		tensor *g = ok(tensor_ones(TENSOR_INTS(1, 1, 2), F32)), *gx, *gw, *gb;

#define BACKWARD(mask)                                                                       \
	tensor_convolution_backward(g, x, w, TENSOR_NO_INTS, TENSOR_INTS(1), TENSOR_INTS(0), \
				    TENSOR_INTS(1), false, TENSOR_INTS(0), 1, mask, &gx, &gw, &gb)
		assert_done(BACKWARD(0));
		assert_true(!gx && !gw && !gb);
		assert_done(BACKWARD(2));
		assert_true(!gx && gw && !gb);
		assert_values(gw, 0, 1, 3);
		assert_done(BACKWARD(5));
		assert_values(gx, 0, 1, 3, 2);
		assert_values(gb, 0, 2);
		g = ok(tensor_ones(TENSOR_INTS(1, 1, 3), F32));
		assert_fails(BACKWARD(1), EINVAL,
			     "grad_output must have the output's shape [1, 1, 2]");
	}
}

static tensor *convolve_on_threads(int n, tensor *x, tensor *w, tensor **gw)
{
	tensor *y, *gx, *gb;

	assert_done(tensor_set_num_threads(n));
	y = ok(tensor_conv2d(x, w, tensor_none, TENSOR_INTS(1), TENSOR_INTS(1), TENSOR_INTS(1), 1));
	assert_done(tensor_convolution_backward(y, x, w, TENSOR_NO_INTS, TENSOR_INTS(1),
						TENSOR_INTS(1), TENSOR_INTS(1), false,
						TENSOR_INTS(0), 1, 3, &gx, gw, &gb));
	return ok(tensor_cat(TENSOR_LIST(y, gx), 1));
}

static void bits_do_not_depend_on_threads(void **state)
{
	int before = tensor_get_num_threads();

	tensor_scope {
		tensor *x = ok(tensor_log(iota(1, TENSOR_INTS(4, 20, 33, 31))));
		tensor *w = ok(tensor_log(iota(1, TENSOR_INTS(24, 20, 3, 3)))), *gw[2], *y[2];

		y[0] = convolve_on_threads(1, x, w, &gw[0]);
		y[1] = convolve_on_threads(3, x, w, &gw[1]);
		assert_memory_equal(tensor_data(y[0]), tensor_data(y[1]), tensor_numel(y[0]) * 4);
		assert_memory_equal(tensor_data(gw[0]), tensor_data(gw[1]),
				    tensor_numel(gw[0]) * 4);
	}
	assert_done(tensor_set_num_threads(before));
}

static void errors_name_the_argument(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_INTS(1, 4, 5, 5), F32));
		tensor *w = ok(tensor_ones(TENSOR_INTS(6, 2, 3, 3), F32));
		tensor *b = ok(tensor_ones(TENSOR_INTS(5), F32));
		tensor_ints one = TENSOR_INTS(1), zero = TENSOR_INTS(0);

#define CONV(x, w, b, stride, padding, dilation, transposed, extra, groups) \
	tensor_convolution(x, w, b, stride, padding, dilation, transposed, extra, groups)
		assert_fails(CONV(x, w, tensor_none, one, zero, one, false, zero, 1), EINVAL,
			     "input must have 2 channels");
		assert_fails(CONV(x, w, tensor_none, one, zero, one, false, zero, 4), EINVAL,
			     "4 groups divide");
		assert_fails(CONV(x, w, tensor_none, one, zero, one, false, zero, 0), EINVAL,
			     "groups must be positive, got 0");
		assert_fails(CONV(x, w, b, one, zero, one, false, zero, 2), EINVAL,
			     "bias must be f32 [6], got f32 [5]");
		assert_fails(CONV(x, w, tensor_none, zero, zero, one, false, zero, 2), EINVAL,
			     "stride must be at least 1, got 0");
		assert_fails(CONV(x, w, tensor_none, one, TENSOR_INTS(0, 0, 0), one, false, zero,
				  2),
			     EINVAL, "padding must have one number or 2, got 3");
		assert_fails(CONV(x, w, tensor_none, one, zero, TENSOR_INTS(1, 3), false, zero, 2),
			     EINVAL, "too small for weight [6, 2, 3, 3] with dilation 3");
		assert_fails(CONV(x, ok(tensor_to(w, F64)), tensor_none, one, zero, one, false,
				  zero, 2),
			     EINVAL, "one dtype, got f32 and f64");
		assert_fails(CONV(x, ok(tensor_ones(TENSOR_INTS(4, 2, 3, 3), F32)), tensor_none,
				  one, zero, one, true, one, 1),
			     EINVAL, "output_padding");
		assert_fails(tensor_conv1d(x, w, tensor_none, PLAIN), EINVAL,
			     "weight must have 3 dimensions");
		assert_fails(tensor_conv2d(ok(tensor_ones(TENSOR_INTS(4, 5), F32)), w, tensor_none,
					   PLAIN),
			     EINVAL, "or 3 without a batch, got [4, 5]");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_definition),
		cmocka_unit_test(depthwise_of_any_shape),
		cmocka_unit_test(non_finite_values_affect_only_their_windows),
		cmocka_unit_test(integers_agree_with_the_definition),
		cmocka_unit_test(complex_numbers_agree_with_the_definition),
		cmocka_unit_test(same_and_valid_padding_equal_explicit_padding),
		cmocka_unit_test(f16_and_bf16_are_summed_in_f32),
		cmocka_unit_test(conv1d_and_conv3d_take_inputs_without_batch),
		cmocka_unit_test(backward_computes_only_the_masked_outputs),
		cmocka_unit_test(bits_do_not_depend_on_threads),
		cmocka_unit_test(errors_name_the_argument),
	};

	return cmocka_run_group_tests_name("conv", tests, NULL, NULL);
}
