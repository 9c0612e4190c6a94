// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* linspace: from both ends towards the middle, so that both are exact. */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

struct range {
	void *out;
	int64_t n;
	double start, end, start_imag, end_imag;
};

/* C is what a step is computed in. */
#define LINSPACE(d, T, C, START, END)                                                    \
	static void linspace_##d(int64_t begin, int64_t stop, void *ctx)                 \
	{                                                                                \
		const struct range *r = ctx;                                             \
		T *out = r->out;                                                         \
		int64_t last = r->n - 1, half = r->n / 2;                                \
		C start = START, end = END, step = (end - start) / (C)(last ? last : 1); \
                                                                                         \
		for (int64_t i = begin; i < stop; i++)                                   \
			out[i] = i < half || !last ? (T)(start + step * (C)i) :          \
						     (T)(end - step * (C)(last - i));    \
	}
#define LINSPACE_REAL(d, T, D) LINSPACE(d, T, T, (T)r->start, (T)r->end)
#define LINSPACE_INT(d, T, D)  LINSPACE(d, T, double, (double)(T)r->start, (double)(T)r->end)
#define LINSPACE_COMPLEX(d, T, D)                                     \
	LINSPACE(d, T, T, (T)(r->start + r->start_imag * _Complex_I), \
		 (T)(r->end + r->end_imag * _Complex_I))
DTYPES_INT(LINSPACE_INT)
DTYPES_FLOAT(LINSPACE_REAL)
DTYPES_COMPLEX(LINSPACE_COMPLEX)

static int cpu_linspace(struct tensor_iter *it, const struct pointwise_params *params)
{
#define ENTRY(d, T, D) [D] = linspace_##d,
	static const parallel_fn fn[TENSOR_DTYPE_COUNT] = { DTYPES_NUMBER(ENTRY)
								    DTYPES_COMPLEX(ENTRY) };
	struct range r = { it->data[0],
			   it->numel,
			   scalar_double(params->a),
			   scalar_double(params->b),
			   scalar_imag(params->a),
			   scalar_imag(params->b) };

	if (!fn[it->dtype])
		return kernel_no_dtype("linspace", it->dtype, "cpu");
	parallel_for(0, r.n, ITER_GRAIN, fn[it->dtype], &r);
	return 0;
}

CPU_KERNELS(K(linspace))
