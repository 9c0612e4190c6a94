/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Copies of elements of one size; included by bits.c through each_size.h (no include guard), which
 * defines T and SUFFIX. Strides are in bytes.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/*
 * Contiguous elements from every `step`th element. Inlined into copy_row() with a constant step,
 * for which the compiler uses shuffles.
 */
static inline __attribute__((always_inline)) void F(copy_stepped)(T *to, const T *from,
								  int64_t step, int64_t count)
{
	IVDEP for (int64_t i = 0; i < count; i++) to[i] = from[i * step];
}

/* Four elements at a time, so that their loads do not depend on each other. */
static void F(copy_strided)(char *to, int64_t to_step, const char *from, int64_t from_step,
			    int64_t count)
{
	int64_t i = 0;

	for (; i + 4 <= count; i += 4, to += 4 * to_step, from += 4 * from_step) {
		T a = *(const T *)from, b = *(const T *)(from + from_step);
		T c = *(const T *)(from + 2 * from_step);
		T d = *(const T *)(from + 3 * from_step);

		*(T *)to = a;
		*(T *)(to + to_step) = b;
		*(T *)(to + 2 * to_step) = c;
		*(T *)(to + 3 * to_step) = d;
	}
	for (; i < count; i++, to += to_step, from += from_step)
		*(T *)to = *(const T *)from;
}

/* A row of count elements between any strides. */
static void F(copy_row)(char *to, int64_t to_step, const char *from, int64_t from_step,
			int64_t count)
{
	const int64_t size = sizeof(T);
	T *o = (T *)to;
	const T *p = (const T *)from;

	if (to_step != size)
		F(copy_strided)(to, to_step, from, from_step, count);
	else if (from_step == size)
		F(copy_stepped)(o, p, 1, count);
	else if (from_step == 2 * size)
		F(copy_stepped)(o, p, 2, count);
	else if (size < 8 && from_step == 3 * size)
		F(copy_stepped)(o, p, 3, count);
	else if (size < 8 && from_step == 4 * size)
		F(copy_stepped)(o, p, 4, count);
	else if (from_step == -size)
		F(copy_stepped)(o, p, -1, count);
	else if (!from_step)
		F(copy_stepped)(o, p, 0, count);
	else
		F(copy_strided)(to, to_step, from, from_step, count);
}

/* The same row of n0 elements in n1 adjacent rows. Each copy doubles what is there. */
static void F(repeat_row)(char *to, const char *from, int64_t from_step, int64_t n0, int64_t n1)
{
	int64_t done = n0 * (int64_t)sizeof(T), all = n1 * done, n;

	F(copy_row)(to, sizeof(T), from, from_step, n0);
	for (; done < all; done += n) {
		n = done < all - done ? done : all - done;
		copy_bytes(to + done, to, n);
	}
}

/*
 * A row of n0 <= wide copies of each of n1 elements, in adjacent rows. A row is stored as `wide`, a
 * constant, elements where the output has as many left; the next row overwrites what is too much.
 */
static inline __attribute__((always_inline)) void
F(repeat_wide)(T *to, const char *from, int64_t from_step, int64_t n0, int64_t n1, int64_t wide)
{
	int64_t left = n0 * n1;

	for (; left >= wide; left -= n0, to += n0, from += from_step) {
		T x = *(const T *)from;

		for (int64_t i = 0; i < wide; i++)
			to[i] = x;
	}
	for (; left > 0; left -= n0, to += n0, from += from_step)
		for (int64_t i = 0; i < n0; i++)
			to[i] = *(const T *)from;
}

#define REPEATED(bytes) ((bytes) / (int64_t)sizeof(T))
static void F(repeat_elements)(T *to, const char *from, int64_t from_step, int64_t n0, int64_t n1)
{
	if (n0 <= REPEATED(8))
		F(repeat_wide)(to, from, from_step, n0, n1, REPEATED(8));
	else if (n0 <= REPEATED(16))
		F(repeat_wide)(to, from, from_step, n0, n1, REPEATED(16));
	else if (n0 <= REPEATED(32))
		F(repeat_wide)(to, from, from_step, n0, n1, REPEATED(32));
	else
		F(repeat_wide)(to, from, from_step, n0, n1, REPEATED(64));
}

/* Rows of adjacent elements, too short for a loop with a remainder each. */
static void F(copy_short_rows)(char *to, int64_t to_step, const char *from, int64_t from_step,
			       int64_t n0, int64_t n1)
{
	for (int64_t j = 0; j < n1; j++, to += to_step, from += from_step)
		copy_bytes(to, from, n0 * (int64_t)sizeof(T));
}

/* The loop: along the longer dimension, or by tiles if one operand is transposed. */
static void F(bits)(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, int64_t n1,
		    const void *params)
{
	const int64_t size = sizeof(T);
	bool tiles = n0 >= TILE_MIN && n1 >= TILE_MIN;
	bool adjacent = s0[0] == size && s1[0] == n0 * size && n1 > 1;

	if (adjacent && !s1[1])
		F(repeat_row)(data[0], data[1], s0[1], n0, n1);
	else if (adjacent && !s0[1] && n0 > 2 && n0 <= REPEATED(64))
		F(repeat_elements)((T *)data[0], data[1], s1[1], n0, n1);
	else if (s0[0] == size && s0[1] == size && n0 > 1 && n0 * size <= SHORT_BYTES)
		F(copy_short_rows)(data[0], s1[0], data[1], s1[1], n0, n1);
	else if (tiles && s0[0] == size && s1[1] == size)
		CPU_NAME(transpose)(data, s0[1], s1[0], n0, n1, sizeof(T));
	else if (tiles && s1[0] == size && s0[1] == size)
		CPU_NAME(transpose)(data, s1[1], s0[0], n1, n0, sizeof(T));
	else if (n0 < TILE_MIN && n0 < n1)
		for (int64_t i = 0; i < n0; i++)
			F(copy_row)(data[0] + i * s0[0], s1[0], data[1] + i * s0[1], s1[1], n1);
	else
		for (int64_t j = 0; j < n1; j++)
			F(copy_row)(data[0] + j * s1[0], s0[0], data[1] + j * s1[1], s0[1], n0);
}

#undef REPEATED
#undef F
