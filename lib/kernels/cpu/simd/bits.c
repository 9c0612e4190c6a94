// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Copies of elements as they are: what strided, repeated and transposed operands are packed with.
 * A step that is known when this is compiled is a few shuffles; any other one is an element at a
 * time.
 */
#include "kernels/cpu/simd/bits.h"

#include "kernels/cpu/simd/transpose.h"

struct bits16 {
	uint64_t w[2];
};

/* Every STEPth element, side by side. */
#define STEPPED(n, T, NAME, STEP)                                                   \
	static void NAME##_##n(T *to, const T *from, int64_t count)                 \
	{                                                                           \
		IVDEP for (int64_t i = 0; i < count; i++) to[i] = from[i * (STEP)]; \
	}

/* A row. Four elements at a time, which do not wait for each other's addresses. */
#define ANY_STEP(n, T)                                                                           \
	static void any_step_##n(char *to, int64_t to_step, const char *from, int64_t from_step, \
				 int64_t count)                                                  \
	{                                                                                        \
		int64_t i = 0;                                                                   \
                                                                                                 \
		for (; i + 4 <= count; i += 4, to += 4 * to_step, from += 4 * from_step) {       \
			T a = *(const T *)from, b = *(const T *)(from + from_step);              \
			T c = *(const T *)(from + 2 * from_step);                                \
			T d = *(const T *)(from + 3 * from_step);                                \
                                                                                                 \
			*(T *)to = a;                                                            \
			*(T *)(to + to_step) = b;                                                \
			*(T *)(to + 2 * to_step) = c;                                            \
			*(T *)(to + 3 * to_step) = d;                                            \
		}                                                                                \
		for (; i < count; i++, to += to_step, from += from_step)                         \
			*(T *)to = *(const T *)from;                                             \
	}                                                                                        \
                                                                                                 \
	static void row_##n(char *to, int64_t to_step, const char *from, int64_t from_step,      \
			    int64_t count)                                                       \
	{                                                                                        \
		const int64_t size = sizeof(T);                                                  \
		T *o = (T *)to;                                                                  \
		const T *p = (const T *)from;                                                    \
                                                                                                 \
		if (to_step != size)                                                             \
			any_step_##n(to, to_step, from, from_step, count);                       \
		else if (from_step == size)                                                      \
			by_1_##n(o, p, count);                                                   \
		else if (from_step == 2 * size)                                                  \
			by_2_##n(o, p, count);                                                   \
		else if (size < 8 && from_step == 3 * size)                                      \
			by_3_##n(o, p, count);                                                   \
		else if (size < 8 && from_step == 4 * size)                                      \
			by_4_##n(o, p, count);                                                   \
		else if (from_step == -size)                                                     \
			back_##n(o, p, count);                                                   \
		else if (!from_step)                                                             \
			same_##n(o, p, count);                                                   \
		else                                                                             \
			any_step_##n(to, to_step, from, from_step, count);                       \
	}

#define MANY 8 /* rows and elements that make a tile of a transposed copy */

#define BITS(n, T)                                                                                \
	STEPPED(n, T, by_1, 1)                                                                    \
	STEPPED(n, T, by_2, 2)                                                                    \
	STEPPED(n, T, by_3, 3)                                                                    \
	STEPPED(n, T, by_4, 4)                                                                    \
	STEPPED(n, T, back, -1)                                                                   \
	STEPPED(n, T, same, 0)                                                                    \
	ANY_STEP(n, T)                                                                            \
	static void bits_##n(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, \
			     int64_t n1, const void *params)                                      \
	{                                                                                         \
		const int64_t size = sizeof(T);                                                   \
		bool tiles = n0 >= MANY && n1 >= MANY;                                            \
                                                                                                  \
		if (tiles && s0[0] == size && s1[1] == size)                                      \
			CPU_NAME(transpose)(data, s0[1], s1[0], n0, n1, sizeof(T));               \
		else if (tiles && s1[0] == size && s0[1] == size)                                 \
			CPU_NAME(transpose)(data, s1[1], s0[0], n1, n0, sizeof(T));               \
		else if (n0 < MANY && n0 < n1)                                                    \
			for (int64_t i = 0; i < n0; i++)                                          \
				row_##n(data[0] + i * s0[0], s1[0], data[1] + i * s0[1], s1[1],   \
					n1);                                                      \
		else                                                                              \
			for (int64_t j = 0; j < n1; j++)                                          \
				row_##n(data[0] + j * s1[0], s0[0], data[1] + j * s1[1], s0[1],   \
					n0);                                                      \
	}
BITS(1, uint8_t)
BITS(2, uint16_t)
BITS(4, uint32_t)
BITS(8, uint64_t)
BITS(16, struct bits16)

iter_loop CPU_NAME(bits_loop)(size_t size)
{
	switch (size) {
	case 1:
		return bits_1;
	case 2:
		return bits_2;
	case 4:
		return bits_4;
	case 8:
		return bits_8;
	default:
		return bits_16;
	}
}
