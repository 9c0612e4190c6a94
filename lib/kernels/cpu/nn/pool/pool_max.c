// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * max_pool and its gradient: the maximum of each window and its index in the plane. The outputs of
 * a chunk of a row process one tap after the other, in the order of the taps, which is the order in
 * which a single output would: of equal elements the first is taken.
 */
#include "kernels/cpu/nn/pool/pool_short_rows.h"

#include <math.h>

struct max_pool {
	struct pool_shape s;
	void *out;
	int64_t *indices;
	const void *in;
};

/* x is NaN; never true for an integer, without the compiler's warning. */
#define IS_NAN(x) ((x) != (x))

/* f32 has 32-bit indices, as wide as its elements, if a plane has fewer than 2^31 elements. */
#define LOOPS_FILE "kernels/cpu/nn/pool/pool_max_loops.h"
#define I	   int64_t
#include "kernels/cpu/simd/each_int.h"

#define T      double
#define SUFFIX f64
#define LOWEST (-INFINITY)
#include LOOPS_FILE
#undef T
#undef SUFFIX

#define T      float
#define SUFFIX f32_large
#include LOOPS_FILE
#undef SUFFIX
#undef I
#define I      int32_t
#define SUFFIX f32
#include LOOPS_FILE
#undef T
#undef SUFFIX
#undef I
#undef LOWEST
#undef LOOPS_FILE

static int cpu_max_pool(tensor *out, tensor *indices, const tensor *self,
			const struct pool_params *params)
{
	static const parallel_fn rows[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = max_rows_##d,
		DTYPES_NUMBER(ENTRY)
#undef ENTRY
	};
	struct max_pool m = { .s = pool_shape_of(out, self, params),
			      .out = out->data,
			      .indices = indices->data,
			      .in = self->data };
	parallel_fn fn = rows[self->dtype];

	if (!fn)
		return tensor_kernel_no_dtype("max_pool", self->dtype, "cpu");
	if (self->dtype == TENSOR_F32 && m.s.in_plane > INT32_MAX)
		fn = max_rows_f32_large;
	if (out->numel)
		parallel_for(0, m.s.planes * m.s.out[0] * m.s.out[1], pool_grain(&m.s), fn, &m);
	return 0;
}

/* ---- gradient ---- */

struct max_backward {
	struct pool_shape s;
	void *out;
	const void *grad;
	const int64_t *indices;
	_Atomic int64_t wrong; /* an index out of range, valid if failed */
	_Atomic bool failed;
};

#define LOOPS_FILE "kernels/cpu/nn/pool/pool_max_backward_loops.h"
#include "kernels/cpu/simd/each_float.h"

static int cpu_max_pool_backward(tensor *out, const tensor *grad, const tensor *indices,
				 const struct pool_params *params)
{
	struct max_backward m = { .s = pool_shape_of(grad, out, params),
				  .out = out->data,
				  .grad = grad->data,
				  .indices = indices->data };

	if (out->dtype != TENSOR_F32 && out->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("max_pool_backward", out->dtype, "cpu");
	if (out->numel)
		parallel_for(0, m.s.planes, pool_plane_grain(&m.s),
			     out->dtype == TENSOR_F32 ? max_backward_f32 : max_backward_f64, &m);
	if (m.failed)
		return tensor_fail(ERANGE,
				   "max_pool_backward: index %lld is out of range for planes "
				   "of %lld elements",
				   (long long)m.wrong, (long long)m.s.in_plane);
	return 0;
}

CPU_KERNELS(KERNEL(max_pool), KERNEL(max_pool_backward))
