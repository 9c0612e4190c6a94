/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A tile of neighbouring lines of one dtype, row by row, without conversions: included by scan_minmax.c through
 * simd/each_*.h (no include guard), which define T, SUFFIX and LOAD(x). SCAN and REPLACES are those of
 * scan_minmax_loops.h.
 */
#define F(name) CPU_PASTE(CPU_PASTE(SCAN, name), SUFFIX)

/* Element c of the three operands; `beside`: a constant, whether elements of a row are contiguous. */
static inline __attribute__((always_inline)) void
F(tile_rows)(char *const *data, const struct reduce_iter *t, int64_t cols, bool beside)
{
	const struct reduce_iter_dims *along = &t->along, *kept = &t->kept;
	int64_t so = beside ? (int64_t)sizeof(T) : kept->stride[0][0];
	int64_t sa = beside ? (int64_t)sizeof(T) : kept->stride[1][0];
	int64_t si = beside ? (int64_t)sizeof(int64_t) : kept->stride[2][0], at[BLOCK];
	char *o = data[0], *a = data[1], *p = data[2];
	T best[BLOCK];

	for (int64_t r = 0; r < along->size[0]; r++) {
		IVDEP for (int64_t c = 0; c < cols; c++)
		{
			T e = *(const T *)(a + c * sa), old = r ? best[c] : e;
			__typeof__(LOAD(e)) x = LOAD(e), y = LOAD(old);
			bool take = IS_NAN(x) | REPLACES(x, y);
			T value = take ? e : old;
			int64_t where = take ? r : at[c];

			best[c] = value;
			at[c] = where;
			*(T *)(o + c * so) = value;
			*(int64_t *)(p + c * si) = where;
		}
		o += along->stride[0][0];
		a += along->stride[1][0];
		p += along->stride[2][0];
	}
}

static void F(tile)(char *const *data, const struct reduce_iter *t, int64_t cols)
{
	const struct reduce_iter_dims *kept = &t->kept;

	if (kept->stride[0][0] == sizeof(T) && kept->stride[1][0] == sizeof(T) &&
	    kept->stride[2][0] == sizeof(int64_t))
		F(tile_rows)(data, t, cols, true);
	else
		F(tile_rows)(data, t, cols, false);
}

#undef F
