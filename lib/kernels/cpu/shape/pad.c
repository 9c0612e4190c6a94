// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Padding by reflection and replication, and backwards. Where an output position comes from is
 * the same for all rows, so it is written down once for each padded dimension; the middle of a
 * row is one run.
 */
#include "kernels/abi/pad.h"
#include "kernels/cpu/simd/cpu.h"

#include "base/reduced_float.h"
#include "iter/parallel.h"

/* Position p of a dimension of size n that was padded in front by `before`. */
static int64_t source_of(int64_t p, int64_t before, int64_t n, bool reflect)
{
	int64_t at = p - before;

	if (at >= 0 && at < n)
		return at;
	if (!reflect)
		return at < 0 ? 0 : n - 1;
	return at < 0 ? -at : 2 * (n - 1) - at;
}

/* The padded tensor (`wide`) and the other one (`core`) as up to three dimensions of a plane, and
 * planes. Dimensions that are not padded are made up with size 1. */
struct planes {
	int64_t wide[3], core[3];	    /* sizes: depth, rows, columns */
	int64_t wide_step[3], core_step[3]; /* bytes */
	const int64_t *from[3];		    /* where positions of wide lie in core */
	int64_t low, high;		    /* columns of wide that are one run of core */
	int64_t run;			    /* where in core that run begins */
	int64_t planes;
	const tensor *wide_t, *core_t;
	int lead; /* dimensions in front of the plane */
};

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
			map[k] = source_of(k, before, p->core[i], params->reflect);
		map += p->wide[i];
		/* What is cut off behind may reach into what is added in front. */
		p->low = before < 0 ? 0 : before < p->wide[i] ? before : p->wide[i];
		p->high = before + p->core[i] < p->wide[i] ? before + p->core[i] : p->wide[i];
		p->run = p->low - before;
	}
	if (p->high < p->low)
		p->high = p->low;
	return maps;
}

/* Where plane i of t begins. */
static char *plane_at(const tensor *t, int lead, int64_t i)
{
	char *p = t->data;

	for (int d = lead - 1; d >= 0; d--) {
		p += i % t->sizes[d] * t->strides[d] * (int64_t)itemsize(t);
		i /= t->sizes[d];
	}
	return p;
}

struct bits16 {
	uint64_t w[2];
};

#define PAD(n, T)                                                                                 \
	static void pad_row_##n(const struct planes *p, char *o, const char *s)                   \
	{                                                                                         \
		const int64_t *from = p->from[2], so = p->wide_step[2], ss = p->core_step[2];     \
                                                                                                  \
		for (int64_t k = 0; k < p->low; k++)                                              \
			*(T *)(o + k * so) = *(const T *)(s + from[k] * ss);                      \
		if (so == sizeof(T) && ss == sizeof(T))                                           \
			memcpy(o + p->low * so, s + p->run * ss, (p->high - p->low) * sizeof(T)); \
		else                                                                              \
			for (int64_t k = p->low; k < p->high; k++)                                \
				*(T *)(o + k * so) = *(const T *)(s + from[k] * ss);              \
		for (int64_t k = p->high; k < p->wide[2]; k++)                                    \
			*(T *)(o + k * so) = *(const T *)(s + from[k] * ss);                      \
	}                                                                                         \
	static void pad_rows_##n(int64_t begin, int64_t end, void *ctx)                           \
	{                                                                                         \
		const struct planes *p = ctx;                                                     \
                                                                                                  \
		for (int64_t i = begin; i < end; i++) {                                           \
			int64_t y = i % p->wide[1], z = i / p->wide[1] % p->wide[0];              \
			int64_t plane = i / p->wide[1] / p->wide[0];                              \
                                                                                                  \
			pad_row_##n(p,                                                            \
				    plane_at(p->wide_t, p->lead, plane) + z * p->wide_step[0] +   \
					    y * p->wide_step[1],                                  \
				    plane_at(p->core_t, p->lead, plane) +                         \
					    p->from[0][z] * p->core_step[0] +                     \
					    p->from[1][y] * p->core_step[1]);                     \
		}                                                                                 \
	}
PAD(1, uint8_t)
PAD(2, uint16_t)
PAD(4, uint32_t)
PAD(8, uint64_t)
PAD(16, struct bits16)

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

/* ---- backwards: a plane stays on one thread, its rows are added in order ---- */

#define PAD_BACK(NAME, T, C, LOAD, STORE)                                                        \
	static void back_row_##NAME(const struct planes *p, char *o, const char *s)              \
	{                                                                                        \
		const int64_t *from = p->from[2], ss = p->wide_step[2], so = p->core_step[2];    \
                                                                                                 \
		for (int64_t k = 0; k < p->low; k++) {                                           \
			T *to = (T *)(o + from[k] * so);                                         \
			*to = STORE((C)(LOAD(*to) + LOAD(*(const T *)(s + k * ss))));            \
		}                                                                                \
		if (so == sizeof(T) && ss == sizeof(T)) {                                        \
			T *to = (T *)o + p->run;                                                 \
			const T *x = (const T *)s + p->low;                                      \
			IVDEP for (int64_t k = 0; k < p->high - p->low; k++)                     \
				to[k] = STORE((C)(LOAD(to[k]) + LOAD(x[k])));                    \
		} else {                                                                         \
			for (int64_t k = p->low; k < p->high; k++) {                             \
				T *to = (T *)(o + from[k] * so);                                 \
				*to = STORE((C)(LOAD(*to) + LOAD(*(const T *)(s + k * ss))));    \
			}                                                                        \
		}                                                                                \
		for (int64_t k = p->high; k < p->wide[2]; k++) {                                 \
			T *to = (T *)(o + from[k] * so);                                         \
			*to = STORE((C)(LOAD(*to) + LOAD(*(const T *)(s + k * ss))));            \
		}                                                                                \
	}                                                                                        \
	static void back_planes_##NAME(int64_t begin, int64_t end, void *ctx)                    \
	{                                                                                        \
		const struct planes *p = ctx;                                                    \
                                                                                                 \
		for (int64_t i = begin; i < end; i++) {                                          \
			char *o = plane_at(p->core_t, p->lead, i);                               \
			const char *s = plane_at(p->wide_t, p->lead, i);                         \
                                                                                                 \
			for (int64_t z = 0; z < p->wide[0]; z++)                                 \
				for (int64_t y = 0; y < p->wide[1]; y++)                         \
					back_row_##NAME(p,                                       \
							o + p->from[0][z] * p->core_step[0] +    \
								p->from[1][y] * p->core_step[1], \
							s + z * p->wide_step[0] +                \
								y * p->wide_step[1]);            \
		}                                                                                \
	}
#define SAME(x) (x)
PAD_BACK(f16, uint16_t, float, f16_to_f32, f32_to_f16)
PAD_BACK(bf16, uint16_t, float, bf16_to_f32, f32_to_bf16)
PAD_BACK(f32, float, float, SAME, SAME)
PAD_BACK(f64, double, double, SAME, SAME)
PAD_BACK(c64, float complex, float complex, SAME, SAME)
PAD_BACK(c128, double complex, double complex, SAME, SAME)

static int cpu_pad_backward(tensor *out, const tensor *grad, const struct pad_params *params)
{
	static const parallel_fn fn[TENSOR_DTYPE_COUNT] = {
		[TENSOR_F16] = back_planes_f16, [TENSOR_BF16] = back_planes_bf16,
		[TENSOR_F32] = back_planes_f32, [TENSOR_F64] = back_planes_f64,
		[TENSOR_C64] = back_planes_c64, [TENSOR_C128] = back_planes_c128,
	};
	struct planes p;
	int64_t grain;
	tensor *maps;

	if (!fn[out->dtype])
		return kernel_no_dtype("pad_backward", out->dtype, "cpu");
	maps = planes_init(&p, grad, out, params);
	if (!maps)
		return -thread()->error.code;
	grain = ITER_GRAIN / (p.wide[0] * p.wide[1] * p.wide[2] + 1) + 1;
	parallel_for(0, p.planes, grain, fn[out->dtype], &p);
	tensor_put(maps);
	return 0;
}

CPU_KERNELS(K(pad), K(pad_backward))
