/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Gradients from a range of queries, for the element type T. The weights are computed again from logsumexp: with
 * weights w = exp(score - logsumexp), g the gradient of the output and d = g value^T,
 *
 *   grad_value = w^T g                   score's gradient t = w (d - sum of g * output)
 *   grad_query = scale t key             grad_key = scale t^T query
 */

/* Half the distance to the next f32 number is 2^-15 here. */
#define COARSE_SUM 512

/* Temporary memory of a block. Panels follow each other in columns. */
struct backward {
	struct multiplier x;
	T *query, *grad;	     /* columns */
	T *query_rows, *grad_rows;   /* the same as load_panel_pairs() copies them */
	T *query_gradient;	     /* of add_to_queries() */
	T *sums, *products;	     /* logsumexp, and sums of g * output, of all queries */
	bool coarse;		     /* whether `max` is subtracted from scores before */
	T *max, *total;		     /* of exact_sums() */
	T *key, *value;		     /* rows of a block of keys */
	T *key_pairs;		     /* key as load_row_pairs() copies it */
	T *key_columns;		     /* of load_key_columns() */
	T *pairs;		     /* of rows of a panel's score_gradient */
	T *weights, *score_gradient; /* [keys][all panels] */
	T *factor;		     /* scale, for each query */
	T *buf, *mask;
};

/* Fewer keys than forward: the weights of all panels of a block are in memory. */
static int64_t backward_keys(const struct attention_shape *s)
{
	return block_keys(s) / 2;
}

static size_t backward_memory(struct backward *b, const struct attention_shape *s, void *memory)
{
	int64_t queries = block_queries(s), keys = backward_keys(s);
	uintptr_t at = (uintptr_t)memory;

	cut_multiplier(&b->x, &at, s, keys);
	b->query = cut(&at, queries * depth_of(s->features));
	b->grad = cut(&at, queries * depth_of(s->values));
	b->query_rows = cut(&at, queries * padded(s->features));
	b->grad_rows = cut(&at, queries * padded(s->values));
	b->query_gradient = cut(&at, queries * padded(s->features));
	b->sums = cut(&at, queries);
	b->products = cut(&at, queries);
	b->max = cut(&at, queries);
	b->total = cut(&at, queries);
	b->key = cut(&at, keys * apart(s->features));
	b->value = cut(&at, keys * apart(s->values));
	b->key_pairs = UNIT > 1 ? cut(&at, units(keys) * apart(s->features)) : b->key;
	b->key_columns = by_tiles(&b->x) ? cut(&at, padded(s->features) * b->x.pitch) : NULL;
	b->pairs = UNIT > 1 ? cut(&at, depth_of(keys) * WIDE) : NULL;
	b->weights = cut(&at, whole_pairs(keys) * apart(queries));
	b->score_gradient = cut(&at, whole_pairs(keys) * apart(queries));
	b->factor = cut(&at, queries);
	b->buf = cut(&at, conversion_size(s));
	b->mask = cut(&at, mask_size(s));
	return at - (uintptr_t)memory;
}

/* The sum of x * y over contiguous elements. */
INLINE VEC product_of(const T *x, const T *y, int64_t n)
{
	VEC sum = splat(0);
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		sum += *(const VEC *)(x + i) * *(const VEC *)(y + i);
	return sum + LOAD(x + i, PART(n - i)) * LOAD(y + i, PART(n - i));
}

/* Element i is the sum of row i of x times that of y, 0 beyond their rows. */
static VEC products_of(const struct rows *x, const struct rows *y)
{
	const bool dense = x->column == 1 && y->column == 1;
	VEC sum[LANES];

	for (int64_t i = 0; i < LANES; i++) {
		sum[i] = splat(0);
		if (i < x->n && dense)
			sum[i] = product_of(x->data + i * x->row, y->data + i * y->row, x->width);
		for (int64_t j = 0; i < x->n && !dense && j < x->width; j++)
			sum[i][0] += x->data[i * x->row + j * x->column] *
				     y->data[i * y->row + j * y->column];
	}
	return sum_rows(sum);
}

/* Sums of g * output; logsumexp of a query without permitted keys is -inf: from +inf its weights become 0. */
static void load_sums(const struct backward *b, const struct attention_matrix *m, int64_t from,
		      int64_t n, const struct rows *grad, const struct rows *output)
{
	for (int64_t i = 0; i < n; i += LANES) {
		struct rows x = rows_from(grad, i, least(n - i, LANES)),
			    y = rows_from(output, i, x.n);

		*(VEC *)(b->products + i) = products_of(&x, &y);
	}
	for (int64_t i = 0; i < padded(n); i++) {
		T sum = i < n ? *(const T *)(m->data + (from + i) * m->row) : 0;

		b->sums[i] = sum == -(T)INFINITY ? (T)INFINITY : sum;
	}
}

/* Whether rounding of a logsumexp to T changes weights more than rounding of their products does. */
static bool is_coarse(T sum)
{
	return fabs((double)sum) > COARSE_SUM && isfinite(sum);
}

static bool has_coarse_sums(const struct backward *b, int64_t n)
{
	bool coarse = false;

	for (int64_t i = 0; i < n; i++)
		coarse |= is_coarse(b->sums[i]);
	return coarse;
}

/*
 * Replaces each coarse sum by the maximum of the scores, and the logsumexp of what they are without it: a mask with a large
 * finite number for all keys of a query leaves nothing of the logarithm of their number in their logsumexp.
 */
static void exact_sums(const struct attention_shape *s, const struct attention_matrix *m,
		       const struct backward *b, int64_t from, int64_t n)
{
	int64_t last = last_key(s, from, n), keys = backward_keys(s);
	T scale[WIDE]; /* of sums of values, which are not computed */

	for (int64_t i = 0; i < block_queries(s); i++) {
		b->max[i] = -(T)INFINITY;
		b->total[i] = 0;
	}
	for (int64_t k = 0; k < last; k += keys) {
		struct rows r = unit_rows(&m[KEY], k, least(keys, last - k), s->features, b->buf);

		load_key_rows(b->key, &r);
		for (int64_t j = 0; j < n;) {
			struct panel p = panel_at(from, n, j);
			struct step step[VECS];
			int steps = steps_of(step, &p, s, k, r.n);

			if (steps) {
				masked_scores(&b->x, b->weights, s, &m[SCORE_MASK], b->key,
					      b->query + j * depth_of(s->features), &p, step, steps,
					      k, b->mask);
				weigh(b->weights, &p, step, steps, b->max + j, b->total + j, scale,
				      !k);
			}
			j += p.n;
		}
	}
	for (int64_t i = 0; i < block_queries(s); i++) {
		const bool coarse = i < n && is_coarse(b->sums[i]);

		b->sums[i] = coarse ? (T)log(b->total[i]) : b->sums[i];
		b->max[i] = coarse ? b->max[i] : 0;
	}
}

/* Subtracts the maxima of exact_sums(). */
static void subtract_max(T *scores, const struct panel *p, const struct step *step, int steps,
			 const T *max)
{
	for (int i = 0; i < steps; i++, step++)
		for (int64_t k = step->from; k < step->to; k++)
			for (int64_t j = step->first * (int64_t)LANES; j < p->across; j += LANES)
				*(VEC *)(scores + k * p->stride + j) -= *(const VEC *)(max + j);
}

/* Copies rows of `width` elements of a block of queries as panels, and as columns of its panels. */
static void load_both(T *panels, T *columns, const struct rows *r, int64_t width)
{
	load_panel_pairs(panels, r, width);
	for (int64_t j = 0; j < r->n;) {
		struct panel p = panel_at(0, r->n, j);
		struct rows part = rows_from(r, j, p.n);

		load_panel(columns + j * depth_of(width), &part, p.across);
		j += p.n;
	}
}

static void load_block(const struct attention_shape *s, const struct attention_matrix *m,
		       const struct backward *b, int64_t from, int64_t n)
{
	struct rows r = unit_rows(&m[QUERY], from, n, s->features, b->buf), output;

	load_both(b->query_rows, b->query, &r, s->features);
	r = unit_rows(&m[GRAD], from, n, s->values, b->buf);
	load_both(b->grad_rows, b->grad, &r, s->values);
	if (UNIT > 1)
		r = rows_of(&m[GRAD], from, n, s->values, b->buf);
	output = rows_of(&m[OUTPUT], from, n, s->values, b->buf + n * s->values);
	load_sums(b, &m[SUMS], from, n, &r, &output);
}

/* Scores become weights, and d the score's gradient. */
INLINE void differentiate(T *x, T *d, int64_t n, int64_t stride, const int vecs, const T *sums,
			  const T *products)
{
	VEC s[VECS], t[VECS];

#pragma GCC unroll 3
	for (int v = 0; v < vecs; v++) {
		s[v] = *(const VEC *)(sums + v * LANES);
		t[v] = *(const VEC *)(products + v * LANES);
	}
	for (int64_t i = 0; i < n; i++, x += stride, d += stride)
#pragma GCC unroll 3
		for (int v = 0; v < vecs; v++) {
			VEC w = EXP(*(VEC *)(x + v * LANES) - s[v]);

			*(VEC *)(x + v * LANES) = w;
			*(VEC *)(d + v * LANES) = w * (*(VEC *)(d + v * LANES) - t[v]);
		}
}

/* Tiles read weights from an even vector on; those before the steps of several panels have whole pairs of vectors. */
_Static_assert(UNIT == 1 || KEYS / 2 % (2 * LANES) == 0, "keys in a block of several panels");

/* Weights and gradients of scores of a panel, and its part of the gradient of query. */
static void differentiate_panel(const struct attention_shape *s, const struct attention_matrix *m,
				const struct backward *b, const struct panel *p, int64_t j,
				int64_t k, int64_t n)
{
	T *weights = b->weights + j, *gradient = b->score_gradient + j;
	struct step step[VECS];
	int steps = steps_of(step, p, s, k, n);
	struct panel pairs = *p;
	const T *paired;
	int64_t rows;

	if (!steps)
		return;
	masked_scores(&b->x, weights, s, &m[SCORE_MASK], b->key,
		      b->query + j * depth_of(s->features), p, step, steps, k, b->mask);
	if (b->coarse)
		subtract_max(weights, p, step, steps, b->max + j);
	score(&b->x, gradient, b->value, units(s->values), b->grad + j * depth_of(s->values), p,
	      step, steps, 1);
	for (int i = 0; i < steps; i++) {
		int64_t left = step[i].first * (int64_t)LANES, at = step[i].from * p->stride + left;

		rows = step[i].to - step[i].from;
		WITH_VECS(p->vecs - step[i].first,
			  differentiate(weights + at, gradient + at, rows, p->stride, vectors,
					b->sums + j + left, b->products + j + left));
	}
	/* Tiles of add_to_keys() read weights of all n keys. */
	rows = by_tiles(&b->x) ? n : keys_of(step, steps);
	weight_rows(&b->x, weights, p, step, steps, rows);
	rows = weight_rows(&b->x, gradient, p, step, steps, rows);
	paired = pair_rows(b->pairs, gradient, &pairs, rows);
	add_to_queries(&b->x, b->query_gradient + j * padded(s->features), paired, b->key_pairs,
		       b->key_columns, s->features, &pairs, step, steps, !k);
	narrow_rows(b->weights, j, p, rows);
	narrow_rows(b->score_gradient, j, p, rows);
}

/* Adds the contributions of n queries from `from` on and `count` keys from key k on. */
static void add_gradients(const struct attention_shape *s, const struct attention_matrix *m,
			  const struct backward *b, int64_t from, int64_t n, int64_t k,
			  int64_t count, const struct attention_gradients *to, bool first)
{
	int64_t across = padded(n);
	const struct panel all = { from, n, across, apart(across), (int)(across / LANES) };
	struct step step[STEPS];
	int steps = steps_of(step, &all, s, k, count);

	for (int64_t j = 0; j < n;) {
		struct panel p = panel_at(from, n, j);

		p.stride = all.stride;
		differentiate_panel(s, m, b, &p, j, k, count);
		j += p.n;
	}
	add_to_keys(&b->x, (T *)to->value + k * to->value_row, to->value_row, b->weights,
		    b->grad_rows, s->values, &all, step, steps, 1, first);
	add_to_keys(&b->x, (T *)to->key + k * to->key_row, to->key_row, b->score_gradient,
		    b->query_rows, s->features, &all, step, steps, s->scale, first);
}

static void load_key_block(const struct attention_shape *s, const struct attention_matrix *m,
			   const struct backward *b, int64_t k, int64_t n)
{
	struct rows r = unit_rows(&m[KEY], k, n, s->features, b->buf);

	load_key_rows(b->key, &r);
	if (UNIT > 1)
		load_row_pairs(b->key_pairs, &r, s->features);
	load_key_columns(&b->x, b->key_columns, b->key_pairs, n, s->features);
	r = unit_rows(&m[VALUE], k, n, s->values, b->buf);
	load_key_rows(b->value, &r);
}

static void backward_block(const struct attention_shape *s, const struct attention_matrix *m,
			   struct backward *b, int64_t from, int64_t n,
			   const struct attention_gradients *to, bool first)
{
	int64_t last = last_key(s, from, n), keys = backward_keys(s);

	load_block(s, m, b, from, n);
	b->coarse = has_coarse_sums(b, n);
	if (b->coarse)
		exact_sums(s, m, b, from, n);
	if (!last)
		memset(b->query_gradient, 0, n * padded(s->features) * sizeof(T));
	for (int64_t k = 0; k < last; k += keys) {
		int64_t count = least(keys, last - k);

		load_key_block(s, m, b, k, count);
		add_gradients(s, m, b, from, n, k, count, to, first);
	}
	for (int64_t i = 0; i < n; i++)
		b->factor[i] = (T)s->scale;
	store_queries(&b->x, &m[GRAD_QUERY], from, n, s->features, b->query_gradient, b->factor);
}

static void backward_range(const struct attention_shape *s, const struct attention_matrix *m,
			   int64_t from, int64_t n, void *memory,
			   const struct attention_gradients *to)
{
	struct backward b;

	backward_memory(&b, s, memory);
	begin_products(&b.x);
	/* The first block writes the sums of its keys, the others add to them. */
	for (int64_t i = n ? last_key(s, from, least(block_queries(s), n)) : 0; i < s->keys; i++) {
		memset((T *)to->key + i * to->key_row, 0, s->features * sizeof(T));
		memset((T *)to->value + i * to->value_row, 0, s->values * sizeof(T));
	}
	for (int64_t i = 0; i < n; i += block_queries(s))
		backward_block(s, m, &b, from + i, least(block_queries(s), n - i), to, !i);
	end_products(&b.x);
}

static size_t backward_bytes(const struct attention_shape *s)
{
	struct backward b;

	return backward_memory(&b, s, NULL);
}

static void add_elements(void *to, const void *from, int64_t n)
{
	T *a = to;
	const T *b = from;

	IVDEP for (int64_t i = 0; i < n; i++) a[i] += b[i];
}

const struct attention_functions ATTENTION(attention) = {
	.block = block_queries,
	.forward_bytes = forward_bytes,
	.backward_bytes = backward_bytes,
	.forward = forward_block,
	.backward = backward_range,
	.add = add_elements,
};
