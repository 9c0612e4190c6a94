// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* linspace, computed from both ends towards the middle, so that both ends are exact. */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

struct linspace {
	void *out;
	int64_t n;
	double start, end, start_imag, end_imag;
};

/* C: the type that is computed in; END_OF(T, re, im) is an end of the range as a C. */
#define LINSPACE(d, T, C, END_OF)                                                     \
	static void linspace_##d(int64_t begin, int64_t stop, void *ctx)              \
	{                                                                             \
		const struct linspace *r = ctx;                                       \
		T *out = r->out;                                                      \
		int64_t last = r->n - 1, half = r->n / 2;                             \
		C start = END_OF(T, r->start, r->start_imag);                         \
		C end = END_OF(T, r->end, r->end_imag);                               \
		C step = (end - start) / (C)(last ? last : 1);                        \
                                                                                      \
		for (int64_t i = begin; i < stop; i++)                                \
			out[i] = i < half || !last ? (T)(start + step * (C)i) :       \
						     (T)(end - step * (C)(last - i)); \
	}
#define END_REAL(T, re, im)	  ((T)(re))
#define END_INT(T, re, im)	  ((double)(T)(re))
#define END_COMPLEX(T, re, im)	  ((T)((re) + (im)*_Complex_I))
#define LINSPACE_REAL(d, T, D)	  LINSPACE(d, T, T, END_REAL)
#define LINSPACE_INT(d, T, D)	  LINSPACE(d, T, double, END_INT)
#define LINSPACE_COMPLEX(d, T, D) LINSPACE(d, T, T, END_COMPLEX)
DTYPES_INT(LINSPACE_INT)
DTYPES_FLOAT(LINSPACE_REAL)
DTYPES_COMPLEX(LINSPACE_COMPLEX)

#define LINSPACE_ENTRY(d, T, D) [D] = linspace_##d,

static int cpu_linspace(struct tensor_iter *it, const struct pointwise_params *params)
{
	static const parallel_fn fn[TENSOR_DTYPE_COUNT] = { DTYPES_NUMBER(
		LINSPACE_ENTRY) DTYPES_COMPLEX(LINSPACE_ENTRY) };
	struct linspace r = { it->data[0],
			      it->numel,
			      scalar_double(params->a),
			      scalar_double(params->b),
			      scalar_imag(params->a),
			      scalar_imag(params->b) };

	if (!fn[it->dtype])
		return tensor_kernel_no_dtype("linspace", it->dtype, "cpu");
	parallel_for(0, r.n, ITER_GRAIN, fn[it->dtype], &r);
	return 0;
}

CPU_KERNELS(KERNEL(linspace))
