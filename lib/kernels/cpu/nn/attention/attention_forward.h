/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The output of a block of queries: maximum and sum of the exponentials of each query are updated with each block of
 * keys, and what was summed before is scaled to the new maximum.
 */

/* Temporary memory of a block. Columns of its panels follow each other. */
struct forward {
	struct multiplier x;
	T *query;	  /* columns: [features][across] */
	T *output;	  /* of add_to_queries() */
	T *max, *sum;	  /* [across] */
	T *key, *value;	  /* rows of a block of keys */
	T *value_columns; /* of load_key_columns() */
	T *weights;	  /* [keys][across] */
	T *buf, *mask;
};

static size_t forward_memory(struct forward *f, const struct attention_shape *s, void *memory)
{
	int64_t queries = block_queries(s), keys = block_keys(s);
	uintptr_t at = (uintptr_t)memory;

	cut_multiplier(&f->x, &at, s, keys);
	f->query = cut(&at, queries * depth_of(s->features));
	f->output = cut(&at, queries * padded(s->values));
	f->max = cut(&at, queries);
	f->sum = cut(&at, queries);
	f->key = cut(&at, keys * apart(s->features));
	f->value = cut(&at, keys * apart(s->values));
	f->value_columns = by_tiles(&f->x) ? cut(&at, padded(s->values) * f->x.pitch) : NULL;
	f->weights = cut(&at, whole_pairs(keys) * WIDE);
	f->buf = cut(&at, conversion_size(s));
	f->mask = cut(&at, mask_size(s));
	return at - (uintptr_t)memory;
}

INLINE void maximum_of(const T *x, int64_t n, int64_t stride, const int vecs, T *max)
{
	VEC m[VECS];

#pragma GCC unroll 3
	for (int v = 0; v < vecs; v++)
		m[v] = *(VEC *)(max + v * LANES);
	for (int64_t i = 0; i < n; i++, x += stride)
#pragma GCC unroll 3
		for (int v = 0; v < vecs; v++)
			m[v] = MAX(*(const VEC *)(x + v * LANES), m[v]);
#pragma GCC unroll 3
	for (int v = 0; v < vecs; v++)
		*(VEC *)(max + v * LANES) = m[v];
}

/* x = exp(x - base); adds them to sum. */
INLINE void exponentials(T *x, int64_t n, int64_t stride, const int vecs, const T *base, T *sum)
{
	VEC b[VECS], t[VECS];

#pragma GCC unroll 3
	for (int v = 0; v < vecs; v++) {
		b[v] = *(const VEC *)(base + v * LANES);
		t[v] = *(VEC *)(sum + v * LANES);
	}
	for (int64_t i = 0; i < n; i++, x += stride)
#pragma GCC unroll 3
		for (int v = 0; v < vecs; v++) {
			VEC e = EXP(*(VEC *)(x + v * LANES) - b[v]);

			*(VEC *)(x + v * LANES) = e;
			t[v] += e;
		}
#pragma GCC unroll 3
	for (int v = 0; v < vecs; v++)
		*(VEC *)(sum + v * LANES) = t[v];
}

/* The scale from the old maxima of n queries to the new ones, by which sums are multiplied. */
static void rescale(T *scale, int64_t n, const T *old, const T *base, T *sum)
{
	for (int64_t i = 0; i < n; i += LANES) {
		VEC x = EXP(*(const VEC *)(old + i) - *(const VEC *)(base + i));

		*(VEC *)(scale + i) = x;
		*(VEC *)(sum + i) *= x;
	}
}

/*
 * Scores of a panel become exp(score - maximum); max and sum are updated. Returns whether earlier sums of weighted values
 * must be multiplied by `scale` first. A maximum of -inf is subtracted as 0, so that exponentials of -inf are 0 and not
 * NaN.
 */
static bool weigh(T *scores, const struct panel *p, const struct step *step, int steps, T *max,
		  T *sum, T *scale, bool first)
{
	T old[WIDE], base[WIDE];
	bool grown;

	memcpy(old, max, p->across * sizeof(T));
	for (int i = 0; i < steps; i++) {
		int64_t left = step[i].first * (int64_t)LANES, n = step[i].to - step[i].from;
		const T *x = scores + step[i].from * p->stride + left;

		WITH_VECS(p->vecs - step[i].first,
			  maximum_of(x, n, p->stride, vectors, max + left));
	}
	for (int64_t i = 0; i < p->across; i += LANES) {
		VEC m = *(VEC *)(max + i);

		*(VEC *)(base + i) = VEC_PICK(m == -(T)INFINITY, splat(0), m);
	}
	grown = !first && memcmp(old, max, p->across * sizeof(T));
	if (grown)
		rescale(scale, p->across, old, base, sum);
	for (int i = 0; i < steps; i++) {
		int64_t left = step[i].first * (int64_t)LANES, n = step[i].to - step[i].from;
		T *x = scores + step[i].from * p->stride + left;

		WITH_VECS(p->vecs - step[i].first,
			  exponentials(x, n, p->stride, vectors, base + left, sum + left));
	}
	return grown;
}

/*
 * The sums become logsumexp and max the factors of the output. With a mask, a query without permitted keys gets zeros; a
 * query whose scores are all -inf without one gets NaN, as from softmax.
 */
static void finish_sums(const struct attention_shape *s, T *max, T *sum, int64_t n)
{
	T empty = s->masked || !s->keys ? 0 : (T)NAN;

	for (int64_t i = 0; i < n; i += LANES) {
		VEC t = *(VEC *)(sum + i), m = *(VEC *)(max + i);

		*(VEC *)(sum + i) = VEC_PICK(t == 0, splat(empty - (T)INFINITY), m + LOG(t));
		*(VEC *)(max + i) = VEC_PICK(t == 0, splat(empty), 1 / t);
	}
}

static void store_block(const struct attention_shape *s, const struct attention_matrix *m,
			const struct forward *f, int64_t from, int64_t n)
{
	finish_sums(s, f->max, f->sum, n);
	store_queries(&f->x, &m[OUTPUT], from, n, s->values, f->output, f->max);
	for (int64_t i = 0; i < n; i++)
		*(T *)(m[SUMS].data + (from + i) * m[SUMS].row) = f->sum[i];
}

static void attend(const struct attention_shape *s, const struct attention_matrix *m,
		   const struct forward *f, const struct panel *p, int64_t j, int64_t k, int64_t n)
{
	T *output = f->output + j * padded(s->values), scale[WIDE];
	struct panel pairs = *p;
	struct step step[VECS];
	const T *weights;
	int steps = steps_of(step, p, s, k, n);
	int64_t rows;

	if (!steps)
		return;
	masked_scores(&f->x, f->weights, s, &m[SCORE_MASK], f->key,
		      f->query + j * depth_of(s->features), p, step, steps, k, f->mask);
	if (weigh(f->weights, p, step, steps, f->max + j, f->sum + j, scale, !k))
		scale_queries(&f->x, output, s->values, p, scale);
	rows = weight_rows(&f->x, f->weights, p, step, steps, keys_of(step, steps));
	weights = pair_rows(f->weights, f->weights, &pairs, rows);
	add_to_queries(&f->x, output, weights, f->value, f->value_columns, s->values, &pairs, step,
		       steps, !k);
}

static void load_queries(const struct attention_shape *s, const struct attention_matrix *m,
			 const struct forward *f, int64_t from, int64_t n)
{
	const struct rows query = unit_rows(&m[QUERY], from, n, s->features, f->buf);

	for (int64_t j = 0; j < n;) {
		struct panel p = panel_at(from, n, j);
		struct rows r = rows_from(&query, j, p.n);

		load_panel(f->query + j * depth_of(s->features), &r, p.across);
		for (int64_t i = j; i < j + p.across; i++) {
			f->max[i] = -(T)INFINITY;
			f->sum[i] = 0;
		}
		j += p.n;
	}
}

static void load_keys(const struct attention_shape *s, const struct attention_matrix *m,
		      const struct forward *f, int64_t k, int64_t n)
{
	struct rows r = unit_rows(&m[KEY], k, n, s->features, f->buf);

	load_key_rows(f->key, &r);
	r = unit_rows(&m[VALUE], k, n, s->values, f->buf);
	load_row_pairs(f->value, &r, s->values);
	load_key_columns(&f->x, f->value_columns, f->value, n, s->values);
}

static void forward_block(const struct attention_shape *s, const struct attention_matrix *m,
			  int64_t from, int64_t n, void *memory)
{
	int64_t last = last_key(s, from, n), keys = block_keys(s);
	struct forward f;

	forward_memory(&f, s, memory);
	begin_products(&f.x);
	load_queries(s, m, &f, from, n);
	if (!last)
		memset(f.output, 0, n * padded(s->values) * sizeof(T));
	for (int64_t k = 0; k < last; k += keys) {
		int64_t count = least(keys, last - k);

		load_keys(s, m, &f, k, count);
		for (int64_t j = 0; j < n;) {
			struct panel p = panel_at(from, n, j);

			attend(s, m, &f, &p, j, k, count);
			j += p.n;
		}
	}
	end_products(&f.x);
	store_block(s, m, &f, from, n);
}

static size_t forward_bytes(const struct attention_shape *s)
{
	struct forward f;

	return forward_memory(&f, s, NULL);
}
