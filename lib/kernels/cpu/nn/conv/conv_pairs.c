// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions of bf16 by the instruction that adds the products of pairs. A unit of 32 bits has the
 * elements of two channels at a position: with units for elements, conv_implicit_gemm.h computes
 * sums of half as many channels. An odd channel is paired with zero. Results are f32.
 */
#include "kernels/cpu/nn/conv/conv.h"
#include "kernels/cpu/simd/vec_reduced_float.h"

#include "iter/parallel.h"

#ifdef VEC_PAIRS
#include "kernels/cpu/linalg/matmul_f32.h"

#define MULADD	     vec_add_pairs
#define BROADCAST(x) vec_broadcast_pair(&(x))
#define CONV(x)	     CPU_NAME(x##_pairs)

#include "kernels/cpu/linalg/matmul_pack.h"
#include "kernels/cpu/linalg/matmul_tile.h"

#include "kernels/cpu/nn/conv/conv_tile.h"
#include "kernels/cpu/simd/tiles_pairs.h"
#define NO_DEPTHWISE
#include "kernels/cpu/nn/conv/conv_implicit_gemm.h"
#include "kernels/cpu/nn/conv/conv_channels.h"
#define E		 uint16_t
#define UNIT		 2
#define LOAD_UNITS(p, n) vec_load_pairs(p, n)
#include "kernels/cpu/nn/conv/conv_wgrad.h"

#define UNITS_WORK (1 << 15) /* units made by a chunk */

/* Pairs of planes: outer times groups times `pairs` of them. */
struct unit_planes {
	const uint16_t *from;
	float *to;
	int64_t channels, pairs, plane; /* of a group */
};

static void make_units(int64_t begin, int64_t end, void *ctx)
{
	const struct unit_planes *u = ctx;

	for (int64_t i = begin; i < end; i++) {
		int64_t group = i / u->pairs, channel = i % u->pairs * 2;
		const uint16_t *low = u->from + (group * u->channels + channel) * u->plane;
		const uint16_t *high = channel + 1 < u->channels ? low + u->plane : NULL;
		float *to = u->to + i * u->plane;

		if (u->plane <= LANES && high) { /* both planes are in one vector */
			STORE(to, PART(u->plane),
			      vec_pair_halves(vec_load_pairs(low, 2 * u->plane), u->plane));
			continue;
		}
		for (int64_t j = 0; j < u->plane; j += LANES) {
			int64_t n = min64(u->plane - j, LANES);
			vec_reduced_float zero = { 0 };
			VEC units =
				vec_make_pairs(vec_load_reduced_float(low + j, n),
					       high ? vec_load_reduced_float(high + j, n) : zero);

			STORE(to + j, PART(n), units);
		}
	}
}

/*
 * t[outer, groups * channels, ...] as units. Returns their storage, which is the caller's. Single
 * elements of an even number of channels are units already.
 */
static struct tensor_storage *units_of(struct tensor *units, const tensor *t, int64_t outer,
				       int64_t groups, int64_t channels)
{
	struct unit_planes u = { .from = t->data,
				 .channels = channels,
				 .pairs = (channels + 1) / 2,
				 .plane = t->numel / (outer * groups * channels) };
	int64_t planes = outer * groups * u.pairs;
	bool made = u.plane == 1 && channels % 2 == 0 && (uintptr_t)t->data % sizeof(float) == 0;
	struct tensor_storage *mem;

	*units = *t;
	units->dtype = TENSOR_F32;
	units->numel = planes * u.plane;
	if (made) {
		storage_get(t->storage);
		return t->storage;
	}
	mem = storage_alloc(TENSOR_DEVICE_CPU, planes * u.plane * sizeof(float), false);
	if (!mem)
		return NULL;
	u.to = units->data = mem->data;
	parallel_for(0, planes, u.plane < UNITS_WORK ? UNITS_WORK / u.plane : 1, make_units, &u);
	return mem;
}

/*
 * Calls compute() with units of a and of the weight, whose channels are summed: those of the input
 * or, transposed, of the output.
 */
int CPU_NAME(conv_as_units)(convolution_kernel compute, tensor *out, const tensor *a,
			    const tensor *weight, const tensor *bias, const struct conv_params *p,
			    bool transposed)
{
	int64_t groups = p->groups, channels = a->sizes[1] / groups;
	struct tensor_storage *planes, *taps;
	struct tensor x, w;
	int err;

	planes = units_of(&x, a, a->sizes[0], groups, channels);
	if (!planes)
		return -thread()->error.code;
	x.sizes[1] = groups * ((channels + 1) / 2);
	taps = transposed ? units_of(&w, weight, 1, groups, channels) :
			    units_of(&w, weight, weight->sizes[0], 1, channels);
	if (!taps) {
		storage_put(planes);
		return -thread()->error.code;
	}
	w.sizes[transposed ? 0 : 1] = transposed ? x.sizes[1] : (channels + 1) / 2;
	err = compute(out, &x, &w, bias, p);
	storage_put(taps);
	storage_put(planes);
	return err;
}
#else
int CPU_NAME(conv_implicit_gemm_pairs)(const struct conv_gemm *c)
{
	return tensor_fail(EOPNOTSUPP, "convolution: no products of pairs");
}

int CPU_NAME(conv_channels_pairs)(const struct conv_channels *c)
{
	return tensor_fail(EOPNOTSUPP, "convolution: no products of pairs");
}

int CPU_NAME(conv_as_units)(convolution_kernel compute, tensor *out, const tensor *a,
			    const tensor *weight, const tensor *bias, const struct conv_params *p,
			    bool transposed)
{
	return tensor_fail(EOPNOTSUPP, "convolution: no products of pairs");
}

int CPU_NAME(conv_wgrad_pairs)(const struct conv_wgrad *c)
{
	return tensor_fail(EOPNOTSUPP, "convolution_backward: no products of pairs");
}
#endif
