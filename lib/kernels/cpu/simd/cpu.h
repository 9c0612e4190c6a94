/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Shared by all CPU kernel files: registration, lists of dtypes, and loops over one and two inputs.
 *
 * Each file is compiled once for every instruction-set level (CPU_LEVEL is v2, v3 or v4; see
 * lib.mk). At load it registers its kernels if its level is the one in use; see init.c. Kernels
 * do not test the level.
 */
#ifndef TENSOR_CPU_H
#define TENSOR_CPU_H

#include "base/init.h"
#include "kernels/abi/kernels.h"
#include "kernels/formula/dtypes.h"

#include <complex.h>
#undef I

typedef float complex complex_f32;
typedef double complex complex_f64;

struct cpu_kernel {
	const char *name; /* of the kernel table in lib/schema/ops/ */
	tensor_kernel fn;
};

#define CPU_PASTE_(a, b) a##_##b
#define CPU_PASTE(a, b)	 CPU_PASTE_(a, b)
/* The name of a function that kernel files of one level share: a suffix keeps levels apart. */
#define CPU_NAME(x)  CPU_PASTE(x, CPU_LEVEL)
#define CPU_TEXT_(x) #x
#define CPU_TEXT(x)  CPU_TEXT_(x)

/*
 * Which products of bf16 use the instruction that adds the products of pairs. On some processors it takes twice the time
 * of two fused multiply-adds on f32, and only products that would mostly convert their operands to f32 are faster with it.
 */
enum cpu_pairs { PAIRS_NONE, PAIRS_SMALL, PAIRS_ALL };
enum cpu_pairs cpu_pairs(void);

/* Registers n kernels if `level` ("v3") is the level in use. */
void cpu_register(const char *level, const struct cpu_kernel *kernels, size_t n);

/*
 * At the end of a file: CPU_KERNELS(K(add), KERNEL(mm)) registers cpu_add() as "add", the kernel of a
 * pointwise operator, and cpu_mm() as "mm", whose C type kernels/abi states. The constructor
 * runs after the one that creates the kernel tables (priority 101) and before those of plugins.
 */
#define K(NAME)                                                     \
	{                                                           \
#NAME, KERNEL_OF_TYPE(pointwise_kernel, cpu_##NAME) \
	}
#define KERNEL(NAME)                                                          \
	{                                                                     \
#NAME, KERNEL_OF_TYPE(__typeof__(type_of_##NAME), cpu_##NAME) \
	}
#define CPU_KERNELS(...)                                                         \
	INIT(INIT_KERNELS) static void register_kernels(void)                    \
	{                                                                        \
		static const struct cpu_kernel kernels[] = { __VA_ARGS__ };      \
                                                                                 \
		cpu_register(CPU_TEXT(CPU_LEVEL), kernels, ARRAY_SIZE(kernels)); \
	}

/*
 * Tells the compiler that no iteration reads what another one writes, so that it may vectorize.
 * An output may be the same memory as an input: each iteration reads its elements before it writes.
 */
#define IVDEP _Pragma("GCC ivdep")

/*
 * Prevents vectorization of a loop over arbitrary strides. Such loops run on operands that are too
 * small to be packed into blocks; vector code for them would outweigh all other loops in size.
 */
#define ONE_BY_ONE asm volatile("")

/* An element of 16 bytes, for loops that only copy. */
struct bytes16 {
	uint64_t w[2];
};

/* The parameters of a loop: see iter_loop in iter/iter.h. Operand 0 is the output. */
#define ITER_LOOP(NAME)                                                                       \
	static void NAME(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, \
			 int64_t n1, const void *params)

/* Declares NAME, the element of type T at p + offset bytes. */
#define INPUT(T, NAME, p, offset) T NAME = *(const T *)((p) + (offset))

/*
 * One row of n elements: INPUTS declares the inputs of iteration i, EXPR is its result. ONCE
 * declares an input that is the same in all iterations. The result goes to OUT or, in a strided
 * row, to the element of type R at o + i * so bytes.
 */
#define ROW_DENSE(i, n, ONCE, INPUTS, OUT, EXPR)        \
	{                                               \
		ONCE;                                   \
		IVDEP for (int64_t i = 0; i < (n); i++) \
		{                                       \
			INPUTS;                         \
			OUT = (EXPR);                   \
		}                                       \
	}
#define ROW_STRIDED(i, n, INPUTS, R, o, so, EXPR)        \
	{                                                \
		for (int64_t i = 0; i < (n); i++) {      \
			INPUTS;                          \
			ONE_BY_ONE;                      \
			*(R *)((o) + i * (so)) = (EXPR); \
		}                                        \
	}

/*
 * A loop over one input: `x` is the element, of type T, EXPR the result, of type R. DECL is
 * executed once before the loop and may declare parameters of the call.
 */
#define UNARY_LOOP(NAME, T, R, EXPR) UNARY_LOOP_WITH(NAME, T, R, (void)params, EXPR)
#define UNARY_LOOP_WITH(NAME, T, R, DECL, EXPR)                                           \
	ITER_LOOP(NAME)                                                                   \
	{                                                                                 \
		int64_t so = s0[0], sa = s0[1];                                           \
		char *o = data[0], *a = data[1];                                          \
		DECL;                                                                     \
		for (int64_t j = 0; j < n1; j++, o += s1[0], a += s1[1]) {                \
			const T *pa = (const T *)a;                                       \
			if (so == sizeof(R) && sa == sizeof(T))                           \
				ROW_DENSE(i, n0, , T x = pa[i], ((R *)o)[i], EXPR)        \
			else                                                              \
				ROW_STRIDED(i, n0, INPUT(T, x, a, i *sa), R, o, so, EXPR) \
		}                                                                         \
	}

/* A loop over two inputs `x` and `y` of type T, with forms for a stride of 0 in one of them. */
#define BINARY_LOOP(NAME, T, R, EXPR) BINARY_LOOP_WITH(NAME, T, R, (void)params, EXPR)
#define BINARY_LOOP_WITH(NAME, T, R, DECL, EXPR)                                                \
	ITER_LOOP(NAME)                                                                         \
	{                                                                                       \
		int64_t so = s0[0], sa = s0[1], sb = s0[2];                                     \
		bool dense = so == sizeof(R), da = sa == sizeof(T), db = sb == sizeof(T);       \
		char *o = data[0], *a = data[1], *b = data[2];                                  \
		DECL;                                                                           \
		for (int64_t j = 0; j < n1; j++, o += s1[0], a += s1[1], b += s1[2]) {          \
			const T *pa = (const T *)a, *pb = (const T *)b;                         \
			if (dense && da && db)                                                  \
				ROW_DENSE(i, n0, , T x = pa[i]; T y = pb[i], ((R *)o)[i], EXPR) \
			else if (dense && da && !sb)                                            \
				ROW_DENSE(i, n0, T y = *pb, T x = pa[i], ((R *)o)[i], EXPR)     \
			else if (dense && db && !sa)                                            \
				ROW_DENSE(i, n0, T x = *pa, T y = pb[i], ((R *)o)[i], EXPR)     \
			else                                                                    \
				ROW_STRIDED(i, n0, INPUT(T, x, a, i *sa);                       \
					    INPUT(T, y, b, i * sb), R, o, so, EXPR)             \
		}                                                                               \
	}

/*
 * Runs the loop for it->dtype; f16, bf16 and 8-bit floats without a loop of their own use that for
 * f32. Operands of other dtypes are converted in blocks. `result` is the dtype that the loop
 * writes: TENSOR_BOOL, or TENSOR_DTYPE_NONE for the dtype that it reads.
 */
int CPU_NAME(pointwise_run)(const char *name, struct tensor_iter *it, const iter_loop *loops,
			    enum tensor_dtype result, const void *params);
/* Runs a loop whose operands have different dtypes: want[i] is that of operand i. */
int CPU_NAME(pointwise_run_as)(const char *name, struct tensor_iter *it, iter_loop loop,
			       const uint8_t *want, const void *params);
/* Converts n elements between any two dtypes; strides in bytes. */
void CPU_NAME(convert)(void *to, enum tensor_dtype to_dtype, int64_t to_stride, const void *from,
		       enum tensor_dtype from_dtype, int64_t from_stride, int64_t n);

/* An entry of a POINTWISE table: the loop for dtype D. */
#define AT_DTYPE(D, LOOP) [D] = LOOP

/* Defines a pointwise kernel, cpu_NAME(), that picks its loop by dtype from the entries
 * AT_DTYPE(TENSOR_F32, loop), ... The loops write RESULT; see pointwise_run(). */
#define POINTWISE_TO(RESULT, NAME, ...)                                                      \
	static int cpu_##NAME(struct tensor_iter *it, const struct pointwise_params *params) \
	{                                                                                    \
		static const iter_loop loops[TENSOR_DTYPE_COUNT] = { __VA_ARGS__ };          \
                                                                                             \
		return CPU_NAME(pointwise_run)(#NAME, it, loops, RESULT, params);            \
	}
#define POINTWISE(NAME, ...) POINTWISE_TO(TENSOR_DTYPE_NONE, NAME, __VA_ARGS__)
/* A kernel whose loops write bool. */
#define PREDICATE(NAME, ...) POINTWISE_TO(TENSOR_BOOL, NAME, __VA_ARGS__)

#endif
