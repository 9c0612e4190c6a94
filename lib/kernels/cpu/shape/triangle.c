// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tril and triu: a part of each row is copied, the other part is zero. */
#include "kernels/abi/pad.h"
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

struct triangle {
	const tensor *out, *self;
	int64_t k, rows, columns;
	bool upper;
};

static char *row_at(const tensor *t, int64_t row)
{
	char *p = t->data;

	for (int d = t->ndim - 2; d >= 0; d--) {
		p += row % t->sizes[d] * t->strides[d] * (int64_t)itemsize(t);
		row /= t->sizes[d];
	}
	return p;
}

static int64_t clamp(int64_t v, int64_t high)
{
	return v < 0 ? 0 : v > high ? high : v;
}

#define LOOPS_FILE "kernels/cpu/shape/triangle_loops.h"
#include "kernels/cpu/simd/each_size.h"

static int cpu_triangle(tensor *out, const tensor *self, int64_t k, bool upper)
{
	static const parallel_fn fn[] = { triangle_rows_1, triangle_rows_2, triangle_rows_4,
					  triangle_rows_8, triangle_rows_16 };
	struct triangle t = { out,  self, k, out->sizes[out->ndim - 2], out->sizes[out->ndim - 1],
			      upper };
	int64_t limit = t.rows + t.columns;

	if (!out->numel)
		return 0;
	t.k = k < -limit ? -limit : k > limit ? limit : k;
	parallel_for(0, out->numel / t.columns, ITER_GRAIN / t.columns + 1,
		     fn[__builtin_ctz((unsigned)itemsize(out))], &t);
	return 0;
}

CPU_KERNELS(KERNEL(triangle))
