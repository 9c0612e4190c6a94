// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* grid_sampler_2d beside a plain loop, with sizes around chunks of 64 points and vectors of channels. */
#include "check.h"

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

struct sampler {
	int64_t mode, padding;
	bool align;
};

static double clip(double x, int64_t n)
{
	return x > 0 ? fmin(x, (double)(n - 1)) : 0;
}

static double padded(double x, int64_t n, const struct sampler *s)
{
	double low = s->align ? 0 : -0.5, span = s->align ? (double)(n - 1) : (double)n, rest;

	if (s->padding == REFLECTION) {
		rest = span > 0 ? fmod(fabs(x - low), 2 * span) : -low;
		x = low + (rest > span ? 2 * span - rest : rest);
	}
	return s->padding == ZEROS ? x : clip(x, n);
}

static double cubic(double d)
{
	const double a = -0.75;

	d = fabs(d);
	return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 :
	       d < 2  ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a :
			0;
}

/* The positions and the weights of coordinate x along an axis of n elements; -1 is outside. */
static int taps_of(double x, int64_t n, const struct sampler *s, int64_t *at, double *w)
{
	double p = s->align ? (x + 1) / 2 * (double)(n - 1) : ((x + 1) * (double)n - 1) / 2;
	int count = s->mode == BICUBIC ? 4 : s->mode == NEAREST ? 1 : 2;

	if (s->mode != BICUBIC)
		p = padded(p, n, s);
	for (int k = 0; k < count; k++) {
		double q = s->mode == NEAREST ? rint(p) : floor(p) + k - (count == 4);

		w[k] = s->mode == NEAREST ? 1 : s->mode == BICUBIC ? cubic(p - q) : 1 - fabs(p - q);
		q = s->mode == BICUBIC ? padded(q, n, s) : q;
		at[k] = q >= 0 && q < (double)n ? (int64_t)q : -1;
	}
	return count;
}

static double sampled(const double *plane, int64_t h, int64_t w, const double *at,
		      const struct sampler *s)
{
	double wx[4], wy[4], sum = 0;
	int64_t x[4], y[4];
	int nx = taps_of(at[0], w, s, x, wx), ny = taps_of(at[1], h, s, y, wy);

	for (int i = 0; i < ny; i++)
		for (int k = 0; k < nx; k++)
			if (y[i] >= 0 && x[k] >= 0)
				sum += wy[i] * wx[k] * plane[y[i] * w + x[k]];
	return sum;
}

static void check_samples(int64_t n, int64_t c, int64_t h, int64_t w, int64_t places,
			  const struct sampler *s, tensor_options options)
{
	double limit = options.dtype == TENSOR_F32 ? 3e-4 : 1e-11;

	tensor_scope {
		tensor *x = ok(tensor_rand(TENSOR_INTS(n, c, h, w), options)), *grid;
		double *planes = values_of(x), *at, *have;

		/* From -1.5 to 1.5; the second half is strided. */
		grid = ok(tensor_rand(TENSOR_INTS(n, 1, places, 4), options));
		grid = tensor_sub_scalar(tensor_mul_scalar(grid, TENSOR_SCALAR(3)),
					 TENSOR_SCALAR(1.5));
		grid = ok(tensor_narrow(grid, 3, 1, 2));
		at = values_of(grid);
		have = values_of(tensor_grid_sampler_2d(x, grid, s->mode, s->padding, s->align));
		for (int64_t i = 0; i < n * c * places; i++) {
			int64_t plane = i / places, point = plane / c * places + i % places;
			double want = sampled(planes + plane * h * w, h, w, at + 2 * point, s);

			if (!(fabs(have[i] - want) <= limit))
				fail_msg("mode %d, padding %d, align %d, %lld x %lld x %lld, "
					 "point %lld: %g, expected %g",
					 (int)s->mode, (int)s->padding, s->align, (long long)c,
					 (long long)h, (long long)w, (long long)(i % places),
					 have[i], want);
		}
		free(planes);
		free(at);
		free(have);
	}
}

static void samples_equal_a_plain_loop(void **state)
{
	static const int64_t channels[] = { 1, 3, 4, 8, 15, 16, 17, 33 };
	static const int64_t planes[][2] = { { 1, 1 }, { 1, 6 },  { 5, 1 },  { 2, 2 },
					     { 7, 9 }, { 31, 8 }, { 65, 64 } };
	static const int64_t places[] = { 1, 15, 16, 63, 64, 65, 130 };

	tensor_manual_seed(5);
	for (int64_t k = 0; k < 18; k++) {
		const struct sampler s = { k % 3, k / 3 % 3, k / 9 };

		for (size_t i = 0; i < ARRAY_SIZE(planes); i++)
			for (size_t p = 0; p < ARRAY_SIZE(places); p++) {
				int64_t c = channels[(k + (int64_t)i + (int64_t)p) % 8];

				check_samples(2, c, planes[i][0], planes[i][1], places[p], &s,
					      (i + p) % 2 ? F32 : F64);
			}
		check_samples(1, 16, 70, 70, 2000, &s, F32);
		check_samples(1, 20, 20, 30, 700, &s, F32);
		check_samples(1, 20, 20, 30, 700, &s, F64);
	}
}

/* A grid inside of the plane, whose taps are read in pairs. */
static void points_inside_read_their_own_elements(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(1, 3, 9, 11)), *grid, *line;
		double *v;

		/* Between the centres of elements: the mean of four. */
		line = tensor_linspace(TENSOR_SCALAR(-0.9), TENSOR_SCALAR(0.9), 10, F32);
		grid = tensor_expand(tensor_view(line, TENSOR_INTS(1, 1, 10, 1)),
				     TENSOR_INTS(1, 8, 10, 1));
		line = tensor_linspace(TENSOR_SCALAR(-0.875), TENSOR_SCALAR(0.875), 8, F32);
		grid = tensor_cat(
			TENSOR_LIST(grid, tensor_expand(tensor_view(line, TENSOR_INTS(1, 8, 1, 1)),
							TENSOR_INTS(1, 8, 10, 1))),
			3);
		v = values_of(tensor_grid_sampler_2d(x, grid, BILINEAR, ZEROS, true));
		for (int64_t i = 0; i < 3 * 80; i++)
			assert_true(fabs(v[i] - (double)(i / 80 * 99 + i / 10 % 8 * 11 + i % 10 +
							 6)) < 1e-3);
		free(v);
	}
}

/* Elements outside of the taps, and infinite elements beside the plane, are not read. */
static void nan_elements_reach_only_their_points(void **state)
{
	static const int64_t channels[] = { 1, 32 };
	const double at[] = { -1.2, -1.2, 0, 0, 0.2, 0.2, 1.1, 1.1 };

	for (int i = 0; i < 2; i++)
		for (int64_t mode = 0; mode < 3; mode++)
			tensor_scope {
				tensor *x = ok(tensor_ones(TENSOR_INTS(1, channels[i], 8, 8), F32));
				tensor *grid, *y;

				grid = ok(tensor_from_data(at, TENSOR_INTS(1, 1, 4, 2), F64));
				grid = ok(tensor_to(grid, F32));
				/* The first element is that of taps outside of the plane. */
				tensor_fill_(tensor_select(tensor_select(x, 2, 0), 2, 0),
					     TENSOR_SCALAR(NAN));
				y = ok(tensor_grid_sampler_2d(x, grid, mode, ZEROS, false));
				y = tensor_to(tensor_isnan(tensor_select(y, 1, 0)), F64);
				assert_values(tensor_narrow(y, 2, 1, 3), 0, 0, 0, 0);
			}
}

/* NaN and infinite coordinates are outside of the plane, and at its border otherwise. */
static void coordinates_that_are_not_finite(void **state)
{
	static const int64_t channels[] = { 1, 32 };
	const double at[] = { NAN, 0, INFINITY, 0, 0, -INFINITY, 1e30, -1e30 };

	for (int i = 0; i < 2; i++)
		for (int64_t mode = 0; mode < 3; mode++)
			for (int64_t padding = 0; padding < 3; padding++)
				tensor_scope {
					tensor *x = ok(tensor_ones(
						TENSOR_INTS(1, channels[i], 4, 4), F32));
					tensor *grid, *y;

					grid = ok(
						tensor_from_data(at, TENSOR_INTS(1, 1, 4, 2), F64));
					y = ok(tensor_grid_sampler_2d(x, tensor_to(grid, F32), mode,
								      padding, false));
					y = tensor_select(y, 1, 0);
					if (padding == ZEROS)
						assert_values(y, 0, 0, 0, 0, 0);
					else if (mode != BICUBIC)
						assert_values(y, 0, 1, 1, 1, 1);
				}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_equal_a_plain_loop),
		cmocka_unit_test(points_inside_read_their_own_elements),
		cmocka_unit_test(nan_elements_reach_only_their_points),
		cmocka_unit_test(coordinates_that_are_not_finite),
	};

	return cmocka_run_group_tests_name("grid_sampler", tests, NULL, NULL);
}
