// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* fill and arange. */
#include "kernels/cpu/simd/cpu.h"

/* Elements are copied by size. The output is the only operand; params points to the element. */
#define FILL_LOOP(n, T)                                                                           \
	static void fill_##n(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, \
			     int64_t n1, const void *params)                                      \
	{                                                                                         \
		T v = *(const T *)params;                                                         \
		char *o = data[0];                                                                \
                                                                                                  \
		for (int64_t j = 0; j < n1; j++, o += s1[0]) {                                    \
			if (s0[0] == sizeof(T)) {                                                 \
				for (int64_t i = 0; i < n0; i++)                                  \
					((T *)o)[i] = v;                                          \
			} else {                                                                  \
				for (int64_t i = 0; i < n0; i++)                                  \
					*(T *)(o + i * s0[0]) = v;                                \
			}                                                                         \
		}                                                                                 \
	}
FILL_LOOP(1, uint8_t)
FILL_LOOP(2, uint16_t)
FILL_LOOP(4, uint32_t)
FILL_LOOP(8, uint64_t)
FILL_LOOP(16, double complex)

static int cpu_fill(struct tensor_iter *it, const struct pointwise_params *params)
{
	static const iter_loop loops[] = {
		[1] = fill_1, [2] = fill_2, [4] = fill_4, [8] = fill_8, [16] = fill_16
	};
	_Alignas(16) char element[16];

	if (tensor_element_store(element, it->dtype, params->a) < 0)
		return tensor_kernel_no_dtype("fill", it->dtype, "cpu");
	iter_run(it, loops[dtype_sizes[it->dtype]], element);
	return 0;
}

/* a + i * b, for a one-dimensional output; runs on one thread. C: the type that is computed in. */
#define ARANGE(d, T, C, GET)                                                            \
	static void arange_##d(char *const *data, const int64_t *s0, const int64_t *s1, \
			       int64_t n0, int64_t n1, const void *params)              \
	{                                                                               \
		const struct pointwise_params *p = params;                              \
		C start = GET(p->a), step = GET(p->b);                                  \
                                                                                        \
		for (int64_t i = 0; i < n0; i++)                                        \
			*(T *)(data[0] + i * s0[0]) = (T)(start + step * (C)i);         \
	}
#define ARANGE_INT(d, T, D)   ARANGE(d, T, int64_t, scalar_int)
#define ARANGE_FLOAT(d, T, D) ARANGE(d, T, double, scalar_double)
DTYPES_INT(ARANGE_INT)
DTYPES_FLOAT(ARANGE_FLOAT)
#define ARANGE_ENTRY(d, T, D) [D] = arange_##d,

static int cpu_arange(struct tensor_iter *it, const struct pointwise_params *params)
{
	static const iter_loop loops[TENSOR_DTYPE_COUNT] = { DTYPES_NUMBER(ARANGE_ENTRY) };

	if (!loops[it->dtype])
		return tensor_kernel_no_dtype("arange", it->dtype, "cpu");
	loops[it->dtype](it->data, it->strides[0], it->strides[0], it->numel, 1, params);
	return 0;
}

CPU_KERNELS(K(fill), KERNEL(arange))
