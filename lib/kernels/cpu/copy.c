// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Copies from any dtype to any dtype, fill and arange. To bool is "not zero"; from a float to an
 * integer rounds towards zero.
 */
#include "cpu.h"

#define TO(sd, S, dd, D) UNARY_LOOP(copy_##sd##_##dd, S, D, (D)x)
#define FROM(sd, S, SD)                                                                           \
	UNARY_LOOP(copy_##sd##_b8, S, uint8_t, x != 0)                                          \
	TO(sd, S, u8, uint8_t)                                                                    \
	TO(sd, S, i8, int8_t)                                                                     \
	TO(sd, S, i16, int16_t)                                                                   \
	TO(sd, S, i32, int32_t)                                                                   \
	TO(sd, S, i64, int64_t)                                                                   \
	TO(sd, S, f32, float)                                                                     \
	TO(sd, S, f64, double)
DTYPES_ALL(FROM)

#define ENTRY(sd, dd, DD) [DD] = copy_##sd##_##dd,
#define ROW(sd, S, SD)                                                                            \
	[SD] = {ENTRY(sd, b8, TENSOR_BOOL) ENTRY(sd, u8, TENSOR_U8) ENTRY(sd, i8, TENSOR_I8)    \
			ENTRY(sd, i16, TENSOR_I16) ENTRY(sd, i32, TENSOR_I32)                     \
				ENTRY(sd, i64, TENSOR_I64) ENTRY(sd, f32, TENSOR_F32)             \
					ENTRY(sd, f64, TENSOR_F64)},

/* The same dtype moves bits; floats that went through a float register could lose a NaN's. */
#define BITS(n, T)                                                                                \
	UNARY_LOOP(copy_bits_##n, T, T, x)
BITS(1, uint8_t)
BITS(2, uint16_t)
BITS(4, uint32_t)
BITS(8, uint64_t)

struct bits16 {
	uint64_t w[2];
};
BITS(16, struct bits16)

static iter_loop bits_loop(enum tensor_dtype dtype)
{
	switch (dtype_sizes[dtype]) {
	case 1:
		return copy_bits_1;
	case 2:
		return copy_bits_2;
	case 4:
		return copy_bits_4;
	case 8:
		return copy_bits_8;
	default:
		return copy_bits_16;
	}
}

static int cpu_copy(struct tensor_iter *it, enum tensor_dtype to, enum tensor_dtype from)
{
	static const iter_loop loops[TENSOR_DTYPE_COUNT][TENSOR_DTYPE_COUNT] = {DTYPES_ALL(ROW)};
	iter_loop loop = to == from ? bits_loop(to) : loops[from][to];

	if (!loop)
		return kernel_no_dtype("copy", loops[from][TENSOR_F32] ? to : from, "cpu");
	iter_run(it, loop, NULL);
	return 0;
}

/* One operand, the output. `at` is the element's position in the walk (flat outputs only). */
#define FILL_LOOP(NAME, T, VALUE)                                                                 \
	static void NAME(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0,     \
			 int64_t n1, const void *params)                                          \
	{                                                                                         \
		const struct pointwise_params *p = params;                                        \
		char *o = data[0];                                                                \
		T v = (T)(VALUE);                                                                 \
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
FILL_LOOP(fill_b8, uint8_t, p->a.kind >= TENSOR_SCALAR_FLOAT ? p->a.d != 0 : p->a.i != 0)
#define FILL_INT(d, T, D)   FILL_LOOP(fill_##d, T, scalar_int(p->a))
#define FILL_FLOAT(d, T, D) FILL_LOOP(fill_##d, T, scalar_double(p->a))
DTYPES_INT(FILL_INT)
DTYPES_FLOAT(FILL_FLOAT)
#define F(d, T, D) [D] = fill_##d,
POINTWISE(fill, DTYPES_ALL(F))

/* a + i * b into a contiguous row; the iterator is flat and runs on one thread. */
#define ARANGE(d, T, C, GET)                                                                      \
	static void arange_##d(char *const *data, const int64_t *s0, const int64_t *s1,           \
			       int64_t n0, int64_t n1, const void *params)                        \
	{                                                                                         \
		const struct pointwise_params *p = params;                                        \
		C start = GET(p->a), step = GET(p->b);                                            \
                                                                                                  \
		for (int64_t i = 0; i < n0; i++)                                                  \
			*(T *)(data[0] + i * s0[0]) = (T)(start + step * (C)i);                   \
	}
#define ARANGE_INT(d, T, D)   ARANGE(d, T, int64_t, scalar_int)
#define ARANGE_FLOAT(d, T, D) ARANGE(d, T, double, scalar_double)
DTYPES_INT(ARANGE_INT)
DTYPES_FLOAT(ARANGE_FLOAT)
#define A(d, T, D) [D] = arange_##d,

static int cpu_arange(struct tensor_iter *it, const struct pointwise_params *params)
{
	static const iter_loop loops[TENSOR_DTYPE_COUNT] = {DTYPES_NUMBER(A)};

	if (!loops[it->dtype])
		return kernel_no_dtype("arange", it->dtype, "cpu");
	loops[it->dtype](it->data, it->strides[0], it->strides[0], it->numel, 1, params);
	return 0;
}

CPU_KERNELS(K(copy), K(fill), K(arange))
