// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_select, gather, index_add, scatter_add. All four are one walk: of index, and of the two
 * tensors with stride 0 in the indexed dimension, where the index's value times the stride is
 * added. index_select and index_add are the case where the index does not change along a row.
 *
 * Indices are read once, in blocks, into private memory and checked there: another process that
 * shares them may write at any time. Adding first checks all of them, so that a bad one leaves
 * the output as it was.
 */
#include "cpu.h"

#include "../parallel.h"

#define BLOCK 256

struct walk {
	const char *name;
	int64_t step; /* bytes between positions of the indexed dimension */
	int64_t limit; /* its size */
	bool narrow; /* i32 */
	double alpha;
	_Atomic bool bad;
};

/* n indices at p into at[], times w->step; false when one is out of range. */
static bool fetch(struct walk *w, const char *p, int64_t stride, int64_t n, int64_t *at)
{
	uint64_t limit = (uint64_t)w->limit;
	int64_t step = w->step;
	bool bad = false;

	if (w->narrow) {
		for (int64_t i = 0; i < n; i++)
			at[i] = *(const volatile int32_t *)(p + i * stride);
	} else if (stride == sizeof(int64_t)) {
		memcpy(at, p, n * sizeof(*at));
		__asm__ volatile("" : : "r"(at) : "memory"); /* from here on, at[] and not p[] */
	} else {
		for (int64_t i = 0; i < n; i++)
			at[i] = *(const volatile int64_t *)(p + i * stride);
	}
	for (int64_t i = 0; i < n; i++) {
		bad |= (uint64_t)at[i] >= limit;
		at[i] *= step;
	}
	if (unlikely(bad))
		w->bad = true;
	return !bad;
}

/* ---- from self to out: bits move ----------------------------------------------------- */

struct bits16 {
	uint64_t w[2];
};

/* The usual gather, without a detour: i64 indices and results side by side. */
#define TAKE(n, T)                                                                                \
	static inline bool take_dense_##n(T *to, const char *s, const volatile int64_t *index,    \
					  int64_t len, uint64_t limit, int64_t step)              \
	{                                                                                         \
		for (int64_t i = 0; i < len; i++) {                                               \
			uint64_t at = (uint64_t)index[i];                                         \
                                                                                                  \
			if (unlikely(at >= limit))                                                \
				return false;                                                     \
			to[i] = *(const T *)(s + (int64_t)at * step);                             \
		}                                                                                 \
		return true;                                                                      \
	}                                                                                         \
	static bool take_whole_##n(struct walk *w, char *o, const char *s, const char *index,     \
				   int64_t len)                                                   \
	{                                                                                         \
		const volatile int64_t *from = (const volatile int64_t *)index;                   \
		bool fine = w->step == sizeof(T) ?                                                \
				    take_dense_##n((T *)o, s, from, len, w->limit, sizeof(T)) :   \
				    take_dense_##n((T *)o, s, from, len, w->limit, w->step);      \
                                                                                                  \
		if (unlikely(!fine))                                                              \
			w->bad = true;                                                            \
		return fine;                                                                      \
	}                                                                                         \
	static void take_row_##n(char *o, const char *s, int64_t so, int64_t ss,                  \
				 const int64_t *at, int64_t len)                                  \
	{                                                                                         \
		for (int64_t i = 0; i < len; i++)                                                 \
			*(T *)(o + i * so) = *(const T *)(s + i * ss + at[i]);                    \
	}                                                                                         \
	static void move_row_##n(char *o, const char *s, int64_t so, int64_t ss, int64_t len)     \
	{                                                                                         \
		if (so == sizeof(T) && ss == sizeof(T))                                           \
			memcpy(o, s, len * sizeof(T));                                            \
		else                                                                              \
			for (int64_t i = 0; i < len; i++)                                         \
				*(T *)(o + i * so) = *(const T *)(s + i * ss);                    \
	}                                                                                         \
	static void take_##n(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, \
			     int64_t n1, const void *params)                                      \
	{                                                                                         \
		struct walk *w = (struct walk *)params;                                           \
		int64_t at[BLOCK];                                                                \
                                                                                                  \
		if (s0[0] == sizeof(T) && s0[1] == sizeof(int64_t) && !s0[2] && !w->narrow) {     \
			for (int64_t j = 0; j < n1; j++)                                          \
				if (!take_whole_##n(w, data[0] + j * s1[0], data[2] + j * s1[2],  \
						    data[1] + j * s1[1], n0))                     \
					return;                                                   \
			return;                                                                   \
		}                                                                                 \
		for (int64_t j = 0; j < n1 && s0[1]; j++)                                         \
			for (int64_t i = 0, len; i < n0; i += len) {                              \
				len = n0 - i < BLOCK ? n0 - i : BLOCK;                            \
				if (!fetch(w, data[1] + j * s1[1] + i * s0[1], s0[1], len, at))   \
					return;                                                   \
				take_row_##n(data[0] + j * s1[0] + i * s0[0],                     \
					     data[2] + j * s1[2] + i * s0[2], s0[0], s0[2], at,   \
					     len);                                                \
			}                                                                         \
		for (int64_t j = 0, rows; j < n1 && !s0[1]; j += rows) {                          \
			rows = n1 - j < BLOCK ? n1 - j : BLOCK;                                   \
			if (!fetch(w, data[1] + j * s1[1], s1[1], rows, at))                      \
				return;                                                           \
			for (int64_t r = 0; r < rows; r++)                                        \
				move_row_##n(data[0] + (j + r) * s1[0],                           \
					     data[2] + (j + r) * s1[2] + at[r], s0[0], s0[2],     \
					     n0);                                                 \
		}                                                                                 \
	}
TAKE(1, uint8_t)
TAKE(2, uint16_t)
TAKE(4, uint32_t)
TAKE(8, uint64_t)
TAKE(16, struct bits16)

/* ---- from source to out: added ------------------------------------------------------- */

#define ADD(d, T, ALPHA, PLUS)                                                                    \
	static void add_row_##d(char *o, const char *s, int64_t so, int64_t ss,                   \
				const int64_t *at, int64_t len, T alpha)                          \
	{                                                                                         \
		for (int64_t i = 0; i < len; i++) {                                               \
			T *to = (T *)(o + i * so + at[i]);                                        \
			T x = *(const T *)(s + i * ss), y = *to;                                  \
			*to = (T)(PLUS);                                                          \
		}                                                                                 \
	}                                                                                         \
	static void add_run_##d(char *o, const char *s, int64_t so, int64_t ss, int64_t len,      \
				T alpha)                                                          \
	{                                                                                         \
		if (so == sizeof(T) && ss == sizeof(T)) {                                         \
			T *to = (T *)o;                                                           \
			const T *from = (const T *)s;                                             \
			IVDEP for (int64_t i = 0; i < len; i++)                                   \
			{                                                                         \
				T x = from[i], y = to[i];                                         \
				to[i] = (T)(PLUS);                                                \
			}                                                                         \
			return;                                                                   \
		}                                                                                 \
		for (int64_t i = 0; i < len; i++) {                                               \
			T *to = (T *)(o + i * so);                                                \
			T x = *(const T *)(s + i * ss), y = *to;                                  \
			*to = (T)(PLUS);                                                          \
		}                                                                                 \
	}                                                                                         \
	static void add_##d(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0,  \
			    int64_t n1, const void *params)                                       \
	{                                                                                         \
		struct walk *w = (struct walk *)params;                                           \
		T alpha = (T)(ALPHA)w->alpha;                                                     \
		int64_t at[BLOCK];                                                                \
                                                                                                  \
		for (int64_t j = 0; j < n1 && s0[1]; j++)                                         \
			for (int64_t i = 0, len; i < n0; i += len) {                              \
				len = n0 - i < BLOCK ? n0 - i : BLOCK;                            \
				if (!fetch(w, data[1] + j * s1[1] + i * s0[1], s0[1], len, at))   \
					return;                                                   \
				add_row_##d(data[0] + j * s1[0] + i * s0[0],                      \
					    data[2] + j * s1[2] + i * s0[2], s0[0], s0[2], at,    \
					    len, alpha);                                          \
			}                                                                         \
		for (int64_t j = 0, rows; j < n1 && !s0[1]; j += rows) {                          \
			rows = n1 - j < BLOCK ? n1 - j : BLOCK;                                   \
			if (!fetch(w, data[1] + j * s1[1], s1[1], rows, at))                      \
				return;                                                           \
			for (int64_t r = 0; r < rows; r++)                                        \
				add_run_##d(data[0] + (j + r) * s1[0] + at[r],                    \
					    data[2] + (j + r) * s1[2], s0[0], s0[2], n0, alpha);  \
		}                                                                                 \
	}
#define ADD_INT(d, T, D)   ADD(d, T, int64_t, y + alpha * x)
#define ADD_FLOAT(d, T, D) ADD(d, T, T, y + alpha * x)
DTYPES_INT(ADD_INT)
DTYPES_FLOAT(ADD_FLOAT)
ADD(b8, uint8_t, bool, y | (alpha && x))

/* ---- walking ------------------------------------------------------------------------- */

/* t as the walk sees it: of these sizes, and standing still in dimension `still` (-1: nowhere). */
static struct tensor seen(const tensor *t, const tensor *shape, int still)
{
	struct tensor v = *t;

	v.ndim = shape->ndim;
	v.numel = shape->numel;
	v.contiguous = still < 0 && t->contiguous && sizes_equal(t, shape);
	for (int i = 0; i < shape->ndim; i++) {
		v.sizes[i] = shape->sizes[i];
		if (i == still)
			v.strides[i] = 0;
	}
	return v;
}

/* A vector index as the walk sees it: of `shape`, moving in dimension d alone. */
static struct tensor spread(const tensor *index, const tensor *shape, int d)
{
	struct tensor v = seen(index, shape, -1);

	v.contiguous = false;
	for (int i = 0; i < shape->ndim; i++)
		v.strides[i] = i == d ? index->strides[0] : 0;
	return v;
}

/* The first index out of range, for the message. */
static int refuse(const struct walk *w, const tensor *index, int d)
{
	int64_t pos[TENSOR_MAX_DIMS] = {0};
	char text[SHAPE_TEXT];

	for (int64_t n = 0; n < index->numel; n++) {
		int64_t at = 0, i;
		const char *p;

		for (int k = 0; k < index->ndim; k++)
			at += pos[k] * index->strides[k];
		p = (const char *)index->data + at * (int64_t)itemsize(index);
		i = w->narrow ? *(const int32_t *)p : *(const int64_t *)p;
		if (i < 0 || i >= w->limit)
			return tensor_fail(EINVAL, "%s: index %lld at position %s is out of range "
						   "for dimension %d of size %lld", w->name,
					   (long long)i, format_sizes(pos, index->ndim, text,
								      sizeof(text)),
					   d, (long long)w->limit);
		for (int k = index->ndim - 1; k >= 0 && ++pos[k] == index->sizes[k]; k--)
			pos[k] = 0;
	}
	return tensor_fail(EINVAL, "%s: index changed while it was read", w->name);
}

static int take(const char *name, tensor *out, const tensor *self, int dim, const tensor *index,
		const struct tensor *walked)
{
	struct tensor from = seen(self, out, dim);
	const tensor *ops[] = {out, walked, &from};
	struct walk w = {.name = name,
			 .step = self->strides[dim] * (int64_t)itemsize(self),
			 .limit = self->sizes[dim],
			 .narrow = index->dtype == TENSOR_I32};
	struct tensor_iter it;
	iter_loop loop;

	switch (itemsize(self)) {
	case 1:
		loop = take_1;
		break;
	case 2:
		loop = take_2;
		break;
	case 4:
		loop = take_4;
		break;
	case 8:
		loop = take_8;
		break;
	default:
		loop = take_16;
	}
	iter_build(&it, ops, 3);
	iter_run(&it, loop, &w);
	return w.bad ? refuse(&w, index, dim) : 0;
}

static int cpu_index_select(tensor *out, const tensor *self, int dim, const tensor *index)
{
	struct tensor walked = spread(index, out, dim);

	return take("index_select", out, self, dim, index, &walked);
}

static int cpu_gather(tensor *out, const tensor *self, int dim, const tensor *index)
{
	return take("gather", out, self, dim, index, index);
}

/* ---- adding: duplicates meet within a line of the indexed dimension, so lines are divided ---- */

struct add_job {
	struct walk *w;
	iter_loop loop;
	const tensor *ops[3]; /* out, index, source */
	int split; /* the dimension that is cut; -1: none */
};

static void add_range(int64_t begin, int64_t end, void *ctx)
{
	const struct add_job *job = ctx;
	int64_t pos[TENSOR_MAX_DIMS] = {0};
	struct tensor part[3];
	const tensor *ops[3];
	struct tensor_iter it;
	char *data[3];

	for (int i = 0; i < 3; i++) {
		part[i] = *job->ops[i];
		ops[i] = &part[i];
		if (job->split < 0)
			continue;
		part[i].data = (char *)part[i].data +
			       begin * part[i].strides[job->split] * (int64_t)itemsize(&part[i]);
		part[i].numel = part[i].numel / part[i].sizes[job->split] * (end - begin);
		part[i].sizes[job->split] = end - begin;
		part[i].contiguous = false;
	}
	iter_build(&it, ops, 3);
	for (;;) {
		int64_t s0[3], s1[3], n1 = it.ndim > 1 ? it.shape[1] : 1;
		int d = 2;

		for (int i = 0; i < 3; i++) {
			s0[i] = it.strides[i][0];
			s1[i] = it.ndim > 1 ? it.strides[i][1] : 0;
			data[i] = it.data[i];
			for (int k = 2; k < it.ndim; k++)
				data[i] += pos[k] * it.strides[i][k];
		}
		job->loop(data, s0, s1, it.shape[0], n1, job->w);
		while (d < it.ndim && ++pos[d] == it.shape[d])
			pos[d++] = 0;
		if (d >= it.ndim)
			return;
	}
}

/* All indices, before anything is written. */
static bool all_in_range(struct walk *w, const tensor *index)
{
	int64_t pos[TENSOR_MAX_DIMS] = {0}, at[BLOCK];
	int last = index->ndim - 1;
	int64_t size = (int64_t)itemsize(index), stride = index->strides[last] * size;

	for (;;) {
		const char *p = index->data;
		int d = last - 1;

		for (int k = 0; k < last; k++)
			p += pos[k] * index->strides[k] * size;
		for (int64_t i = 0, len; i < index->sizes[last]; i += len) {
			len = index->sizes[last] - i < BLOCK ? index->sizes[last] - i : BLOCK;
			if (!fetch(w, p + i * stride, stride, len, at))
				return false;
		}
		while (d >= 0 && ++pos[d] == index->sizes[d])
			pos[d--] = 0;
		if (d < 0)
			return true;
	}
}

static int add(const char *name, tensor *out, int dim, const tensor *index, const tensor *source,
	       const struct tensor *walked, double alpha)
{
	static const iter_loop loops[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = add_##d,
		DTYPES_REAL(ENTRY)
#undef ENTRY
	};
	struct tensor to = seen(out, walked, dim), from = seen(source, walked, -1);
	struct walk w = {.name = name,
			 .step = out->strides[dim] * (int64_t)itemsize(out),
			 .limit = out->sizes[dim],
			 .narrow = index->dtype == TENSOR_I32,
			 .alpha = alpha};
	struct add_job job = {&w, loops[out->dtype], {&to, walked, &from}, -1};
	int64_t lines = 1, grain;

	if (!job.loop)
		return kernel_no_dtype(name, out->dtype, "cpu");
	if (!all_in_range(&w, index))
		return refuse(&w, index, dim);
	for (int i = 0; i < walked->ndim; i++)
		if (i != dim && walked->sizes[i] > lines) {
			lines = walked->sizes[i];
			job.split = i;
		}
	grain = (int64_t)ITER_GRAIN * lines / walked->numel;
	parallel_for(0, lines, grain < 1 ? 1 : grain, add_range, &job);
	return w.bad ? refuse(&w, index, dim) : 0;
}

static int cpu_index_add(tensor *out, int dim, const tensor *index, const tensor *source,
			 double alpha)
{
	struct tensor walked = spread(index, source, dim);

	return add("index_add", out, dim, index, source, &walked, alpha);
}

static int cpu_scatter_add(tensor *out, int dim, const tensor *index, const tensor *source)
{
	return add("scatter_add", out, dim, index, source, index, 1);
}

CPU_KERNELS(K(index_select), K(gather), K(index_add), K(scatter_add))
