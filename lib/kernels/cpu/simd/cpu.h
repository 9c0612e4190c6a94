/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What the CPU's kernel files share. Each file is compiled once for every instruction-set level
 * (CPU_LEVEL is v2, v3 or v4; see lib.mk) and registers its table at load, if the processor has
 * no higher level. No kernel names a level.
 */
#ifndef TENSOR_CPU_H
#define TENSOR_CPU_H

#include "kernels/abi/kernels.h"

#include <complex.h>
#undef I

struct cpu_kernel {
	const char *name; /* of the loop */
	tensor_kernel fn;
};

#define CPU_PASTE_(a, b) a##_##b
#define CPU_PASTE(a, b)	 CPU_PASTE_(a, b)
/* A name of this level, for what one kernel file calls in another. */
#define CPU_NAME(x)  CPU_PASTE(x, CPU_LEVEL)
#define CPU_TEXT_(x) #x
#define CPU_TEXT(x)  CPU_TEXT_(x)

/* Registers kernels of a level, "v3", unless it is not the one that is used. */
void cpu_register(const char *level, const struct cpu_kernel *kernels, size_t n);

/* At the end of a file: CPU_KERNELS(K(add), K(sub)) registers cpu_add() as "add". After the
 * tables are there (101), before anybody registers on top. */
#define K(NAME)                                  \
	{                                        \
#NAME, (tensor_kernel)cpu_##NAME \
	}
#define CPU_KERNELS(...)                                                         \
	__attribute__((constructor(102))) static void register_kernels(void)     \
	{                                                                        \
		static const struct cpu_kernel kernels[] = { __VA_ARGS__ };      \
                                                                                 \
		cpu_register(CPU_TEXT(CPU_LEVEL), kernels, ARRAY_SIZE(kernels)); \
	}

/* Loops whose result does not depend on the sign; AT_WRAPPED() names them for u16, u32 and u64. */
#define DTYPES_WRAPPING(X)          \
	X(u8, uint8_t, TENSOR_U8)   \
	X(i8, int8_t, TENSOR_I8)    \
	X(i16, int16_t, TENSOR_I16) \
	X(i32, int32_t, TENSOR_I32) \
	X(i64, int64_t, TENSOR_I64)
#define AT_WRAPPED(N) [TENSOR_U16] = N##_i16, [TENSOR_U32] = N##_i32, [TENSOR_U64] = N##_i64,
#define DTYPES_INT(X)                \
	DTYPES_WRAPPING(X)           \
	X(u16, uint16_t, TENSOR_U16) \
	X(u32, uint32_t, TENSOR_U32) \
	X(u64, uint64_t, TENSOR_U64)
#define DTYPES_FLOAT(X)           \
	X(f32, float, TENSOR_F32) \
	X(f64, double, TENSOR_F64)
#define DTYPES_COMPLEX(X)                 \
	X(c64, float complex, TENSOR_C64) \
	X(c128, double complex, TENSOR_C128)
/* The halves and the floats of 8 bits are in no list: kernels compute them as f32, see
 * pointwise_run(). */
#define DTYPES_NUMBER(X) DTYPES_INT(X) DTYPES_FLOAT(X)
#define DTYPES_REAL(X)	 X(b8, uint8_t, TENSOR_BOOL) DTYPES_NUMBER(X)
#define DTYPES_ALL(X)	 DTYPES_REAL(X) DTYPES_COMPLEX(X)

/* x < 0, without a warning where x is unsigned. */
#define NEGATIVE(x) (((x) < 1) & ((x) != 0))

/* One element may be read and written by the same iteration, never by another. */
#define IVDEP _Pragma("GCC ivdep")

/* In loops over any strides, which are there for what is too small to be worth a block: code for
 * vectors would be more than that of all the others together. */
#define ONE_BY_ONE asm volatile("")

/* One input. `x` is the element of type T; EXPR has type R. The contiguous form is what the
 * compiler vectorises. */
#define UNARY_LOOP(NAME, T, R, EXPR) UNARY_LOOP_WITH(NAME, T, R, (void)params, EXPR)

/* The same with declarations before the loop, for parameters. */
#define UNARY_LOOP_WITH(NAME, T, R, DECL, EXPR)                                               \
	static void NAME(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, \
			 int64_t n1, const void *params)                                      \
	{                                                                                     \
		int64_t so = s0[0], sa = s0[1];                                               \
		char *o = data[0];                                                            \
		const char *a = data[1];                                                      \
		DECL;                                                                         \
		for (int64_t j = 0; j < n1; j++, o += s1[0], a += s1[1]) {                    \
			if (so == sizeof(R) && sa == sizeof(T)) {                             \
				R *po = (R *)o;                                               \
				const T *pa = (const T *)a;                                   \
				IVDEP for (int64_t i = 0; i < n0; i++)                        \
				{                                                             \
					T x = pa[i];                                          \
					po[i] = (EXPR);                                       \
				}                                                             \
			} else {                                                              \
				for (int64_t i = 0; i < n0; i++) {                            \
					T x = *(const T *)(a + i * sa);                       \
					ONE_BY_ONE;                                           \
					*(R *)(o + i * so) = (EXPR);                          \
				}                                                             \
			}                                                                     \
		}                                                                             \
	}

/* Two inputs `x` and `y` of type T; the contiguous form, and those with one of them constant. */
#define BINARY_LOOP(NAME, T, R, EXPR) BINARY_LOOP_WITH(NAME, T, R, (void)params, EXPR)
#define BINARY_LOOP_WITH(NAME, T, R, DECL, EXPR)                                              \
	static void NAME(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, \
			 int64_t n1, const void *params)                                      \
	{                                                                                     \
		int64_t so = s0[0], sa = s0[1], sb = s0[2];                                   \
		bool flat = so == sizeof(R), da = sa == sizeof(T), db = sb == sizeof(T);      \
		char *o = data[0];                                                            \
		const char *a = data[1], *b = data[2];                                        \
		DECL;                                                                         \
		for (int64_t j = 0; j < n1; j++, o += s1[0], a += s1[1], b += s1[2]) {        \
			R *po = (R *)o;                                                       \
			const T *pa = (const T *)a, *pb = (const T *)b;                       \
			if (flat && da && db) {                                               \
				IVDEP for (int64_t i = 0; i < n0; i++)                        \
				{                                                             \
					T x = pa[i], y = pb[i];                               \
					po[i] = (EXPR);                                       \
				}                                                             \
			} else if (flat && da && !sb) {                                       \
				T y = *pb;                                                    \
				IVDEP for (int64_t i = 0; i < n0; i++)                        \
				{                                                             \
					T x = pa[i];                                          \
					po[i] = (EXPR);                                       \
				}                                                             \
			} else if (flat && db && !sa) {                                       \
				T x = *pa;                                                    \
				IVDEP for (int64_t i = 0; i < n0; i++)                        \
				{                                                             \
					T y = pb[i];                                          \
					po[i] = (EXPR);                                       \
				}                                                             \
			} else {                                                              \
				for (int64_t i = 0; i < n0; i++) {                            \
					T x = *(const T *)(a + i * sa);                       \
					T y = *(const T *)(b + i * sb);                       \
					ONE_BY_ONE;                                           \
					*(R *)(o + i * so) = (EXPR);                          \
				}                                                             \
			}                                                                     \
		}                                                                             \
	}

/*
 * Runs the loop for it->dtype, or for f32 where that is one of the halves and has none. Operands
 * of other dtypes are converted on the way. `result` is what the loop writes: TENSOR_BOOL, or
 * TENSOR_DTYPE_NONE for what it reads.
 */
int CPU_NAME(pointwise_run)(const char *name, struct tensor_iter *it, const iter_loop *loops,
			    enum tensor_dtype result, const void *params);
/* The same where operands have dtypes of their own: want[i] is what the loop sees. */
int CPU_NAME(pointwise_run_as)(const char *name, struct tensor_iter *it, iter_loop loop,
			       const uint8_t *want, const void *params);
/* n elements, strides in bytes, of any dtypes: to[i] = from[i]. */
void CPU_NAME(convert)(void *to, enum tensor_dtype to_dtype, int64_t to_stride, const void *from,
		       enum tensor_dtype from_dtype, int64_t from_stride, int64_t n);

/* A pointwise kernel: picks the loop for the dtype. Entries are [TENSOR_F32] = loop. */
#define POINTWISE_TO(RESULT, NAME, ...)                                                      \
	static int cpu_##NAME(struct tensor_iter *it, const struct pointwise_params *params) \
	{                                                                                    \
		static const iter_loop loops[TENSOR_DTYPE_COUNT] = { __VA_ARGS__ };          \
                                                                                             \
		return CPU_NAME(pointwise_run)(#NAME, it, loops, RESULT, params);            \
	}
#define POINTWISE(NAME, ...) POINTWISE_TO(TENSOR_DTYPE_NONE, NAME, __VA_ARGS__)
/* The same where the loops write bool. */
#define PREDICATE(NAME, ...) POINTWISE_TO(TENSOR_BOOL, NAME, __VA_ARGS__)

#endif
