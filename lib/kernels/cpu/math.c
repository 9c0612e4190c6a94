// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * exp, log, tanh, sigmoid, relu and what their gradients need. The transcendental ones run on
 * whole vectors: strided rows pass through a small contiguous buffer.
 */
#include "cpu.h"
#include "vec.h"

#define BLOCK 256 /* elements of a strided row that are gathered at once */

/* F(v) maps a vector of T; the tail is padded with ones, which every function here maps
 * without raising anything. */
#define VECTOR_LOOP(NAME, T, V, N, F)                                                             \
	static void NAME##_block(T *out, const T *in, int64_t n)                                  \
	{                                                                                         \
		int64_t i = 0;                                                                    \
                                                                                                  \
		for (; i + (N) <= n; i += (N))                                                    \
			*(V *)(out + i) = F(*(const V *)(in + i));                                \
		if (i < n) {                                                                      \
			T pad[N];                                                                 \
                                                                                                  \
			for (int64_t k = 0; k < (N); k++)                                         \
				pad[k] = k < n - i ? in[i + k] : 1;                               \
			*(V *)pad = F(*(const V *)pad);                                           \
			for (int64_t k = 0; k < n - i; k++)                                       \
				out[i + k] = pad[k];                                              \
		}                                                                                 \
	}                                                                                         \
                                                                                                  \
	static void NAME##_strided(char *o, int64_t so, const char *a, int64_t sa, int64_t n)     \
	{                                                                                         \
		T buf[BLOCK];                                                                     \
                                                                                                  \
		for (int64_t i = 0; i < n; i += BLOCK) {                                          \
			int64_t m = n - i < BLOCK ? n - i : BLOCK;                                \
                                                                                                  \
			for (int64_t k = 0; k < m; k++)                                           \
				buf[k] = *(const T *)(a + (i + k) * sa);                          \
			NAME##_block(buf, buf, m);                                                \
			for (int64_t k = 0; k < m; k++)                                           \
				*(T *)(o + (i + k) * so) = buf[k];                                \
		}                                                                                 \
	}                                                                                         \
                                                                                                  \
	static void NAME(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0,     \
			 int64_t n1, const void *params)                                          \
	{                                                                                         \
		char *o = data[0];                                                                \
		const char *a = data[1];                                                          \
                                                                                                  \
		for (int64_t j = 0; j < n1; j++, o += s1[0], a += s1[1]) {                        \
			if (s0[0] == sizeof(T) && s0[1] == sizeof(T))                             \
				NAME##_block((T *)o, (const T *)a, n0);                           \
			else                                                                      \
				NAME##_strided(o, s0[0], a, s0[1], n0);                           \
		}                                                                                 \
	}

#define F32(f) static inline vec_f32 f##_v32(vec_f32 x) { return (vec_f32)SLEEF_F32(f)((sleef_f32)x); }
#define F64(f) static inline vec_f64 f##_v64(vec_f64 x) { return (vec_f64)SLEEF_F64(f)((sleef_f64)x); }
F32(tanh)
F64(tanh)

static inline vec_f32 sigmoid_v32(vec_f32 x)
{
	return 1 / (1 + exp_v32(-x));
}

static inline vec_f64 sigmoid_v64(vec_f64 x)
{
	return 1 / (1 + exp_v64(-x));
}

#define MATH(f)                                                                                   \
	VECTOR_LOOP(f##_f32, float, vec_f32, VEC_F32, f##_v32)                                    \
	VECTOR_LOOP(f##_f64, double, vec_f64, VEC_F64, f##_v64)                                   \
	POINTWISE(f, [TENSOR_F32] = f##_f32, [TENSOR_F64] = f##_f64)
MATH(exp)
MATH(log)
MATH(tanh)
MATH(sigmoid)

/* NaN stays NaN: only what is below zero is replaced. */
#define RELU(d, T, D) UNARY_LOOP(relu_##d, T, T, x < 0 ? (T)0 : x)
DTYPES_NUMBER(RELU)
#define R(d, T, D) [D] = relu_##d,
POINTWISE(relu, DTYPES_NUMBER(R))

/* Gradients, x the incoming gradient, y the saved output (threshold: the saved result). */
#define BACKWARD(d, T, D)                                                                         \
	BINARY_LOOP(tanh_backward_##d, T, T, x *(1 - y * y))                                      \
	BINARY_LOOP(sigmoid_backward_##d, T, T, x *(1 - y) * y)                                   \
	BINARY_LOOP(relu_backward_##d, T, T, y <= 0 ? 0 : x)
DTYPES_FLOAT(BACKWARD)
#define TB(d, T, D) [D] = tanh_backward_##d,
#define SB(d, T, D) [D] = sigmoid_backward_##d,
#define RB(d, T, D) [D] = relu_backward_##d,
POINTWISE(tanh_backward, DTYPES_FLOAT(TB))
POINTWISE(sigmoid_backward, DTYPES_FLOAT(SB))
POINTWISE(relu_backward, DTYPES_FLOAT(RB))

CPU_KERNELS(K(exp), K(log), K(tanh), K(sigmoid), K(relu), K(tanh_backward), K(sigmoid_backward),
	    K(relu_backward))
