// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Padding by reflection and replication, and its gradient. The source of an output position is the
 * same for all rows, so it is stored once for each padded dimension; the unpadded columns of a row
 * are copied together.
 */
#include "kernels/abi/pad.h"
#include "kernels/cpu/simd/cpu.h"

#include "base/reduced_float.h"
#include "iter/parallel.h"

/* The source of position p in a dimension of size n that is padded by `before` at its begin. */
static int64_t pad_source(int64_t p, int64_t before, int64_t n, bool reflect)
{
	int64_t at = p - before;

	if (at >= 0 && at < n)
		return at;
	if (!reflect)
		return at < 0 ? 0 : n - 1;
	return at < 0 ? -at : 2 * (n - 1) - at;
}

/* The padded tensor, wide, and the unpadded one, core, as planes of three dimensions; if fewer are
 * padded, the first have size 1. */
struct planes {
	int64_t wide[3], core[3];	    /* sizes: depth, rows, columns */
	int64_t wide_step[3], core_step[3]; /* bytes */
	const int64_t *from[3];		    /* positions in core of the positions of wide */
	int64_t low, high;		    /* columns low to high - 1 of wide are unpadded */
	int64_t run;			    /* the column of core that is column low of wide */
	int64_t planes;
	const tensor *wide_t, *core_t;
	int lead; /* dimensions before those of a plane */
};

/* Returns the memory of p->from, a tensor owned by the caller. */
static tensor *planes_init(struct planes *p, const tensor *wide, const tensor *core,
			   const struct pad_params *params)
{
	int64_t total = 0, *map, size = (int64_t)itemsize(wide);
	int missing = 3 - params->n;
	tensor *maps;

	p->lead = wide->ndim - params->n;
	p->wide_t = wide;
	p->core_t = core;
	p->planes = 1;
	for (int i = 0; i < p->lead; i++)
		p->planes *= wide->sizes[i];
	for (int i = 0; i < 3; i++) {
		int d = p->lead + i - missing;

		p->wide[i] = i < missing ? 1 : wide->sizes[d];
		p->core[i] = i < missing ? 1 : core->sizes[d];
		p->wide_step[i] = i < missing ? 0 : wide->strides[d] * size;
		p->core_step[i] = i < missing ? 0 : core->strides[d] * (int64_t)itemsize(core);
		total += p->wide[i];
	}
	maps = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &total, 1);
	if (!maps)
		return NULL;
	map = maps->data;
	for (int i = 0; i < 3; i++) {
		int64_t before = i < missing ? 0 : params->before[i - missing];

		p->from[i] = map;
		for (int64_t k = 0; k < p->wide[i]; k++)
			map[k] = pad_source(k, before, p->core[i], params->reflect);
		map += p->wide[i];
		/* Clamped: negative padding at the end may remove all of core. */
		p->low = before < 0 ? 0 : before < p->wide[i] ? before : p->wide[i];
		p->high = before + p->core[i] < p->wide[i] ? before + p->core[i] : p->wide[i];
		p->run = p->low - before;
	}
	if (p->high < p->low)
		p->high = p->low;
	return maps;
}

/* The address of plane i of t. */
static char *plane_at(const tensor *t, int lead, int64_t i)
{
	char *p = t->data;

	for (int d = lead - 1; d >= 0; d--) {
		p += i % t->sizes[d] * t->strides[d] * (int64_t)itemsize(t);
		i /= t->sizes[d];
	}
	return p;
}

/* The offset of row y of depth z in a plane of the padded tensor. */
static inline int64_t wide_offset(const struct planes *p, int64_t z, int64_t y)
{
	return z * p->wide_step[0] + y * p->wide_step[1];
}

/* The offset of its source in a plane of the unpadded tensor. */
static inline int64_t core_offset(const struct planes *p, int64_t z, int64_t y)
{
	return p->from[0][z] * p->core_step[0] + p->from[1][y] * p->core_step[1];
}

#define LOOPS_FILE "kernels/cpu/shape/pad_loops.h"
#include "kernels/cpu/simd/each_size.h"
#undef LOOPS_FILE

static int cpu_pad(tensor *out, const tensor *self, const struct pad_params *params)
{
	static const parallel_fn fn[] = { pad_rows_1, pad_rows_2, pad_rows_4, pad_rows_8,
					  pad_rows_16 };
	struct planes p;
	tensor *maps = planes_init(&p, out, self, params);
	int64_t grain;

	if (!maps)
		return -thread()->error.code;
	grain = ITER_GRAIN / (p.wide[2] ? p.wide[2] : 1) + 1;
	parallel_for(0, p.planes * p.wide[0] * p.wide[1], grain,
		     fn[__builtin_ctz((unsigned)itemsize(out))], &p);
	tensor_put(maps);
	return 0;
}

/* ---- gradient: a plane is done by one thread, so that its rows are added in order ---- */

#define LOOPS_FILE "kernels/cpu/shape/pad_backward_loops.h"
#include "kernels/cpu/simd/each_complex.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_reduced_float.h"

static int cpu_pad_backward(tensor *out, const tensor *grad, const struct pad_params *params)
{
	static const parallel_fn fn[TENSOR_DTYPE_COUNT] = {
		[TENSOR_F16] = pad_backward_planes_f16, [TENSOR_BF16] = pad_backward_planes_bf16,
		[TENSOR_F32] = pad_backward_planes_f32, [TENSOR_F64] = pad_backward_planes_f64,
		[TENSOR_C64] = pad_backward_planes_c64, [TENSOR_C128] = pad_backward_planes_c128,
	};
	struct planes p;
	int64_t grain;
	tensor *maps;

	if (!fn[out->dtype])
		return tensor_kernel_no_dtype("pad_backward", out->dtype, "cpu");
	maps = planes_init(&p, grad, out, params);
	if (!maps)
		return -thread()->error.code;
	grain = ITER_GRAIN / (p.wide[0] * p.wide[1] * p.wide[2] + 1) + 1;
	parallel_for(0, p.planes, grain, fn[out->dtype], &p);
	tensor_put(maps);
	return 0;
}

CPU_KERNELS(KERNEL(pad), KERNEL(pad_backward))
