/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of embedding.c for sums of type T, of dtype DTYPE (no include guard). Rows of other
 * dtypes are converted when they are read.
 */

/* Row i of t [.., d]: in place, or converted to T in buffer. */
static inline const T *F(row)(const tensor *t, int64_t i, int64_t d, T *buffer)
{
	const char *at = (const char *)t->data + i * d * itemsize(t);

	if (t->dtype == DTYPE)
		return (const T *)at;
	CPU_NAME(convert)(buffer, DTYPE, sizeof(T), at, t->dtype, itemsize(t), d);
	return buffer;
}

static inline void F(add_row)(T *to, const T *from, T factor, int64_t d)
{
	if (factor == 1)
		IVDEP for (int64_t j = 0; j < d; j++) to[j] += from[j];
	else
		IVDEP for (int64_t j = 0; j < d; j++) to[j] += from[j] * factor;
}

/* ---- the gradient of a table: rows begin to end ---- */

static void F(table)(int64_t begin, int64_t end, void *ctx)
{
	const struct table *t = ctx;
	T *out = t->out->data,
	  *buffer = (T *)((char *)t->buffers + begin / t->grain * t->d * sizeof(T));

	memset(out + begin * t->d, 0, (end - begin) * t->d * sizeof(T));
	for (int64_t i = 0; i < t->m; i++) {
		int64_t k = index_at(t->indices, i), g = t->bag ? index_at(t->bag, i) : i;
		T factor = 1;

		if (k < begin || k >= end || k == t->e.padding_idx)
			continue;
		if (t->factors)
			factor *= ((const T *)t->factors->data)[i];
		if (t->bag_size)
			factor /= (T)index_at(t->bag_size, g);
		if (t->counts)
			factor /= (T)t->counts[k];
		F(add_row)(out + k * t->d, F(row)(t->grad, g, t->d, buffer), factor, t->d);
	}
}

/* BAG_MAX: each element of the gradient of a bag is added to the row that was the maximum. */
static void F(table_of_maxima)(const struct table *t, const tensor *maximum, const tensor *bag_size)
{
	T *out = t->out->data, *buffer = t->buffers;
	int64_t d = t->d;

	memset(out, 0, t->out->numel * sizeof(T));
	for (int64_t b = 0; b < bag_size->numel; b++) {
		const T *g = F(row)(t->grad, b, d, buffer);

		for (int64_t j = 0; j < d && index_at(bag_size, b); j++)
			out[index_at(maximum, b * d + j) * d + j] += g[j];
	}
}

/* ---- bags ---- */

/* The maximum of out and row k, with the index of its row. */
static void F(maximum)(const struct bag_job *t, int64_t b, const T *row, int64_t k, bool first)
{
	T *out = (T *)t->out->data + b * t->d;

	for (int64_t j = 0; j < t->d; j++)
		if (first || row[j] > out[j]) {
			out[j] = row[j];
			set_index(t->b->maximum, b * t->d + j, k);
		}
}

static void F(bags)(int64_t begin, int64_t end, void *ctx)
{
	const struct bag_job *t = ctx;
	const struct bags *bags = t->b;
	T *buffer = (T *)((char *)t->buffers + begin / t->grain * t->d * sizeof(T));

	for (int64_t b = begin; b < end; b++) {
		int64_t from = index_at(bags->offsets, b), count = 0;
		int64_t to = b + 1 < bags->offsets->numel ? index_at(bags->offsets, b + 1) :
							    bags->indices->numel;
		T *out = (T *)t->out->data + b * t->d;

		memset(out, 0, t->d * sizeof(T));
		for (int64_t i = from; i < to; i++) {
			int64_t k = index_at(bags->indices, i);
			const T *row;
			T factor = bags->factors ? ((const T *)bags->factors->data)[i] : 1;

			if (k == bags->e.padding_idx)
				continue;
			row = F(row)(t->weight, k, t->d, buffer);
			if (bags->mode == BAG_MAX)
				F(maximum)(t, b, row, k, !count);
			else
				F(add_row)(out, row, factor, t->d);
			count++;
		}
		for (int64_t j = 0; bags->mode == BAG_MEAN && count > 1 && j < t->d; j++)
			out[j] /= (T)count;
		set_index(bags->bag_size, b, bags->mode == BAG_SUM ? 0 : count);
	}
}

/* The gradient of the factors of rows: the products of rows and gradients of their bags. */
static void F(products)(const struct bag_job *t)
{
	const struct bags *b = t->b;
	T *out = t->out->data, *x = t->buffers, *y = x + t->d;

	for (int64_t i = 0; i < b->indices->numel; i++) {
		int64_t k = index_at(b->indices, i);
		const T *row, *grad;
		T sum = 0;

		out[i] = 0;
		if (k == b->e.padding_idx)
			continue;
		row = F(row)(t->weight, k, t->d, x);
		grad = F(row)(t->grad, index_at(b->offset2bag, i), t->d, y);
		for (int64_t j = 0; j < t->d; j++)
			sum += row[j] * grad[j];
		out[i] = sum;
	}
}

#undef T
#undef F
#undef DTYPE
