// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * softmax and log_softmax along a dimension, and their gradients. The greatest element is
 * subtracted before exp(), so that nothing overflows. Adjacent lines whose elements are contiguous
 * across the lines are computed as a tile, row by row; all others one by one.
 */
#include "kernels/cpu/nn/softmax_columns.h"
#include "kernels/cpu/reduce/lines.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec_elements.h"
#include "kernels/cpu/simd/vecmath.h"

#include "iter/reduce_iter.h"
#include "iter/parallel.h"

#include <math.h>

#define BLOCK	     512  /* elements of a line that are gathered at a time */
#define LONG_BLOCK   4096 /* elements processed at a time if none have to be gathered */
#define WHOLE_LINE   8192 /* elements of the longest line of f16 or bf16 that is converted as one */
#define CONVERTED    1024 /* elements of short lines converted together: they stay in the L1 cache */
#define FEW	     64	  /* elements up to which short lines are not transposed */
#define SHORT_LINE   32	  /* elements of a short line */
#define ADJACENT     512  /* elements of f16 or bf16 from which a line is converted in registers */
#define SIDE_BY_SIDE 64	  /* short lines transposed together */
#define TILE	     1024 /* lines of a tile: a page of f32 */
#define STRIP_VECS   4	  /* vectors of lines that are computed in registers */
#define TILE_MIN     16	  /* the least number of lines of a tile */

/* The vector at x. */
#define AT(x) (*(const V *)(x))

#define T     float
#define V     vec_f32
#define LANES VEC_F32
#define EXP   exp_f32v
#define LOG   log_f32v
#define LOG1  __builtin_logf
#define VMAX  vec_max_f32
#define PART  vec_part_f32
#define LOAD  vec_load_f32
#define STORE vec_store_f32
#define F(x)  x##_f32
#include "kernels/cpu/nn/softmax_loops.h"

#define T     double
#define V     vec_f64
#define LANES VEC_F64
#define EXP   exp_f64v
#define LOG   log_f64v
#define LOG1  __builtin_log
#define VMAX  vec_max_f64
#define PART  vec_part_f64
#define LOAD  vec_load_f64
#define STORE vec_store_f64
#define F(x)  x##_f64
#include "kernels/cpu/nn/softmax_loops.h"

#include "kernels/cpu/nn/softmax_adjacent.h"

typedef void (*lines_fn)(const struct reduce_iter *t, char *const *data, int64_t n, bool log);

struct job {
	const struct reduce_iter *t;
	lines_fn fn;
	bool log;
};

static void lines_task(int64_t begin, int64_t end, void *ctx)
{
	const struct job *j = ctx;
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t n; begin < end; begin += n) {
		n = lines_next(j->t, begin, end, INT64_MAX, data);
		j->fn(j->t, data, n, j->log);
	}
}

/* f16 and bf16: lines are converted to f32 on the stack. */
struct reduced_job {
	const struct reduce_iter *t;
	enum tensor_dtype dtype;
	bool log;
};

/* The number of lines from i on that are converted together: adjacent ones in every operand. */
static int64_t adjacent_lines(const struct reduced_job *j, int64_t i, int64_t end)
{
	const struct reduce_iter *t = j->t;
	int64_t n = t->along.size[0], many = n < CONVERTED ? CONVERTED / n : 1;

	for (int k = 0; k < t->nops; k++)
		if (t->kept.n > 1 || t->kept.stride[k][0] != n * t->along.stride[k][0])
			return 1;
	return many < end - i ? many : end - i;
}

/* Operand k, n elements along the dimension, in f32. */
static void load_f32(float *to, const struct reduced_job *j, char *const *data, int k, int64_t n)
{
	int64_t stride = j->t->along.stride[k][0];

	CPU_NAME(convert)(to, TENSOR_F32, sizeof(*to), data[k], j->dtype, stride, n);
}

static void store_f32(const struct reduced_job *j, char *const *data, const float *from, int64_t n)
{
	int64_t stride = j->t->along.stride[0][0];

	CPU_NAME(convert)(data[0], j->dtype, stride, from, TENSOR_F32, sizeof(*from), n);
}

static void reduced_float_lines(int64_t begin, int64_t end, void *ctx)
{
	const struct reduced_job *j = ctx;
	const struct reduce_iter_dims *along = &j->t->along;
	_Alignas(64) float x[WHOLE_LINE + VEC_F32];
	int64_t n = along->size[0];
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t i = begin, m; i < end; i += m) {
		m = adjacent_lines(j, i, end);
		reduce_iter_seek(j->t, i, data);
		load_f32(x, j, data, 1, m * n);
		for (int64_t l = 0; l < m; l++)
			line_f32((char *)(x + l * n), sizeof(float), (char *)(x + l * n),
				 sizeof(float), n, j->log);
		store_f32(j, data, x, m * n);
	}
}

/* The operands are out, the saved output and the gradient. */
static void reduced_float_backward(int64_t begin, int64_t end, void *ctx)
{
	const struct reduced_job *j = ctx;
	const struct reduce_iter_dims *along = &j->t->along;
	_Alignas(64) float y[WHOLE_LINE], g[WHOLE_LINE];
	int64_t n = along->size[0];
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t i = begin, m; i < end; i += m) {
		m = adjacent_lines(j, i, end);
		reduce_iter_seek(j->t, i, data);
		load_f32(y, j, data, 1, m * n);
		load_f32(g, j, data, 2, m * n);
		for (int64_t l = 0; l < m; l++) {
			float *to = g + l * n, *from = y + l * n;

			gradient_f32(to, to, from, n, gradient_sum_f32(to, from, n, j->log),
				     j->log);
		}
		store_f32(j, data, g, m * n);
	}
}

/* Sets data to element i of line l; returns the number of elements of the block that begins there. */
static int64_t next_block(const struct reduced_job *j, int64_t l, int64_t i, char **data)
{
	int64_t left = j->t->along.size[0] - i;

	reduce_iter_seek(j->t, l, data);
	for (int k = 0; k < j->t->nops; k++)
		data[k] += i * j->t->along.stride[k][0];
	return left < LONG_BLOCK ? left : LONG_BLOCK;
}

/*
 * Longer lines are converted in blocks, in each of the passes. The sums are those of line_f32() and
 * backward_line_f32() on blocks.
 */
static void long_reduced_lines(int64_t begin, int64_t end, void *ctx)
{
	const struct reduced_job *j = ctx;
	_Alignas(64) float x[LONG_BLOCK];
	int64_t n = j->t->along.size[0];
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t l = begin; l < end; l++) {
		float max = -INFINITY, shift;
		double sum = 0;

		for (int64_t i = 0, m; i < n; i += m) {
			m = next_block(j, l, i, data);
			load_f32(x, j, data, 1, m);
			max = maximum_f32(x, m, max);
		}
		for (int64_t i = 0, m; i < n; i += m) {
			m = next_block(j, l, i, data);
			load_f32(x, j, data, 1, m);
			sum += exp_sum_f32(NULL, x, m, max);
		}
		shift = j->log ? __builtin_logf((float)sum) : (float)(1 / sum);
		for (int64_t i = 0, m; i < n; i += m) {
			m = next_block(j, l, i, data);
			load_f32(x, j, data, 1, m);
			if (!j->log)
				exp_sum_f32(x, x, m, max);
			if (j->log)
				IVDEP for (int64_t k = 0; k < m; k++) x[k] = (x[k] - max) - shift;
			else
				IVDEP for (int64_t k = 0; k < m; k++) x[k] *= shift;
			store_f32(j, data, x, m);
		}
	}
}

/* Lines whose elements are adjacent in all operands. */
static void adjacent_backward(int64_t begin, int64_t end, void *ctx)
{
	const struct reduced_job *j = ctx;
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t l = begin; l < end; l++) {
		reduce_iter_seek(j->t, l, data);
		adjacent_gradient((uint16_t *)data[0], (const uint16_t *)data[2],
				  (const uint16_t *)data[1], j->t->along.size[0], j->log,
				  j->dtype == TENSOR_F16);
	}
}

static void long_reduced_backward(int64_t begin, int64_t end, void *ctx)
{
	const struct reduced_job *j = ctx;
	_Alignas(64) float y[LONG_BLOCK], g[LONG_BLOCK];
	int64_t n = j->t->along.size[0];
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t l = begin; l < end; l++) {
		double sum = 0;

		for (int64_t i = 0, m; i < n; i += m) {
			m = next_block(j, l, i, data);
			load_f32(g, j, data, 2, m);
			if (!j->log)
				load_f32(y, j, data, 1, m);
			sum += gradient_sum_f32(g, j->log ? g : y, m, j->log);
		}
		for (int64_t i = 0, m; i < n; i += m) {
			m = next_block(j, l, i, data);
			load_f32(y, j, data, 1, m);
			load_f32(g, j, data, 2, m);
			gradient_f32(g, g, y, m, (float)sum, j->log);
			store_f32(j, data, g, m);
		}
	}
}

/*
 * Whether there are `enough` adjacent lines whose elements are contiguous across in every operand.
 */
static bool side_by_side(const struct reduce_iter *t, int64_t size, int64_t enough)
{
	for (int i = 0; i < t->nops; i++)
		if (t->kept.stride[i][0] != size || t->along.stride[i][0] == size)
			return false;
	return t->kept.size[0] >= enough;
}

static void reduced_columns(int64_t begin, int64_t end, void *ctx)
{
	const struct reduced_job *j = ctx;
	columns_fn fn = columns_of(j->t->nops == 3, j->log, j->dtype == TENSOR_F16);
	char *data[REDUCE_ITER_OPERANDS];

	for (int64_t n; begin < end; begin += n) {
		n = lines_next(j->t, begin, end, INT64_MAX, data);
		fn(j->t, data, n);
	}
}

/* Whether a line has adjacent elements in all operands, and so many that it is not better converted together with others. */
static bool has_adjacent_lines(const struct reduce_iter *t)
{
	for (int k = 0; k < t->nops; k++)
		if (t->along.stride[k][0] != sizeof(uint16_t))
			return false;
	return t->along.size[0] >= ADJACENT;
}

static int for_reduced_lines(parallel_fn fn, const tensor *const *op, int nops, int dim, bool log)
{
	struct reduced_job j = { .dtype = op[1]->dtype, .log = log };
	int64_t grain;
	struct reduce_iter t;

	reduce_iter_build(&t, op, nops, 1u << dim);
	if (!t.kept.count || !t.along.count)
		return 0;
	j.t = &t;
	grain = ITER_GRAIN / t.along.count;
	if (nops == 3 && has_adjacent_lines(&t))
		fn = adjacent_backward;
	if ((nops == 3 || t.along.size[0] <= STRIP_ROWS) &&
	    side_by_side(&t, sizeof(uint16_t), TILE_MIN / 4)) {
		fn = reduced_columns;
		grain = grain < STRIP ? STRIP : grain / STRIP * STRIP;
	}
	parallel_for(0, t.kept.count, grain < 1 ? 1 : grain, fn, &j);
	return 0;
}

struct softmax_fns {
	lines_fn rows, columns;
};

static int for_lines(const struct softmax_fns *fns, const tensor *const *op, int nops, int dim,
		     bool log)
{
	int64_t size = itemsize(op[0]), grain;
	struct job j = { .fn = fns->rows, .log = log };
	struct reduce_iter t;

	reduce_iter_build(&t, op, nops, 1u << dim);
	if (!t.kept.count || !t.along.count)
		return 0;
	j.t = &t;
	if (side_by_side(&t, size, nops == 2 ? TILE_MIN : TILE_MIN / 4))
		j.fn = fns->columns;
	grain = ITER_GRAIN / t.along.count;
	grain = j.fn == fns->columns && grain < TILE ? TILE : grain < 1 ? 1 : grain;
	parallel_for(0, t.kept.count, grain, lines_task, &j);
	return 0;
}

/*
 * A small contiguous tensor along its last dimension, without an iterator. Returns false for
 * others.
 */
static bool small_softmax(const struct softmax_fns *fns, tensor *out, const tensor *self, int dim,
			  bool log)
{
	int64_t n = self->sizes[dim], size = itemsize(self);
	struct reduce_iter t;

	if (dim != self->ndim - 1 || !self->contiguous || !out->contiguous || !self->numel ||
	    self->numel > ITER_GRAIN)
		return false;
	t.along.size[0] = n;
	t.along.stride[0][0] = t.along.stride[1][0] = size;
	t.kept.stride[0][0] = t.kept.stride[1][0] = n * size;
	fns->rows(&t, (char *const[]){ out->data, self->data }, self->numel / n, log);
	return true;
}

static int forward(const char *name, tensor *out, const tensor *self, int dim, bool log)
{
	static const struct softmax_fns all[TENSOR_DTYPE_COUNT] = {
		[TENSOR_F32] = { rows_f32, columns_f32 },
		[TENSOR_F64] = { rows_f64, columns_f64 },
	};
	const struct softmax_fns *fns = &all[self->dtype];
	const tensor *op[] = { out, self };

	if (dtype_is_reduced_float(self->dtype))
		return for_reduced_lines(self->sizes[dim] <= WHOLE_LINE ? reduced_float_lines :
									  long_reduced_lines,
					 op, 2, dim, log);
	if (unlikely(!fns->rows))
		return tensor_kernel_no_dtype(name, self->dtype, "cpu");
	if (likely(small_softmax(fns, out, self, dim, log)))
		return 0;
	return for_lines(fns, op, 2, dim, log);
}

static int backward(const char *name, tensor *out, const tensor *grad, const tensor *output,
		    int dim, bool log)
{
	static const struct softmax_fns all[TENSOR_DTYPE_COUNT] = {
		[TENSOR_F32] = { backward_rows_f32, backward_columns_f32 },
		[TENSOR_F64] = { backward_rows_f64, backward_columns_f64 },
	};
	/*
	 * The saved output comes first and gives the order of loops: a gradient is often expanded.
	 */
	const tensor *op[] = { out, output, grad };

	if (dtype_is_reduced_float(grad->dtype))
		return for_reduced_lines(grad->sizes[dim] <= WHOLE_LINE ? reduced_float_backward :
									  long_reduced_backward,
					 op, 3, dim, log);
	if (unlikely(!all[grad->dtype].rows))
		return tensor_kernel_no_dtype(name, grad->dtype, "cpu");
	return for_lines(&all[grad->dtype], op, 3, dim, log);
}

static int cpu_softmax(tensor *out, const tensor *self, int dim)
{
	return forward("softmax", out, self, dim, false);
}

static int cpu_log_softmax(tensor *out, const tensor *self, int dim)
{
	return forward("log_softmax", out, self, dim, true);
}

static int cpu_softmax_backward(tensor *out, const tensor *grad, const tensor *output, int dim)
{
	return backward("softmax_backward", out, grad, output, dim, false);
}

static int cpu_log_softmax_backward(tensor *out, const tensor *grad, const tensor *output, int dim)
{
	return backward("log_softmax_backward", out, grad, output, dim, true);
}

CPU_KERNELS(KERNEL(softmax), KERNEL(log_softmax), KERNEL(softmax_backward),
	    KERNEL(log_softmax_backward))
