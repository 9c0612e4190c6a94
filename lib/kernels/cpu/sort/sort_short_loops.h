/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Short lines as items of type ITEM, keys converted by LOAD_KEYS(), V a vector of LANES items with MIN() and MAX(); included by sort_short.h (no include
 * guard).
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Sets item[i][k] to the key of element i of line k; lines that do not exist are zero. */
static inline void F(short_load)(const struct short_lines *s, ITEM (*item)[SIDE], int n)
{
	const struct line_job *j = s->j;
	int64_t sa = j->t->along.stride[1][0];
	ITEM key[SHORT];

	if (s->m < SIDE)
		memset(item, 0, n * sizeof(*item));
	if (s->beside) {
		for (int i = 0; i < n; i++)
			LOAD_KEYS(item[i], s->data[1][0] + i * sa, dtype_sizes[j->dtype], j->dtype,
				  s->m, j->flip);
		return;
	}
	for (int k = 0; k < s->m; k++) {
		LOAD_KEYS(key, s->data[1][k], sa, j->dtype, n, j->flip);
		for (int i = 0; i < n; i++)
			item[i][k] = key[i];
	}
}

/* Batcher's merge exchange for any n: D. Knuth, "The Art of Computer Programming" 3, 5.2.2 M. */
static inline void F(short_network)(ITEM (*item)[SIDE], int n)
{
	int top = 1;

	while (2 * top < n)
		top *= 2;
	for (int p = top; p > 0; p /= 2) {
		int r = 0, d = p;

		for (int q = top;; q /= 2) {
			for (int i = 0; i < n - d; i++) {
				ITEM *a = item[i], *b = item[i + d];

				if ((i & p) != r)
					continue;
				for (int k = 0; k < SIDE; k += LANES) {
					V x = *(V *)(a + k), y = *(V *)(b + k);

					*(V *)(a + k) = MIN(x, y);
					*(V *)(b + k) = MAX(x, y);
				}
			}
			if (q == p)
				break;
			d = q - p;
			r = p;
		}
	}
}

/* `size` is a constant. */
static inline __attribute__((always_inline)) void
F(short_values)(const struct short_lines *s, ITEM (*item)[SIDE], int count, size_t size)
{
	int64_t so = s->j->t->along.stride[0][0], sa = s->j->t->along.stride[1][0];
	int64_t si = s->j->t->along.stride[2][0];

	for (int k = 0; k < s->m; k++) {
		char *o = s->data[0][k], *indices = s->data[2][k];
		const char *p = s->data[1][k];

		for (int i = 0; i < count; i++, o += so, indices += si) {
			int64_t at = item[i][k] & POSITION;

			*(int64_t *)indices = at;
			memcpy(o, p + at * sa, size);
		}
	}
}

static inline void F(short_store)(const struct short_lines *s, ITEM (*item)[SIDE], int count)
{
	switch (dtype_sizes[s->j->dtype]) {
	case 1:
		F(short_values)(s, item, count, 1);
		break;
	case 2:
		F(short_values)(s, item, count, 2);
		break;
	case 4:
		F(short_values)(s, item, count, 4);
		break;
	default:
		F(short_values)(s, item, count, 8);
	}
}

#undef F
