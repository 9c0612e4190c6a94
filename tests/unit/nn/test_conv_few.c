// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions with few output positions, whose weights are read in place or whose vectors are channels, and whose taps of
 * the border are left out; depthwise ones. Small integers make sums of f32 and f64 exact, so they must equal those of
 * i64, which plain loops compute (conv_plain.c).
 */
#include "check.h"

#include <inttypes.h>

#define SPATIAL 3

/* sizes: batch, channels, then the spatial ones; likewise the weight. */
struct shape {
	int dims; /* spatial */
	bool transposed, biased;
	int64_t groups, input[2 + SPATIAL], weight[2 + SPATIAL];
	int64_t stride[SPATIAL], padding[SPATIAL], dilation[SPATIAL], extra[SPATIAL];
};

static uint64_t seed;

/* A pseudo-random number in from..until. */
static int64_t draw(int64_t from, int64_t until)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return from + (int64_t)((seed >> 33) % (uint64_t)(until - from + 1));
}

/* The number of output positions along an axis; 0 or less if the convolution is refused. */
static int64_t out_size(const struct shape *s, int d)
{
	int64_t reach = s->dilation[d] * (s->weight[2 + d] - 1);

	if (s->transposed)
		return (s->input[2 + d] - 1) * s->stride[d] - 2 * s->padding[d] + reach +
		       s->extra[d] + 1;
	if (s->input[2 + d] + 2 * s->padding[d] <= reach)
		return 0;
	return (s->input[2 + d] + 2 * s->padding[d] - reach - 1) / s->stride[d] + 1;
}

/* An axis with 1 to 4 positions. */
static void draw_axis(struct shape *s, int d)
{
	do {
		s->input[2 + d] = draw(1, 5);
		s->weight[2 + d] = draw(1, 5);
		s->stride[d] = draw(1, 3);
		s->padding[d] = draw(0, 3);
		s->dilation[d] = draw(1, 2);
		s->extra[d] = s->transposed ? draw(0, s->stride[d] - 1) : 0;
	} while (out_size(s, d) < 1 || out_size(s, d) > 4);
}

/* Channels for one and several blocks of rows and of depth; sometimes without images or channels. */
static void draw_shape(struct shape *s)
{
	static const int64_t channels[] = { 1, 2, 3, 5, 8, 17, 33, 70, 130 };
	int64_t in = channels[draw(0, 8)], out = channels[draw(0, 8)];

	if (draw(0, 30) == 0)
		in = 0;

	*s = (struct shape){ .dims = (int)draw(1, 3),
			     .transposed = draw(0, 2) == 0,
			     .biased = draw(0, 1),
			     .groups = draw(0, 3) ? 1 : draw(2, 3) };
	if (s->dims == 3 && in * out > 600)
		s->dims = 2;
	s->input[0] = draw(0, 15) ? draw(1, 12) : draw(0, 1) * 40;
	s->input[1] = s->groups * in;
	s->weight[0] = s->transposed ? s->input[1] : s->groups * out;
	s->weight[1] = s->transposed ? out : in;
	for (int d = 0; d < s->dims; d++)
		draw_axis(s, d);
}

/* Values -3..3. */
static tensor *whole_numbers(const int64_t *sizes, int n)
{
	tensor *t = ok(tensor_empty((tensor_ints){ sizes, n }, I64));
	int64_t *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = draw(-3, 3);
	return t;
}

struct operands {
	tensor *x, *w, *bias, *gy;
};

struct results {
	tensor *y, *gx, *gw;
};

static tensor *converted(tensor *t, enum tensor_dtype dtype)
{
	return ok(tensor_to(t, OF(dtype)));
}

static struct results convolve(const struct shape *s, const struct operands *o,
			       enum tensor_dtype dtype)
{
#define LIST(p) ((tensor_ints){ (p), s->dims })
#define ARGS                                                                                 \
	LIST(s->stride), LIST(s->padding), LIST(s->dilation), s->transposed, LIST(s->extra), \
		s->groups
	tensor *x = converted(o->x, dtype), *w = converted(o->w, dtype), *gb;
	tensor *bias = s->biased ? converted(o->bias, dtype) : tensor_none;
	struct results r;

	r.y = ok(tensor_convolution(x, w, bias, ARGS));
	assert_done(tensor_convolution_backward(converted(o->gy, dtype), x, w, TENSOR_NO_INTS, ARGS,
						3, &r.gx, &r.gw, &gb));
	return r;
}

static void check_equal(const struct shape *s, tensor *got, tensor *want, const char *name)
{
	int64_t *a, n = tensor_numel(want);
	const int64_t *b = tensor_data(want);

	assert_int_equal(tensor_numel(got), n);
	a = tensor_mutable_data(ok(tensor_contiguous(ok(tensor_to(got, I64)))));
	for (int64_t i = 0; i < n; i++)
		if (a[i] != b[i]) {
			for (int d = 0; d < s->dims; d++)
				print_error("axis %d: input %" PRId64 " taps %" PRId64
					    " stride %" PRId64 " padding %" PRId64
					    " dilation %" PRId64 " extra %" PRId64 "\n",
					    d, s->input[2 + d], s->weight[2 + d], s->stride[d],
					    s->padding[d], s->dilation[d], s->extra[d]);
			fail_msg("%s: element %" PRId64 " of batch %" PRId64 ", weight %" PRId64
				 " x %" PRId64 ", %" PRId64 " groups%s is %" PRId64
				 ", not %" PRId64,
				 name, i, s->input[0], s->weight[0], s->weight[1], s->groups,
				 s->transposed ? ", transposed," : "", a[i], b[i]);
		}
}

static struct operands draw_operands(const struct shape *s)
{
	int64_t out[2 + SPATIAL] = { s->input[0],
				     s->transposed ? s->groups * s->weight[1] : s->weight[0] };

	for (int d = 0; d < s->dims; d++)
		out[2 + d] = out_size(s, d);
	return (struct operands){ .x = whole_numbers(s->input, 2 + s->dims),
				  .w = whole_numbers(s->weight, 2 + s->dims),
				  .bias = whole_numbers(out + 1, 1),
				  .gy = whole_numbers(out, 2 + s->dims) };
}

static void floats_equal_integers(void **state)
{
	seed = 1;
	for (int i = 0; i < 600; i++)
		tensor_scope {
			struct results want, got;
			struct operands o;
			struct shape s;

			draw_shape(&s);
			o = draw_operands(&s);
			want = convolve(&s, &o, TENSOR_I64);
			for (int single = 0; single < 2; single++) {
				got = convolve(&s, &o, single ? TENSOR_F32 : TENSOR_F64);
				check_equal(&s, got.y, want.y, "output");
				check_equal(&s, got.gx, want.gx, "gradient of the input");
				check_equal(&s, got.gw, want.gw, "gradient of the weight");
			}
		}
}

static void assert_same_bits(tensor *a, tensor *b)
{
	assert_memory_equal(tensor_data(a), tensor_data(b), (size_t)tensor_numel(a) * 4);
}

/* The last layers of a ResNet: 1 by 1, 2 by 2 and 4 by 4 positions, stride 1 and 2. */
static void bits_do_not_depend_on_threads(void **state)
{
	int before = tensor_get_num_threads();

	for (int64_t size = 1; size <= 4; size *= 2)
		for (int64_t stride = 1; stride <= 2; stride++)
			tensor_scope {
				struct shape s = { .dims = 2,
						   .groups = 1,
						   .input = { 8, 150, size, size },
						   .weight = { 140, 150, 3, 3 },
						   .stride = { stride, stride },
						   .padding = { 1, 1 },
						   .dilation = { 1, 1 } };
				struct operands o = draw_operands(&s);
				struct results r[2];

				o.x = ok(tensor_sin(converted(o.x, TENSOR_F32)));
				o.w = ok(tensor_sin(converted(o.w, TENSOR_F32)));
				for (int i = 0; i < 2; i++) {
					assert_done(tensor_set_num_threads(i ? 3 : 1));
					r[i] = convolve(&s, &o, TENSOR_F32);
				}
				assert_same_bits(r[0].y, r[1].y);
				assert_same_bits(r[0].gx, r[1].gx);
				assert_same_bits(r[0].gw, r[1].gw);
			}
	assert_done(tensor_set_num_threads(before));
}

static void check_shape(const struct shape *s)
{
	struct operands o = draw_operands(s);
	struct results want = convolve(s, &o, TENSOR_I64), got, r[2];

	for (int single = 0; single < 2; single++) {
		got = convolve(s, &o, single ? TENSOR_F32 : TENSOR_F64);
		check_equal(s, got.y, want.y, "output");
		check_equal(s, got.gx, want.gx, "gradient of the input");
	}
	o.x = ok(tensor_sin(converted(o.x, TENSOR_F32)));
	o.w = ok(tensor_sin(converted(o.w, TENSOR_F32)));
	for (int i = 0; i < 2; i++) {
		assert_done(tensor_set_num_threads(i ? 3 : 1));
		r[i] = convolve(s, &o, TENSOR_F32);
	}
	assert_same_bits(r[0].y, r[1].y);
	assert_same_bits(r[0].gx, r[1].gx);
}

/* Some ten to some hundred positions and many channels: tiles have the positions whose taps read the same part of the input. */
static void small_planes_equal_integers(void **state)
{
	static const struct shape shapes[] = {
		{ .dims = 2,
		  .biased = true,
		  .groups = 1,
		  .input = { 1, 20, 7, 9 },
		  .weight = { 40, 20, 3, 3 },
		  .stride = { 1, 1 },
		  .padding = { 1, 1 },
		  .dilation = { 1, 1 } },
		{ .dims = 2,
		  .biased = true,
		  .groups = 1,
		  .input = { 3, 33, 13, 14 },
		  .weight = { 70, 33, 3, 3 },
		  .stride = { 2, 2 },
		  .padding = { 1, 1 },
		  .dilation = { 1, 1 } },
		{ .dims = 2,
		  .groups = 1,
		  .input = { 2, 150, 7, 7 },
		  .weight = { 64, 150, 3, 3 },
		  .stride = { 2, 1 },
		  .padding = { 2, 1 },
		  .dilation = { 1, 1 } },
		{ .dims = 2,
		  .biased = true,
		  .groups = 2,
		  .input = { 2, 70, 11, 7 },
		  .weight = { 80, 35, 5, 3 },
		  .stride = { 1, 3 },
		  .padding = { 4, 1 },
		  .dilation = { 2, 1 } },
		{ .dims = 2,
		  .groups = 1,
		  .input = { 5, 130, 7, 7 },
		  .weight = { 48, 130, 1, 1 },
		  .stride = { 1, 1 },
		  .padding = { 0, 0 },
		  .dilation = { 1, 1 } },
		{ .dims = 2,
		  .groups = 1,
		  .input = { 1, 48, 9, 9 },
		  .weight = { 48, 48, 1, 1 },
		  .stride = { 2, 2 },
		  .padding = { 0, 0 },
		  .dilation = { 1, 1 } },
		{ .dims = 2,
		  .transposed = true,
		  .biased = true,
		  .groups = 1,
		  .input = { 1, 64, 5, 7 },
		  .weight = { 64, 32, 3, 3 },
		  .stride = { 2, 2 },
		  .padding = { 1, 1 },
		  .extra = { 1, 1 },
		  .dilation = { 1, 1 } },
		{ .dims = 2,
		  .transposed = true,
		  .biased = true,
		  .groups = 2,
		  .input = { 2, 40, 7, 5 },
		  .weight = { 40, 33, 2, 3 },
		  .stride = { 2, 3 },
		  .padding = { 0, 1 },
		  .extra = { 1, 0 },
		  .dilation = { 1, 2 } },
		{ .dims = 3,
		  .biased = true,
		  .groups = 1,
		  .input = { 1, 17, 3, 7, 5 },
		  .weight = { 32, 17, 3, 3, 2 },
		  .stride = { 1, 2, 1 },
		  .padding = { 1, 1, 1 },
		  .dilation = { 1, 1, 1 } },
		{ .dims = 1,
		  .biased = true,
		  .groups = 1,
		  .input = { 5, 48, 201 },
		  .weight = { 64, 48, 11 },
		  .stride = { 3 },
		  .padding = { 40 },
		  .dilation = { 8 } },
	};

	int before = tensor_get_num_threads();

	seed = 2;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		tensor_scope
			check_shape(&shapes[i]);
	assert_done(tensor_set_num_threads(before));
}

/* Lines, and planes whose gradients are computed two lines at a time, of less and more than a vector and with any border. */
static void depthwise_equal_integers(void **state)
{
	int before = tensor_get_num_threads();

	seed = 3;
	for (int i = 0; i < 300; i++)
		tensor_scope {
			int64_t channels = draw(2, 5), taps = draw(1, 4) * 2 - 1,
				stride = draw(1, 2);
			struct shape s = { .dims = (int)draw(1, 2),
					   .transposed = draw(0, 1),
					   .biased = draw(0, 1),
					   .groups = channels,
					   .input = { draw(1, 2), channels },
					   .weight = { channels, 1 } };

			for (int d = 0; d < s.dims; d++) {
				s.input[2 + d] = draw(7, s.dims == 1 ? 200 : 70);
				s.weight[2 + d] = taps;
				s.stride[d] = s.dims == 1 ? 1 : stride;
				s.padding[d] = taps / 2 % 2 + 2 * draw(0, 1);
				s.dilation[d] = s.dims == 1 ? draw(1, 2) : 1;
				s.extra[d] = s.transposed ? draw(0, s.stride[d] - 1) : 0;
			}
			if (out_size(&s, 0) > 0 && (s.dims == 1 || out_size(&s, 1) > 0))
				check_shape(&s);
		}
	assert_done(tensor_set_num_threads(before));
}

/* As in PyTorch: 0 * infinity is not added for a tap that only reads the border. */
static void taps_of_the_border_are_not_read(void **state)
{
	for (int groups = 1; groups <= 4; groups += 3)
		tensor_scope {
			struct shape s = { .dims = 2,
					   .groups = groups,
					   .input = { 2, 4, 1, 1 },
					   .weight = { 4, 4 / groups, 3, 3 },
					   .stride = { 1, 1 },
					   .padding = { 1, 1 },
					   .dilation = { 1, 1 } };
			tensor *x = ok(tensor_ones(TENSOR_INTS(2, 4, 1, 1), F32));
			tensor *w = ok(tensor_full((tensor_ints){ s.weight, 4 }, S(INFINITY), F32));
			struct operands o = { .x = x, .w = w, .gy = x };
			struct results r;

			for (int64_t i = 4; i < tensor_numel(w); i += 9)
				((float *)tensor_mutable_data(w))[i] = 2;
			r = convolve(&s, &o, TENSOR_F32);
			for (int64_t i = 0; i < 8; i++) {
				assert_true(((const float *)tensor_data(r.y))[i] == 8 / groups);
				assert_true(((const float *)tensor_data(r.gx))[i] == 8 / groups);
			}
			for (int64_t i = 0; i < tensor_numel(w); i++)
				assert_true(((const float *)tensor_data(r.gw))[i] ==
					    (i % 9 == 4 ? 2 : 0));
		}
}

/* Time that is used for the convolution of ones and its gradients, whose sums are counts of taps. */
static double seconds_for(tensor *x, tensor *w, int64_t stride, int64_t apart, double taps)
{
	double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	tensor *y, *gx, *gw, *gb;

	y = ok(tensor_conv1d(x, w, tensor_none, TENSOR_INTS(stride), TENSOR_INTS(apart - 1),
			     TENSOR_INTS(apart), 1));
	assert_done(tensor_convolution_backward(ok(tensor_ones_like(y, TENSOR_OPTIONS(0))), x, w,
						TENSOR_NO_INTS, TENSOR_INTS(stride),
						TENSOR_INTS(apart - 1), TENSOR_INTS(apart), false,
						TENSOR_INTS(0), 1, 3, &gx, &gw, &gb));
	begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
	assert_values(ok(tensor_sum(tensor_to(y, F64))), 0, taps);
	assert_values(ok(tensor_sum(tensor_to(gx, F64))), 0, taps);
	assert_values(ok(tensor_sum(tensor_to(gw, F64))), 0, taps);
	return begin;
}

/* With as many phases as taps, loops over both would take seconds. */
static void long_filters_take_time_in_proportion(void **state)
{
	const int64_t n = 1 << 16;

	(void)state;
	tensor_scope
		assert_true(seconds_for(ok(tensor_ones(TENSOR_INTS(1, 2, 2 * n), F32)),
					ok(tensor_ones(TENSOR_INTS(2, 2, n), F32)), n, 1,
					8.0 * n) < 3);
}

/* One of three taps reads the input; a border for the others would have gigabytes. */
static void taps_far_outside_cost_nothing(void **state)
{
	const int64_t apart = 1 << 28;

	(void)state;
	tensor_scope
		assert_true(seconds_for(ok(tensor_ones(TENSOR_INTS(1, 2, 3), F32)),
					ok(tensor_ones(TENSOR_INTS(2, 2, 3), F32)), 1, apart,
					4.0) < 1);
}

/* Tensors without elements may have sizes whose products overflow, to a size that is possible. */
static void sizes_that_overflow_are_refused(void **state)
{
	(void)state;
	tensor_scope {
		tensor *w = ok(tensor_ones(TENSOR_INTS(1, 1, 3), F32));
		tensor *long_one = ok(tensor_empty(TENSOR_INTS(0, 1, ((int64_t)1 << 40) + 1), F32));
		tensor *longest = ok(tensor_empty(TENSOR_INTS(0, 1, INT64_MAX), F32));
		tensor *none = ok(tensor_empty(TENSOR_INTS(1, 0, 5), F32));
		tensor *none_w = ok(tensor_empty(TENSOR_INTS(0, 4, 3), F32));

		assert_fails(tensor_conv_transpose1d(long_one, w, tensor_none, TENSOR_INTS(1 << 24),
						     TENSOR_INTS(0), TENSOR_INTS(0), 1,
						     TENSOR_INTS(1)),
			     EINVAL, "overflows");
		assert_fails(tensor_conv1d(longest, w, tensor_none, TENSOR_INTS(1), TENSOR_INTS(9),
					   TENSOR_INTS(1), 1),
			     EINVAL, "overflows");
		assert_fails(tensor_conv1d(none, none_w, tensor_none, TENSOR_INTS(1),
					   TENSOR_INTS(0), TENSOR_INTS(1), (int64_t)1 << 62),
			     EINVAL, "overflows");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floats_equal_integers),
		cmocka_unit_test(bits_do_not_depend_on_threads),
		cmocka_unit_test(small_planes_equal_integers),
		cmocka_unit_test(depthwise_equal_integers),
		cmocka_unit_test(taps_of_the_border_are_not_read),
		cmocka_unit_test(long_filters_take_time_in_proportion),
		cmocka_unit_test(taps_far_outside_cost_nothing),
		cmocka_unit_test(sizes_that_overflow_are_refused),
	};

	return cmocka_run_group_tests_name("conv_few", tests, NULL, NULL);
}
