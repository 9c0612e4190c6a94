// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The ways back: index_add, scatter and its reductions, self[i, j] = values. One walk of the
 * output with stride 0 in the indexed dimensions, of the indices and of the source. What meets at
 * one position is combined in the order of the source, so the work is divided where nothing
 * meets: into lines outside of the indexed dimensions, or, where there are few of those, into
 * ranges of the output, each of which looks at all indices for its own. The bits are the same in
 * both ways and for any number of parts.
 *
 * All indices are checked first, so that a bad one leaves the output as it was.
 */
#include "kernels/cpu/index/indices.h"

#include "base/reduced_float.h"
#include "iter/parallel.h"

struct put {
	struct indices *x;
	double alpha;
	bool window; /* only what goes to offsets from `low` up to and without `high` */
	int64_t low, high;
};

/* Of n offsets those inside the window; their positions too. */
static int64_t pick(const struct put *p, int64_t *at, int64_t n, int64_t *position)
{
	uint64_t width = (uint64_t)(p->high - p->low);
	int64_t count = 0;

	for (int64_t i = 0; i < n; i++) {
		int64_t v = at[i];

		position[count] = i;
		at[count] = v;
		count += (uint64_t)(v - p->low) < width;
	}
	return count;
}

/*
 * T is how elements lie in memory, C how they are computed with. x is the source's element, y the
 * output's. `factor` is alpha, for sums. whole_() is the usual case without a detour: i64 indices and
 * the source side by side, the output standing still.
 */
#define PUT(NAME, T, C, LOAD, STORE, EXPR)                                                        \
	static __attribute__((noinline)) void picked_##NAME(char *o, const char *s, int64_t so,   \
							    int64_t ss, const int64_t *at,        \
							    const int64_t *position, int64_t len, \
							    double factor)                        \
	{                                                                                         \
		(void)factor;                                                                     \
		for (int64_t i = 0; i < len; i++) {                                               \
			T *to = (T *)(o + position[i] * so + at[i]);                              \
			C x = LOAD(*(const T *)(s + position[i] * ss)), y = LOAD(*to);            \
			(void)y;                                                                  \
			*to = STORE(EXPR);                                                        \
		}                                                                                 \
	}                                                                                         \
	static __attribute__((noinline)) void row_##NAME(char *o, const char *s, int64_t so,      \
							 int64_t ss, const int64_t *at,           \
							 int64_t len, double factor)              \
	{                                                                                         \
		(void)factor;                                                                     \
		for (int64_t i = 0; i < len; i++) {                                               \
			T *to = (T *)(o + i * so + at[i]);                                        \
			C x = LOAD(*(const T *)(s + i * ss)), y = LOAD(*to);                      \
			(void)y;                                                                  \
			*to = STORE(EXPR);                                                        \
		}                                                                                 \
	}                                                                                         \
	static __attribute__((noinline)) void run_##NAME(char *o, const char *s, int64_t so,      \
							 int64_t ss, int64_t len, double factor)  \
	{                                                                                         \
		(void)factor;                                                                     \
		if (so == sizeof(T) && ss == sizeof(T)) {                                         \
			T *to = (T *)o;                                                           \
			const T *from = (const T *)s;                                             \
			IVDEP for (int64_t i = 0; i < len; i++)                                   \
			{                                                                         \
				C x = LOAD(from[i]), y = LOAD(to[i]);                             \
				(void)y;                                                          \
				to[i] = STORE(EXPR);                                              \
			}                                                                         \
			return;                                                                   \
		}                                                                                 \
		for (int64_t i = 0; i < len; i++) {                                               \
			T *to = (T *)(o + i * so);                                                \
			C x = LOAD(*(const T *)(s + i * ss)), y = LOAD(*to);                      \
			(void)y;                                                                  \
			*to = STORE(EXPR);                                                        \
		}                                                                                 \
	}                                                                                         \
	static inline __attribute__((always_inline)) bool each_##NAME(                            \
		char *o, const char *s, const volatile int64_t *from, int64_t len, int64_t step,  \
		int64_t wrap, uint64_t limit, double factor)                                      \
	{                                                                                         \
		(void)factor;                                                                     \
		for (int64_t i = 0; i < len; i++) {                                               \
			int64_t at = from[i];                                                     \
                                                                                                  \
			at += at >> 63 & wrap;                                                    \
			if (unlikely((uint64_t)at >= limit))                                      \
				return false;                                                     \
			T *to = (T *)(o + at * step);                                             \
			C x = LOAD(((const T *)s)[i]), y = LOAD(*to);                             \
			(void)y;                                                                  \
			*to = STORE(EXPR);                                                        \
		}                                                                                 \
		return true;                                                                      \
	}                                                                                         \
	/* Not inlined, so that it has the registers for itself. */                               \
	static __attribute__((noinline)) bool whole_##NAME(                                       \
		const struct put *p, char *o, const char *index, const char *s, int64_t len)      \
	{                                                                                         \
		const volatile int64_t *from = (const volatile int64_t *)index;                   \
		int64_t step = p->x->step[0], limit = p->x->limit[0];                             \
		bool fine = step == sizeof(T) && !p->x->wrap ?                                    \
				    each_##NAME(o, s, from, len, sizeof(T), 0, limit, p->alpha) : \
				    each_##NAME(o, s, from, len, step, p->x->wrap ? limit : 0,    \
						limit, p->alpha);                                 \
                                                                                                  \
		if (unlikely(!fine))                                                              \
			p->x->bad = true;                                                         \
		return fine;                                                                      \
	}                                                                                         \
	static void put_##NAME(char *const *data, const int64_t *s0, const int64_t *s1,           \
			       int64_t n0, int64_t n1, const void *params)                        \
	{                                                                                         \
		const struct put *p = params;                                                     \
		int64_t at[INDEX_BLOCK], position[INDEX_BLOCK];                                   \
		double alpha = p->alpha;                                                          \
                                                                                                  \
		if (!p->window && p->x->n == 1 && !p->x->narrow && s0[1] == sizeof(int64_t) &&    \
		    s0[2] == sizeof(T) && !s0[0]) {                                               \
			for (int64_t j = 0; j < n1; j++)                                          \
				if (!whole_##NAME(p, data[0] + j * s1[0], data[1] + j * s1[1],    \
						  data[2] + j * s1[2], n0))                       \
					return;                                                   \
			return;                                                                   \
		}                                                                                 \
		for (int64_t j = 0; j < n1 && s0[1]; j++)                                         \
			for (int64_t i = 0, len; i < n0; i += len) {                              \
				char *o = data[0] + j * s1[0] + i * s0[0];                        \
				const char *s = data[2] + j * s1[2] + i * s0[2];                  \
				const char *from = data[1] + j * s1[1] + i * s0[1];               \
				len = n0 - i < INDEX_BLOCK ? n0 - i : INDEX_BLOCK;                \
				if (!indices_fetch(p->x, from, s0[1], len, at))                   \
					return;                                                   \
				if (p->window)                                                    \
					picked_##NAME(o, s, s0[0], s0[2], at, position,           \
						      pick(p, at, len, position), alpha);         \
				else                                                              \
					row_##NAME(o, s, s0[0], s0[2], at, len, alpha);           \
			}                                                                         \
		for (int64_t j = 0, rows; j < n1 && !s0[1]; j += rows) {                          \
			rows = n1 - j < INDEX_BLOCK ? n1 - j : INDEX_BLOCK;                       \
			if (!indices_fetch(p->x, data[1] + j * s1[1], s1[1], rows, at))           \
				return;                                                           \
			for (int64_t r = 0; r < rows; r++)                                        \
				if (!p->window || (at[r] >= p->low && at[r] < p->high))           \
					run_##NAME(data[0] + (j + r) * s1[0] + at[r],             \
						   data[2] + (j + r) * s1[2], s0[0], s0[2], n0,   \
						   alpha);                                        \
		}                                                                                 \
	}

#define SAME(x)	   (x)
#define TRUTH(x)   ((x) != 0)
#define TO_BYTE(x) ((uint8_t)((x) != 0))
#define EACH_PLAIN(X, OP, EXPR)                                       \
	X(OP##_u8, uint8_t, int64_t, SAME, (uint8_t), EXPR)           \
	X(OP##_i8, int8_t, int64_t, SAME, (int8_t), EXPR)             \
	X(OP##_i16, int16_t, int64_t, SAME, (int16_t), EXPR)          \
	X(OP##_i32, int32_t, int64_t, SAME, (int32_t), EXPR)          \
	X(OP##_i64, int64_t, int64_t, SAME, SAME, EXPR)               \
	X(OP##_u16, uint16_t, int64_t, SAME, (uint16_t), EXPR)        \
	X(OP##_u32, uint32_t, int64_t, SAME, (uint32_t), EXPR)        \
	X(OP##_u64, uint64_t, uint64_t, SAME, SAME, EXPR)             \
	X(OP##_f16, uint16_t, float, f16_to_f32, f32_to_f16, EXPR)    \
	X(OP##_bf16, uint16_t, float, bf16_to_f32, f32_to_bf16, EXPR) \
	X(OP##_f32, float, float, SAME, SAME, EXPR)                   \
	X(OP##_f64, double, double, SAME, SAME, EXPR)
#define EACH_COMPLEX(X, OP, EXPR)                                   \
	X(OP##_c64, float complex, float complex, SAME, SAME, EXPR) \
	X(OP##_c128, double complex, double complex, SAME, SAME, EXPR)
#define LOOPS_REAL(OP)                                                                           \
	[TENSOR_BOOL] = put_##OP##_b8, [TENSOR_U8] = put_##OP##_u8, [TENSOR_I8] = put_##OP##_i8, \
	[TENSOR_I16] = put_##OP##_i16, [TENSOR_I32] = put_##OP##_i32,                            \
	[TENSOR_I64] = put_##OP##_i64, [TENSOR_U16] = put_##OP##_u16,                            \
	[TENSOR_U32] = put_##OP##_u32, [TENSOR_U64] = put_##OP##_u64,                            \
	[TENSOR_F16] = put_##OP##_f16, [TENSOR_BF16] = put_##OP##_bf16,                          \
	[TENSOR_F32] = put_##OP##_f32, [TENSOR_F64] = put_##OP##_f64
#define LOOPS_ALL(OP) LOOPS_REAL(OP), [TENSOR_C64] = put_##OP##_c64, [TENSOR_C128] = put_##OP##_c128

/* Converted outside of the loops by the compiler. */
#define ALPHA ((__typeof__(x))factor)
EACH_PLAIN(PUT, add, y + ALPHA * x)
EACH_COMPLEX(PUT, add, y + ALPHA * x)
PUT(add_b8, uint8_t, int, TRUTH, TO_BYTE, y | (factor != 0 && x))
EACH_PLAIN(PUT, mul, y *x)
EACH_COMPLEX(PUT, mul, y *x)
PUT(mul_b8, uint8_t, int, TRUTH, TO_BYTE, y &x)
/* NaN wins. */
EACH_PLAIN(PUT, max, x != x || x > y ? x : y)
PUT(max_b8, uint8_t, int, TRUTH, TO_BYTE, y | x)
EACH_PLAIN(PUT, min, x != x || x < y ? x : y)
PUT(min_b8, uint8_t, int, TRUTH, TO_BYTE, y &x)

struct bits16 {
	uint64_t w[2];
};
#define MOVE(n, T) PUT(set_##n, T, T, SAME, SAME, x)
MOVE(1, uint8_t)
MOVE(2, uint16_t)
MOVE(4, uint32_t)
MOVE(8, uint64_t)
MOVE(16, struct bits16)

static iter_loop set_loop(enum tensor_dtype dtype)
{
	switch (dtype_sizes[dtype]) {
	case 1:
		return put_set_1;
	case 2:
		return put_set_2;
	case 4:
		return put_set_4;
	case 8:
		return put_set_8;
	default:
		return put_set_16;
	}
}

static iter_loop loop_for(enum scatter_mode mode, enum tensor_dtype dtype)
{
	static const iter_loop add[TENSOR_DTYPE_COUNT] = { LOOPS_ALL(add) };
	static const iter_loop mul[TENSOR_DTYPE_COUNT] = { LOOPS_ALL(mul) };
	static const iter_loop max[TENSOR_DTYPE_COUNT] = { LOOPS_REAL(max) };
	static const iter_loop min[TENSOR_DTYPE_COUNT] = { LOOPS_REAL(min) };

	switch (mode) {
	case SCATTER_ADD:
		return add[dtype];
	case SCATTER_MUL:
		return mul[dtype];
	case SCATTER_MAX:
		return max[dtype];
	case SCATTER_MIN:
		return min[dtype];
	default:
		return set_loop(dtype);
	}
}

/* ---- dividing the work ---- */

struct put_job {
	struct put put;
	iter_loop loop;
	const tensor *ops[3]; /* out, index, source */
	int split;	      /* the dimension that is cut into lines; -1: ranges of the output */
};

/* All of a walk on the calling thread, in order. */
static void walk_all(const tensor *const *ops, iter_loop loop, const struct put *p)
{
	int64_t pos[TENSOR_MAX_DIMS] = { 0 };
	struct tensor_iter it;

	it.dtype = ops[0]->dtype;
	iter_build(&it, ops, 3);
	for (;;) {
		int64_t s0[3], s1[3], n1 = it.ndim > 1 ? it.shape[1] : 1;
		char *data[3];
		int d = 2;

		for (int i = 0; i < 3; i++) {
			s0[i] = it.ndim ? it.strides[i][0] : 0;
			s1[i] = it.ndim > 1 ? it.strides[i][1] : 0;
			data[i] = it.data[i];
			for (int k = 2; k < it.ndim; k++)
				data[i] += pos[k] * it.strides[i][k];
		}
		loop(data, s0, s1, it.ndim ? it.shape[0] : 1, n1, p);
		while (d < it.ndim && ++pos[d] == it.shape[d])
			pos[d++] = 0;
		if (d >= it.ndim)
			return;
	}
}

static void put_lines(int64_t begin, int64_t end, void *ctx)
{
	const struct put_job *job = ctx;
	struct tensor part[3];
	const tensor *ops[3];
	int d = job->split;

	for (int i = 0; i < 3; i++) {
		part[i] = *job->ops[i];
		ops[i] = &part[i];
		part[i].data = (char *)part[i].data +
			       begin * part[i].strides[d] * (int64_t)itemsize(&part[i]);
		part[i].numel = part[i].numel / part[i].sizes[d] * (end - begin);
		part[i].sizes[d] = end - begin;
		part[i].contiguous = false;
	}
	walk_all(ops, job->loop, &job->put);
}

static void put_range(int64_t begin, int64_t end, void *ctx)
{
	const struct put_job *job = ctx;
	struct put p = job->put;

	p.window = true;
	p.low = begin;
	p.high = end;
	walk_all(job->ops, job->loop, &p);
}

/* The offsets that indices can lead to: from *low up to and without *high. */
static void reach(const struct indices *x, int64_t *low, int64_t *high)
{
	*low = 0;
	*high = 1;
	for (int k = 0; k < x->n; k++) {
		int64_t far = (x->limit[k] - 1) * x->step[k];

		if (far < 0)
			*low += far;
		else
			*high += far;
	}
}

/* Elements below which a second thread is not worth looking at all indices twice. */
#define RANGE_GRAIN (2 * ITER_GRAIN)

#define LINE_GRAIN 256

/* Do different positions of dimension d lie in parts of the output that are apart? */
static bool outside(const tensor *out, int d, int64_t reached)
{
	int64_t step = out->strides[d] * (int64_t)itemsize(out);

	return (step < 0 ? -step : step) >= reached;
}

static void put_all(struct put_job *job, uint32_t indexed)
{
	const tensor *walked = job->ops[1];
	int threads = tensor_get_num_threads();
	int64_t lines = 1, low, high, parts, grain;

	if (!walked->numel)
		return;
	job->split = -1;
	for (int i = 0; i < walked->ndim; i++)
		if (!(indexed >> i & 1) && walked->sizes[i] > lines) {
			lines = walked->sizes[i];
			job->split = i;
		}
	reach(job->put.x, &low, &high);
	parts = walked->numel / RANGE_GRAIN;
	parts = parts < threads ? parts : threads;
	/* Choosing elements costs as much as adding them: two threads gain nothing. */
	if (threads < 4 && (job->split < 0 || walked->strides[job->split]))
		parts = 1;
	grain = job->split < 0 ? 0 : (int64_t)ITER_GRAIN * lines / walked->numel;
	/* Lines that are cut across rows of the output should be left broad. */
	if (job->split >= 0 && !outside(job->ops[0], job->split, high - low)) {
		grain = grain < LINE_GRAIN ? LINE_GRAIN : grain;
		if (!walked->strides[job->split] && parts >= 2 && job->put.x->limit[0] >= 4 * parts)
			job->split = -1;
	}
	if (job->split >= 0) {
		parallel_for(0, lines, grain < 1 ? 1 : grain, put_lines, job);
	} else if (parts >= 2) {
		parallel_for(low, high, (high - low + parts - 1) / parts, put_range, job);
	} else {
		walk_all(job->ops, job->loop, &job->put);
	}
}

/* ---- kernels ---- */

static int put(const char *name, tensor *out, int dim, const tensor *index, const tensor *source,
	       const struct tensor *walked, enum scatter_mode mode, double alpha)
{
	struct tensor to = walk_seen(out, walked, 1u << dim), from = walk_seen(source, walked, 0);
	struct indices x = { .name = name,
			     .n = 1,
			     .step = { out->strides[dim] * (int64_t)itemsize(out) },
			     .limit = { out->sizes[dim] },
			     .narrow = index->dtype == TENSOR_I32 };
	struct put_job job = { .put = { .x = &x, .alpha = alpha },
			       .loop = loop_for(mode, out->dtype),
			       .ops = { &to, walked, &from } };

	if (!job.loop)
		return kernel_no_dtype(name, out->dtype, "cpu");
	if (!indices_in_range(&x, index))
		return indices_refuse(&x, index, &dim);
	put_all(&job, 1u << dim);
	return x.bad ? indices_refuse(&x, index, &dim) : 0;
}

static int cpu_index_add(tensor *out, int dim, const tensor *index, const tensor *source,
			 double alpha)
{
	struct tensor walked = walk_spread(index, source, dim);

	return put("index_add", out, dim, index, source, &walked, SCATTER_ADD, alpha);
}

static int cpu_scatter_add(tensor *out, int dim, const tensor *index, const tensor *source)
{
	return put("scatter_add", out, dim, index, source, index, SCATTER_ADD, 1);
}

static int cpu_scatter(tensor *out, int dim, const tensor *index, const tensor *source,
		       enum scatter_mode mode)
{
	struct tensor walked = index->ndim == source->ndim ? *index :
							     walk_spread(index, source, dim);

	return put("scatter", out, dim, index, source, &walked, mode, 1);
}

static int cpu_index_put(tensor *out, const tensor *at, const int *dims, int n,
			 const tensor *values, enum scatter_mode mode)
{
	struct indices x = { .name = "index_put" };
	struct tensor to, walked, first, from;
	struct put_job job = { .put = { .x = &x, .alpha = 1 },
			       .loop = loop_for(mode, out->dtype),
			       .ops = { &to, &walked, &from } };
	struct indexed r;

	if (!job.loop)
		return kernel_no_dtype(x.name, out->dtype, "cpu");
	if (indexed_build(&r, x.name, out, at, dims, n) < 0)
		return -thread()->error.code;
	indices_describe(&x, out, at, dims, n);
	indices_walk(&r, out, at, &to, &walked, &first);
	from = walk_seen(values, &walked, 0);
	if (!indices_in_range(&x, &first))
		return indices_refuse(&x, &first, dims);
	put_all(&job, (uint32_t)((1ull << r.count) - 1) << r.first);
	return x.bad ? indices_refuse(&x, &first, dims) : 0;
}

/* A mean's last step. Integers round down. */
#define FLOOR_DIVIDE(d, T, D)         \
	BINARY_LOOP(divide_##d, T, T, \
		    !y ? x : (T)(x / y - (T)(x % y != 0 && NEGATIVE(x) != NEGATIVE(y))))
#define DIVIDE(d, T, D) BINARY_LOOP(divide_##d, T, T, y == 0 ? x : x / y)
DTYPES_INT(FLOOR_DIVIDE)
DTYPES_FLOAT(DIVIDE)
DTYPES_COMPLEX(DIVIDE)
#define ENTRY(d, T, D) [D] = divide_##d,
POINTWISE(divide_counts, DTYPES_NUMBER(ENTRY) DTYPES_COMPLEX(ENTRY))

CPU_KERNELS(K(index_add), K(scatter_add), K(scatter), K(index_put), K(divide_counts))
