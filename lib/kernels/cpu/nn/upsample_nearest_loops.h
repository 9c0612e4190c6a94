/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Nearest upsampling for elements of type T (no include guard): F(select) selects rows of a plane,
 * then elements of a row. A row that equals the previous one is copied from there.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(select)(int64_t begin, int64_t end, void *ctx)
{
	const struct upsample *u = ctx;
	int64_t in = u->in[0] * u->in[1] * u->in[2], rows = u->out[0] * u->out[1];
	int64_t n = u->out[2];
	const int64_t *at = u->at[2];
	T *to = (T *)u->to + begin * rows * n;

	for (int64_t i = begin * rows, last = -1; i < end * rows; i++, to += n) {
		int64_t row = i / rows * in + (u->at[0][i % rows / u->out[1]] * u->in[1] +
					       u->at[1][i % u->out[1]]) *
						      u->in[2];
		const T *from = (const T *)u->from + row;

		if (row == last)
			memcpy(to, to - n, n * sizeof(T));
		else
			for (int64_t k = 0; k < n; k++)
				to[k] = from[at[k]];
		last = row;
	}
}

#undef F
