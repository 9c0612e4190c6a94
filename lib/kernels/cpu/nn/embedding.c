// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * embedding_bag, and the gradients of embedding and embedding_bag. A table of rows is divided into
 * ranges for parallel work. Each range reads all indices in order, so that the bits of the sum of a
 * row do not depend on the division.
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/embedding.h"
#include "iter/parallel.h"

#define RANGES 16 /* ranges of a table */

struct table {
	tensor *out;
	const tensor *grad, *indices, *bag, *bag_size, *factors; /* the last three may be NULL */
	int64_t m, d, grain;
	const int64_t *counts; /* occurrences of each row; NULL: no scaling by frequency */
	void *buffers;	       /* a row for each range */
	struct embedding e;
};

struct bag_job {
	tensor *out;
	const tensor *weight, *grad;
	const struct bags *b;
	int64_t d, grain;
	void *buffers;
};

static inline int64_t index_at(const tensor *t, int64_t i)
{
	return t->dtype == TENSOR_I64 ? ((const int64_t *)t->data)[i] :
					((const int32_t *)t->data)[i];
}

static inline void set_index(const tensor *t, int64_t i, int64_t v)
{
	if (t->dtype == TENSOR_I64)
		((int64_t *)t->data)[i] = v;
	else
		((int32_t *)t->data)[i] = (int32_t)v;
}

#define T     float
#define F(x)  x##_f32
#define DTYPE TENSOR_F32
#include "kernels/cpu/nn/embedding_loops.h"

#define T     double
#define F(x)  x##_f64
#define DTYPE TENSOR_F64
#include "kernels/cpu/nn/embedding_loops.h"

static int check(const char *name, const tensor *out, const tensor *indices, int64_t rows)
{
	if (out->dtype != TENSOR_F32 && out->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype(name, out->dtype, "cpu");
	for (int64_t i = 0; i < indices->numel; i++) {
		int64_t k = index_at(indices, i);

		if (k < 0 || k >= rows)
			return tensor_fail(ERANGE, "%s: index %lld is out of range for %lld rows",
					   name, (long long)k, (long long)rows);
	}
	return 0;
}

static struct tensor_storage *scratch(int64_t n)
{
	return storage_alloc(TENSOR_DEVICE_CPU, n + 1, false);
}

/* counts[k] = how often row k is among the indices. */
static void count_rows(int64_t *counts, int64_t rows, const tensor *indices)
{
	memset(counts, 0, rows * sizeof(*counts));
	for (int64_t i = 0; i < indices->numel; i++)
		counts[index_at(indices, i)]++;
}

static int fill_table(struct table *t, int64_t rows)
{
	struct tensor_storage *s = scratch(RANGES * t->d * sizeof(double));
	struct tensor_storage *c = t->e.by_frequency ? scratch(rows * sizeof(int64_t)) : NULL;
	int err = 0;

	if (s && !c == !t->e.by_frequency) {
		if (c) {
			count_rows(c->data, rows, t->indices);
			t->counts = c->data;
		}
		t->buffers = s->data;
		t->grain = (rows + RANGES - 1) / RANGES;
		if (t->grain * t->d < 1024)
			t->grain = rows;
		if (rows)
			parallel_for(0, rows, t->grain,
				     t->out->dtype == TENSOR_F32 ? table_f32 : table_f64, t);
	} else {
		err = -thread()->error.code;
	}
	if (s)
		storage_put(s);
	if (c)
		storage_put(c);
	return err;
}

static int cpu_embedding_backward(tensor *out, const tensor *grad, const tensor *indices,
				  const struct embedding *e)
{
	struct table t = { .out = out,
			   .grad = grad,
			   .indices = indices,
			   .m = indices->numel,
			   .d = out->sizes[1],
			   .e = *e };

	if (check("embedding_backward", out, indices, out->sizes[0]) < 0)
		return -thread()->error.code;
	return fill_table(&t, out->sizes[0]);
}

/* Checks that offsets ascend, and sets offset2bag to the bag of each index. */
static int fill_offset2bag(const struct bags *b)
{
	int64_t n = b->indices->numel, last = 0, at = 0;

	for (int64_t i = 0; i < b->offsets->numel; i++) {
		int64_t o = index_at(b->offsets, i);

		if (o < last || o > n || (!i && o))
			return tensor_fail(EINVAL,
					   "embedding_bag: offsets must ascend from 0 to at most "
					   "%lld, got %lld at %lld",
					   (long long)n, (long long)o, (long long)i);
		for (; at < o; at++)
			set_index(b->offset2bag, at, i - 1);
		last = o;
	}
	for (; at < n; at++)
		set_index(b->offset2bag, at, b->offsets->numel - 1);
	return 0;
}

static int cpu_embedding_bag(tensor *out, const tensor *weight, const struct bags *b)
{
	int64_t bags = out->sizes[0], d = out->sizes[1];
	struct bag_job t = { .out = out, .weight = weight, .b = b, .d = d };
	struct tensor_storage *s;

	if (check("embedding_bag", out, b->indices, weight->sizes[0]) < 0 || fill_offset2bag(b) < 0)
		return -thread()->error.code;
	t.grain = 1 + bags / RANGES;
	s = scratch((RANGES + 1) * d * sizeof(double));
	if (!s)
		return -thread()->error.code;
	t.buffers = s->data;
	if (b->mode == BAG_MAX)
		memset(b->maximum->data, 0, b->maximum->numel * itemsize(b->maximum));
	parallel_for(0, bags, t.grain, out->dtype == TENSOR_F32 ? bags_f32 : bags_f64, &t);
	storage_put(s);
	return 0;
}

static int check_bags(const struct bags *b, const tensor *grad)
{
	for (int64_t i = 0; i < b->offset2bag->numel; i++)
		if (index_at(b->offset2bag, i) < 0 || index_at(b->offset2bag, i) >= grad->sizes[0])
			return tensor_fail(EINVAL,
					   "embedding_bag: index %lld belongs to bag %lld, there "
					   "are %lld",
					   (long long)i, (long long)index_at(b->offset2bag, i),
					   (long long)grad->sizes[0]);
	return 0;
}

static int cpu_embedding_bag_backward(tensor *out, const tensor *grad, const struct bags *b)
{
	struct table t = { .out = out,
			   .grad = grad,
			   .indices = b->indices,
			   .bag = b->offset2bag,
			   .bag_size = b->mode == BAG_MEAN ? b->bag_size : NULL,
			   .factors = b->factors,
			   .m = b->indices->numel,
			   .d = out->sizes[1],
			   .e = b->e };
	struct tensor_storage *s;

	if (check("embedding_bag_backward", out, b->indices, out->sizes[0]) < 0 ||
	    check_bags(b, grad) < 0)
		return -thread()->error.code;
	if (b->mode != BAG_MAX)
		return fill_table(&t, out->sizes[0]);
	if (check("embedding_bag_backward", out, b->maximum, out->sizes[0] ? out->sizes[0] : 1) < 0)
		return -thread()->error.code;
	s = scratch(t.d * sizeof(double));
	if (!s)
		return -thread()->error.code;
	t.buffers = s->data;
	if (out->dtype == TENSOR_F32)
		table_of_maxima_f32(&t, b->maximum, b->bag_size);
	else
		table_of_maxima_f64(&t, b->maximum, b->bag_size);
	storage_put(s);
	return 0;
}

static int cpu_embedding_bag_weights_backward(tensor *out, const tensor *grad, const tensor *weight,
					      const struct bags *b)
{
	struct bag_job t = {
		.out = out, .weight = weight, .grad = grad, .b = b, .d = weight->sizes[1]
	};
	struct tensor_storage *s;

	if (check("embedding_bag", out, b->indices, weight->sizes[0]) < 0 ||
	    check_bags(b, grad) < 0)
		return -thread()->error.code;
	s = scratch(2 * t.d * sizeof(double));
	if (!s)
		return -thread()->error.code;
	t.buffers = s->data;
	if (out->dtype == TENSOR_F32)
		products_f32(&t);
	else
		products_f64(&t);
	storage_put(s);
	return 0;
}

CPU_KERNELS(KERNEL(embedding_backward), KERNEL(embedding_bag), KERNEL(embedding_bag_backward),
	    KERNEL(embedding_bag_weights_backward))
