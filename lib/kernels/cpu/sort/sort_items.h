/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Sorting and selecting items; included by sort.h through sort_each.h (no include
 * guard). Items are passed in the order of their positions, and all functions keep that order
 * for equal keys.
 */
#define F(name) CPU_PASTE(name, SUFFIX)

static inline bool F(item_less)(ITEM x, ITEM y)
{
	return KEY(x) < KEY(y);
}

/* The items of a line; flip reverses the order of the keys. */
static void F(items_load)(ITEM *items, const char *p, int64_t stride, enum tensor_dtype dtype,
			  int64_t n, bool flip)
{
	_Alignas(64) KEY_T key[KEYS];

	for (int64_t i = 0; i < n; i += KEYS) {
		int64_t m = n - i < KEYS ? n - i : KEYS;

		F(keys)(key, p + i * stride, stride, dtype, m, flip);
		for (int64_t k = 0; k < m; k++)
			items[i + k] = MAKE(key[k], i + k);
	}
}

static void F(insertion_sort)(ITEM *a, int64_t n)
{
	for (int64_t i = 1; i < n; i++) {
		ITEM x = a[i];
		int64_t k = i;

		for (; k > 0 && F(item_less)(x, a[k - 1]); k--)
			a[k] = a[k - 1];
		a[k] = x;
	}
}

static void F(items_merge)(ITEM *restrict to, const ITEM *restrict a, int64_t na,
			   const ITEM *restrict b, int64_t nb)
{
	while (na && nb) {
		bool right = F(item_less)(*b, *a);

		*to++ = right ? *b : *a;
		b += right;
		nb -= right;
		a += !right;
		na -= !right;
	}
	memcpy(to, na ? a : b, (na + nb) * sizeof(ITEM));
}

/* Sorts a, with b as buffer; returns the one that contains the result. */
static ITEM *F(merge_sort)(ITEM *a, ITEM *b, int64_t n)
{
	for (int64_t i = 0; i < n; i += RUN)
		F(insertion_sort)(a + i, n - i < RUN ? n - i : RUN);
	for (int64_t w = RUN; w < n; w *= 2) {
		ITEM *t = a;

		for (int64_t i = 0; i < n; i += 2 * w) {
			int64_t left = n - i < w ? n - i : w;
			int64_t right = n - i - left < w ? n - i - left : w;

			F(items_merge)(b + i, a + i, left, a + i + left, right);
		}
		a = b;
		b = t;
	}
	return a;
}

/* Sorts by digits, the least significant first; skips a digit that is the same in all keys. */
static ITEM *F(radix_sort)(ITEM *a, ITEM *b, int64_t n, int bits)
{
	int width = n < WIDE ? 8 : 11, digits = (bits + width - 1) / width;
	uint64_t mask = (1u << width) - 1;
	int64_t count[DIGITS][2048];

	memset(count, 0, digits * sizeof(*count));
	for (int64_t i = 0; i < n; i++) {
		KEY_T key = KEY(a[i]);

		for (int d = 0; d < digits; d++)
			count[d][key >> d * width & mask]++;
	}
	for (int d = 0; d < digits; d++) {
		int64_t sum = 0, *c = count[d];
		ITEM *t = a;

		if (c[KEY(a[0]) >> d * width & mask] == n)
			continue;
		for (uint64_t k = 0; k <= mask; k++) {
			int64_t many = c[k];

			c[k] = sum;
			sum += many;
		}
		for (int64_t i = 0; i < n; i++) {
			ITEM x = a[i];

			b[c[KEY(x) >> d * width & mask]++] = x;
		}
		a = b;
		b = t;
	}
	return a;
}

static ITEM *F(items_sort)(ITEM *a, ITEM *b, int64_t n, int bits)
{
	return n < SMALL ? F(merge_sort)(a, b, n) : F(radix_sort)(a, b, n, bits);
}

/* The item that would be at k if a were sorted. Changes a. */
static inline ITEM F(items_nth)(ITEM *a, int64_t n, int64_t k)
{
	for (;;) {
		KEY_T first = KEY(a[0]), differ = 0;
		int64_t count[2048], m = 0, digit = 0;
		int bits = n < 512 ? 6 : n < 2048 ? 8 : 11, shift;
		uint64_t mask = (1u << bits) - 1;

		if (n <= RUN) {
			F(insertion_sort)(a, n);
			return a[k];
		}
		for (int64_t i = 0; i < n; i++)
			differ |= KEY(a[i]) ^ first;
		if (!differ)
			return a[k];
		/* The most significant bits in which keys differ. */
		shift = 64 - __builtin_clzll(differ) - bits;
		shift = shift < 0 ? 0 : shift;
		memset(count, 0, (mask + 1) * sizeof(*count));
		for (int64_t i = 0; i < n; i++)
			count[KEY(a[i]) >> shift & mask]++;
		for (; k >= count[digit]; digit++)
			k -= count[digit];
		for (int64_t i = 0; i < n; i++) {
			ITEM x = a[i];

			a[m] = x;
			m += (int64_t)(KEY(x) >> shift & mask) == digit;
		}
		n = m;
	}
}

/* Moves the k first items in order to the front of a, unsorted; b is a buffer of n items. */
static inline void F(items_least)(ITEM *a, ITEM *b, int64_t n, int64_t k)
{
	int64_t m = 0;
	ITEM last;

	memcpy(b, a, n * sizeof(ITEM));
	last = F(items_nth)(b, n, k - 1);
	for (int64_t i = 0; i < n && m < k; i++) {
		ITEM x = a[i];

		a[m] = x;
		m += KEY(x) < KEY(last) || (KEY(x) == KEY(last) && AT(x) <= AT(last));
	}
}

/* Sets best[0..k) to the k first items of a line in order, sorted; reads the line once. */
static inline void F(items_few)(ITEM *best, int64_t k, const char *p, int64_t stride,
				enum tensor_dtype dtype, int64_t n, bool flip)
{
	_Alignas(64) KEY_T key[KEYS];
	int64_t have = 0;

	for (int64_t i = 0; i < n; i += KEYS) {
		int64_t m = n - i < KEYS ? n - i : KEYS;

		F(keys)(key, p + i * stride, stride, dtype, m, flip);
		for (int64_t c = m; c % GROUP; c++)
			key[c] = (KEY_T)-1;
		for (int64_t c = 0; c < m; c += GROUP) {
			KEY_T limit = have < k ? (KEY_T)-1 : KEY(best[k - 1]), found = 0;
			int64_t end = m - c < GROUP ? m : c + GROUP;

			for (int64_t g = 0; g < GROUP; g++)
				found |= key[c + g] < limit ? (KEY_T)-1 : 0;
			if (!found && have == k)
				continue;
			for (int64_t g = c; g < end; g++) {
				ITEM x = MAKE(key[g], i + g);
				int64_t at;

				if (have == k && !(key[g] < KEY(best[k - 1])))
					continue;
				have += have < k;
				for (at = have - 1; at > 0 && key[g] < KEY(best[at - 1]); at--)
					best[at] = best[at - 1];
				best[at] = x;
			}
		}
	}
}

#undef F
