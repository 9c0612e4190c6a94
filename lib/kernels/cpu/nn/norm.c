// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * layer_norm and group_norm with their gradients. The mean is computed before the squared
 * differences from it, so that a large mean does not lose precision; the row is still in the cache.
 * Sums over rows are kept in one line for each chunk of rows, and the lines are added in order.
 */
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/nn/norm_dtype.h"

#include "iter/parallel.h"

#include <math.h>

struct layer {
	const void *x, *grad, *weight, *bias; /* the last two may be NULL */
	void *out, *mean, *rstd;
	void *dweight, *dbias; /* a line for each chunk; NULL: not required */
	void *scratch;	       /* a line for each chunk */
	int64_t n, grain;
	double eps;
};

struct groups {
	const void *x, *grad, *weight, *bias;
	void *out, *mean, *rstd;
	void *sums; /* [batch, groups, channels, 2] */
	int64_t groups, channels, inner;
	double eps;
};

#define LOOPS_FILE "kernels/cpu/nn/group_norm_loops.h"
#include "kernels/cpu/nn/norm_each.h"

#define T    float
#define F(x) x##_f32
#include "kernels/cpu/nn/norm_loops.h"

#define T    double
#define F(x) x##_f64
#include "kernels/cpu/nn/norm_loops.h"

#define BY_DTYPE(t, fn) ((t)->dtype == TENSOR_F32 ? fn##_f32 : fn##_f64)

static const void *data_of(const tensor *t)
{
	return t ? t->data : NULL;
}

/* Rows of n elements in a chunk. */
static int64_t rows_of(int64_t n)
{
	return n >= ITER_GRAIN ? 1 : ITER_GRAIN / (n ? n : 1);
}

/* The same where no result depends on chunks: a row takes as long as ROW_COST elements more. */
#define ROW_COST 64
static int64_t rows_apart(int64_t n)
{
	return rows_of(n + ROW_COST);
}

static int cpu_layer_norm(tensor *out, tensor *mean, tensor *rstd, const tensor *x,
			  const tensor *weight, const tensor *bias, double eps)
{
	struct layer l = { .x = x->data,
			   .weight = data_of(weight),
			   .bias = data_of(bias),
			   .out = out->data,
			   .mean = mean->data,
			   .rstd = rstd->data,
			   .n = x->sizes[1],
			   .eps = eps };

	if (!norm_has_dtype(x))
		return tensor_kernel_no_dtype("layer_norm", x->dtype, "cpu");
	parallel_for(0, x->sizes[0], rows_apart(l.n), NORM_BY_DTYPE(x, layer_rows), &l);
	return 0;
}

static void layer_add(const struct layer *l, tensor *out, const void *lines, int64_t chunks)
{
	if (out && out->dtype == TENSOR_F32)
		add_lines_f32(out->data, lines, chunks, l->n);
	else if (out)
		add_lines_f64(out->data, lines, chunks, l->n);
}

static int cpu_layer_norm_backward(tensor *dx, tensor *dweight, tensor *dbias, const tensor *grad,
				   const tensor *x, const tensor *mean, const tensor *rstd,
				   const tensor *weight)
{
	int64_t rows = x->sizes[0], n = x->sizes[1], grain = rows_of(n), chunks, lines;
	struct layer l = { .x = x->data,
			   .grad = grad->data,
			   .weight = data_of(weight),
			   .out = dx ? dx->data : NULL,
			   .mean = mean->data,
			   .rstd = rstd->data,
			   .n = n };
	struct tensor_storage *s;

	if (x->dtype != TENSOR_F32 && x->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("layer_norm_backward", x->dtype, "cpu");
	/* At least 32 rows: the lines of sums take little memory compared to the rows. */
	l.grain = grain = grain < 32 ? 32 : grain;
	chunks = (rows + grain - 1) / grain;
	lines = chunks * n * (int64_t)itemsize(x);
	s = storage_alloc(TENSOR_DEVICE_CPU, 3 * lines, false);
	if (!s)
		return -thread()->error.code;
	l.scratch = s->data;
	l.dweight = dweight ? (char *)s->data + lines : NULL;
	l.dbias = dbias ? (char *)s->data + 2 * lines : NULL;
	parallel_for(0, rows, grain, BY_DTYPE(x, layer_gradients), &l);
	layer_add(&l, dweight, l.dweight, chunks);
	layer_add(&l, dbias, l.dbias, chunks);
	storage_put(s);
	return 0;
}

static struct groups groups_of(const tensor *x, const tensor *weight, const tensor *bias)
{
	return (struct groups){ .x = x->data,
				.weight = data_of(weight),
				.bias = data_of(bias),
				.groups = x->sizes[1],
				.channels = x->sizes[2],
				.inner = x->sizes[3] };
}

static int cpu_group_norm(tensor *out, tensor *mean, tensor *rstd, const tensor *x,
			  const tensor *weight, const tensor *bias, double eps)
{
	struct groups g = groups_of(x, weight, bias);

	if (!norm_has_dtype(x))
		return tensor_kernel_no_dtype("group_norm", x->dtype, "cpu");
	g.out = out->data;
	g.mean = mean->data;
	g.rstd = rstd->data;
	g.eps = eps;
	parallel_for(0, x->sizes[0] * g.groups, rows_apart(g.channels * g.inner),
		     NORM_BY_DTYPE(x, groups), &g);
	return 0;
}

static int cpu_group_norm_backward(tensor *dx, tensor *dweight, tensor *dbias, const tensor *grad,
				   const tensor *x, const tensor *mean, const tensor *rstd,
				   const tensor *weight)
{
	struct groups g = groups_of(x, weight, NULL);
	int64_t count = x->sizes[0] * g.groups;
	struct tensor_storage *s;
	tensor *totals[] = { dbias, dweight };

	if (!norm_has_dtype(x))
		return tensor_kernel_no_dtype("group_norm_backward", x->dtype, "cpu");
	s = storage_alloc(TENSOR_DEVICE_CPU, 2 * count * g.channels * itemsize(mean), false);
	if (!s)
		return -thread()->error.code;
	g.grad = grad->data;
	g.out = dx ? dx->data : NULL;
	g.mean = mean->data;
	g.rstd = rstd->data;
	g.sums = s->data;
	if (!x->numel) /* no task writes the sums */
		memset(s->data, 0, s->nbytes);
	parallel_for(0, count, rows_apart(g.channels * g.inner), NORM_BY_DTYPE(x, groups_dx), &g);
	for (int i = 0; i < 2; i++) {
		if (totals[i] && mean->dtype == TENSOR_F32)
			groups_total_f32(&g, totals[i]->data, x->sizes[0], i);
		else if (totals[i])
			groups_total_f64(&g, totals[i]->data, x->sizes[0], i);
	}
	storage_put(s);
	return 0;
}

CPU_KERNELS(KERNEL(layer_norm), KERNEL(layer_norm_backward), KERNEL(group_norm),
	    KERNEL(group_norm_backward))
