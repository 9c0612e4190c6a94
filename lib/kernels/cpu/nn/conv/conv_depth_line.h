/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Depthwise convolutions of one line with stride 1, read without a copy: only vectors at the ends of the line need
 * masks. For conv_depth.h.
 */
#ifndef TENSOR_CONV_DEPTH_LINE_H
#define TENSOR_CONV_DEPTH_LINE_H

/* Whether each group is one line of one channel whose border is to be copied. */
static bool is_line(const struct conv_gemm *c)
{
	const struct conv_copy *copy = c->src.copy;

	if (!copy || c->grid[0] != 1 || c->grid[1] != 1 || c->src.group != copy->pitch ||
	    c->out_step[2] != 1)
		return false;
	for (int d = 0; d < AXES - 1; d++) {
		const struct conv_axis *a = &copy->axis[d];

		if (a->size != 1 || a->extent != 1 || a->phases != 1 || a->first + a->phase[0] != 0)
			return false;
	}
	return copy->axis[2].stride == 1 && copy->axis[2].phases == 1;
}

/* One vector of positions, of which n are stored; the first reads element `at` + offset[d]. */
static void line_vector(const T *in, int64_t size, int64_t at, const int64_t *offset, T *out,
			int64_t n, const T *w, int64_t depth, T bias)
{
	VEC sum = bias - (VEC){ 0 };

	for (int64_t d = 0; d < depth; d++) {
		int64_t i = at + offset[d], from = i < 0 ? min64(-i, LANES) : 0;
		int64_t until = i < size ? min64(size - i, LANES) : 0;

		if (from < until)
			sum += w[d] * LOAD(in + i, PART_OF((int)from, (int)until));
	}
	STORE(out, PART(n), sum);
}

static void depth_line(const struct conv_gemm *c, const T *in, T *out, const T *w, T bias)
{
	const struct conv_axis *x = &c->src.copy->axis[2];
	int64_t n = c->grid[2], low = INT64_MAX, high = INT64_MIN, at = x->first + x->phase[0],
		step;
	const int64_t *offset = c->src.offset;

	for (int64_t d = 0; d < c->depth; d++) {
		low = min64(low, at + offset[d]);
		high = at + offset[d] > high ? at + offset[d] : high;
	}
	for (int64_t i = 0; i < n; i += step) {
		VEC sum[LINES];

		step = LANES;
		if (i + low < 0 || i + LINES * LANES > n || i + LINES * LANES + high > x->size) {
			line_vector(in, x->size, i + at, offset, out + i, min64(n - i, LANES), w,
				    c->depth, bias);
			continue;
		}
		step = LINES * LANES;
#pragma GCC unroll 4
		for (int l = 0; l < LINES; l++)
			sum[l] = bias - (VEC){ 0 };
		for (int64_t d = 0; d < c->depth; d++) {
			const T *from = in + i + at + offset[d];
#pragma GCC unroll 4
			for (int l = 0; l < LINES; l++)
				sum[l] += w[d] * *(const VEC *)(from + l * LANES);
		}
#pragma GCC unroll 4
		for (int l = 0; l < LINES; l++)
			*(VEC *)(out + i + l * LANES) = sum[l];
	}
}

#endif
