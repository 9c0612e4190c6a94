// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_add, scatter and its reductions, index_put. An iterator walks the output (with stride 0 in
 * the indexed dimensions), the indices and the source. Elements that meet at one position are
 * combined in the order of the source. Work is therefore divided into parts that share no position:
 * lines outside of the indexed dimensions, or, if these are few, ranges of the output, for each of
 * which all indices are read. The result has the same bits for any division.
 *
 * All indices are checked first, so that an index out of range leaves the output unchanged.
 */
#include "kernels/cpu/index/indices.h"

#include "base/reduced_float.h"
#include "iter/parallel.h"
#include "kernels/cpu/simd/loops.h"

#define ROW_BLOCK 32 /* elements of a short row, at most */

struct put {
	struct indices *x;
	double alpha;
	bool window; /* only elements at offsets from low to high - 1 are written */
	int64_t low, high;
};

/*
 * Keeps those of n offsets that are in the window; returns their number and sets their
 * positions.
 */
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

#include "kernels/cpu/index/put_distinct.h"

#define LOOPS_FILE "kernels/cpu/index/put_loops.h"

/* put_add_f32() etc.; the conversion of alpha is moved out of loops by the compiler. */
#define PUT put_add
#define PUT_ALPHA
#define COMBINE(y, x) ((y) + alpha * (x))
#include "kernels/cpu/simd/each_complex.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef PUT_ALPHA
#undef COMBINE
#define COMBINE(y, x) ((y) | (factor != 0 && (x)))
#include "kernels/cpu/index/put_bool.h"
#undef PUT
#undef COMBINE

/* put_mul_f32() etc. */
#define PUT	      put_mul
#define COMBINE(y, x) ((y) * (x))
#include "kernels/cpu/simd/each_complex.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef COMBINE
#define COMBINE(y, x) ((y) & (x))
#include "kernels/cpu/index/put_bool.h"
#undef PUT
#undef COMBINE

/* put_max_f32() etc.; the result is NaN if an element is. */
#define PUT	      put_max
#define COMBINE(y, x) (IS_NAN(x) || (x) > (y) ? (x) : (y))
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef COMBINE
#define COMBINE(y, x) ((y) | (x))
#include "kernels/cpu/index/put_bool.h"
#undef PUT
#undef COMBINE

/* put_min_f32() etc.; the result is NaN if an element is. */
#define PUT	      put_min
#define COMBINE(y, x) (IS_NAN(x) || (x) < (y) ? (x) : (y))
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_reduced_float.h"
#undef COMBINE
#define COMBINE(y, x) ((y) & (x))
#include "kernels/cpu/index/put_bool.h"
#undef PUT
#undef COMBINE

/* put_set_1() etc., by element size */
#define PUT	      put_set
#define COMBINE(y, x) (x)
#define C	      T
#define LOAD(x)	      (x)
#define STORE(x)      (x)
#include "kernels/cpu/simd/each_size.h"
#undef PUT
#undef COMBINE
#undef C
#undef LOAD
#undef STORE
#undef LOOPS_FILE

#define ENTRIES_REAL(NAME)                                                                  \
	AT_INT(NAME), AT_FLOAT(NAME), [TENSOR_BOOL] = NAME##_b8, [TENSOR_F16] = NAME##_f16, \
				      [TENSOR_BF16] = NAME##_bf16

static iter_loop put_set_loop(enum tensor_dtype dtype)
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

static iter_loop put_loop(enum scatter_mode mode, enum tensor_dtype dtype)
{
	static const iter_loop add[TENSOR_DTYPE_COUNT] = { ENTRIES_REAL(put_add),
							   AT_COMPLEX(put_add) };
	static const iter_loop mul[TENSOR_DTYPE_COUNT] = { ENTRIES_REAL(put_mul),
							   AT_COMPLEX(put_mul) };
	static const iter_loop max[TENSOR_DTYPE_COUNT] = { ENTRIES_REAL(put_max) };
	static const iter_loop min[TENSOR_DTYPE_COUNT] = { ENTRIES_REAL(put_min) };

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
		return put_set_loop(dtype);
	}
}

/* ---- dividing the work ---- */

struct put_job {
	struct put put;
	iter_loop loop;
	const tensor *ops[3]; /* out, index, source */
	int split; /* the dimension that is divided into lines; -1: ranges of the output */
};

/* Runs the loop for all rows, in order, on the calling thread. */
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

/* The range of offsets that indices can give: *low to *high - 1. */
static void offset_range(const struct indices *x, int64_t *low, int64_t *high)
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

/* Elements for each thread, at least, if every thread reads all indices. */
#define RANGE_GRAIN (2 * ITER_GRAIN)

/* Elements of a line, at least, if the division crosses rows of the output. */
#define LINE_GRAIN 32

/* Whether positions of dimension d are at least `reached` bytes apart in the output. */
static bool is_outside(const tensor *out, int d, int64_t reached)
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
	offset_range(job->put.x, &low, &high);
	parts = walked->numel / RANGE_GRAIN;
	parts = parts < threads ? parts : threads;
	/* Selecting elements by range costs as much as adding them: two threads gain nothing. */
	if (threads < 4 && (job->split < 0 || walked->strides[job->split]))
		parts = 1;
	grain = job->split < 0 ? 0 : (int64_t)ITER_GRAIN * lines / walked->numel;
	if (job->split >= 0 && !is_outside(job->ops[0], job->split, high - low)) {
		int64_t share = (lines + threads - 1) / threads;

		/* One part for each thread: every part reads all indices, and pieces of all rows. */
		share = (share + LINE_GRAIN - 1) / LINE_GRAIN * LINE_GRAIN;
		grain = grain < share ? share : grain;
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
	struct tensor to = walk_view(out, walked, 1u << dim), from = walk_view(source, walked, 0);
	struct indices x = { .name = name,
			     .n = 1,
			     .step = { out->strides[dim] * (int64_t)itemsize(out) },
			     .limit = { out->sizes[dim] },
			     .narrow = index->dtype == TENSOR_I32 };
	struct put_job job = { .put = { .x = &x, .alpha = alpha },
			       .loop = put_loop(mode, out->dtype),
			       .ops = { &to, walked, &from } };

	if (!job.loop)
		return tensor_kernel_no_dtype(name, out->dtype, "cpu");
	if (!indices_in_range(&x, index))
		return indices_refuse(&x, index, &dim);
	put_all(&job, 1u << dim);
	return x.bad ? indices_refuse(&x, index, &dim) : 0;
}

static int cpu_index_add(const char *op, tensor *out, int dim, const tensor *index,
			 const tensor *source, double alpha)
{
	struct tensor walked = walk_spread(index, source, dim);

	return put(op, out, dim, index, source, &walked, SCATTER_ADD, alpha);
}

static int cpu_scatter_add(const char *op, tensor *out, int dim, const tensor *index,
			   const tensor *source)
{
	return put(op, out, dim, index, source, index, SCATTER_ADD, 1);
}

static int cpu_scatter(const char *op, tensor *out, int dim, const tensor *index,
		       const tensor *source, enum scatter_mode mode)
{
	struct tensor walked = index->ndim == source->ndim ? *index :
							     walk_spread(index, source, dim);

	return put(op, out, dim, index, source, &walked, mode, 1);
}

static int cpu_index_put(const char *op, tensor *out, const tensor *at, const int *dims, int n,
			 const tensor *values, enum scatter_mode mode)
{
	struct indices x = { .name = op };
	struct tensor to, walked, first, from;
	struct put_job job = { .put = { .x = &x, .alpha = 1 },
			       .loop = put_loop(mode, out->dtype),
			       .ops = { &to, &walked, &from } };
	struct indexed r;

	if (!job.loop)
		return tensor_kernel_no_dtype(x.name, out->dtype, "cpu");
	if (indexed_build(&r, x.name, out, at, dims, n) < 0)
		return -thread()->error.code;
	indices_describe(&x, out, at, dims, n);
	indices_walk(&r, out, at, &to, &walked, &first);
	from = walk_view(values, &walked, 0);
	if (!indices_in_range(&x, &first))
		return indices_refuse(&x, &first, dims);
	put_all(&job, (uint32_t)((1ull << r.count) - 1) << r.first);
	return x.bad ? indices_refuse(&x, &first, dims) : 0;
}

#include "kernels/formula/counts.h"

CPU_KERNELS(KERNEL(index_add), KERNEL(scatter_add), KERNEL(scatter), KERNEL(index_put),
	    KERNEL(divide_counts))
