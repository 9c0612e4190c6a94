// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_add, scatter and its reductions, index_put, the gradient of embedding: rows of the source
 * are combined with the rows of the output that an index selects, in the order of the index. A key
 * is the number of an output row. A kernel computes the keys and checks the index; then the
 * positions are sorted by key, and a kernel combines those of each key.
 */
#include "kernels/cuda/cuda.h"

#include "iter/indexed.h"

_Static_assert((int)CUDA_PUT_SET == SCATTER_SET && (int)CUDA_PUT_ADD == SCATTER_ADD &&
		       (int)CUDA_PUT_MUL == SCATTER_MUL && (int)CUDA_PUT_MAX == SCATTER_MAX &&
		       (int)CUDA_PUT_MIN == SCATTER_MIN,
	       "the modes of the launcher are those of the kernel's type");

/* Bytes of a part of the scratch memory. */
static size_t part_size(const struct cuda_put *p, size_t itemsize)
{
	return ((size_t)p->place.numel * itemsize + 255) / 256 * 256;
}

/* Scratch memory: keys and positions, both sorted and not, and what the sort needs. */
static int make_scratch(const struct cuda_call *c, struct cuda_put *p, void **all, void **temporary,
			size_t *nbytes)
{
	const size_t keys = part_size(p, p->wide_keys ? 8 : 4), positions = part_size(p, 4);
	char *at;
	int err;

	err = cuda_check(c->op, cuda_launch_put_sort(p, NULL, nbytes, c->stream));
	if (!err)
		err = cuda_scratch(c, 2 * (keys + positions) + *nbytes, all);
	if (err)
		return err;
	at = *all;
	p->key = at;
	p->sorted = at + keys;
	p->position = (uint32_t *)(at + 2 * keys);
	p->order = (uint32_t *)(at + 2 * keys + positions);
	*temporary = at + 2 * (keys + positions);
	return 0;
}

static int queue(const struct cuda_call *c, struct cuda_put *p, void *temporary, size_t nbytes,
		 enum tensor_dtype to, enum tensor_dtype from)
{
	int err = cuda_launched(c, cuda_launch_put_keys(p, c->stream), TENSOR_I64);

	if (!err)
		err = cuda_check(c->op, cuda_launch_put_sort(p, temporary, &nbytes, c->stream));
	if (!err)
		err = cuda_launched(
			c, cuda_launch_put(p, to, from, (int)tensor_itemsize(to), c->stream), to);
	return err;
}

/* place, keys, columns and index are set. */
static int put(const struct cuda_call *c, struct cuda_put *p, tensor *out, const tensor *index,
	       const tensor *source)
{
	void *all = NULL, *temporary = NULL;
	struct cuda_check k;
	size_t nbytes = 0;
	int err;

	if (p->place.numel > INT32_MAX)
		return tensor_fail(EOPNOTSUPP, "%s: cuda: %lld indices, at most 2^31 - 1", c->op,
				   (long long)p->place.numel);
	p->wide_keys = p->keys.numel > UINT32_MAX;
	p->data[0] = out->data;
	p->data[1] = source->data;
	p->data[2] = index->data;
	err = make_scratch(c, p, &all, &temporary, &nbytes);
	if (err)
		return err;
	err = cuda_check_open(c, &k, true);
	if (!err) {
		p->bad = k.report;
		err = queue(c, p, temporary, nbytes, out->dtype, source->dtype);
		err = cuda_check_end(c, &k, err);
	}
	cuda_scratch_free(c, all);
	return err;
}

static void put_init(struct cuda_put *p, enum scatter_mode mode, double alpha)
{
	*p = (struct cuda_put){ .mode = (enum cuda_put_mode)mode,
				.alpha = tensor_scalar_float(alpha),
				.skip = -1 };
	cuda_dims_init(&p->place);
	cuda_dims_init(&p->keys);
	cuda_dims_init(&p->columns);
}

static int begin(struct cuda_call *c, const char *op, const tensor *out, const tensor *index,
		 const tensor *source)
{
	return cuda_begin_with(c, op, out->device.index, out, index, source);
}

/* ---- an index along one dimension ---- */

/*
 * A dimension of the source beside the indexed one: along a row if the index is the same there,
 * else part of the key.
 */
static void add_dim(struct cuda_put *p, const tensor *out, const tensor *source,
		    const tensor *index, bool vector, int d)
{
	const int64_t size = vector ? source->sizes[d] : index->sizes[d];

	if (vector || !index->strides[d]) {
		cuda_dims_add(&p->columns, 2, size,
			      (const int64_t[]){ out->strides[d], source->strides[d] });
		return;
	}
	cuda_dims_add(&p->place, 3, size,
		      (const int64_t[]){ p->keys.numel, source->strides[d], index->strides[d] });
	cuda_dims_add(&p->keys, 1, size, (const int64_t[]){ out->strides[d] });
}

/* vector: the index is a vector, else it has as many dimensions as the source. */
static int put_dim(const char *op, tensor *out, int dim, const tensor *index, const tensor *source,
		   enum scatter_mode mode, double alpha, bool vector)
{
	const tensor *shape = vector ? source : index;
	struct cuda_put p;
	struct cuda_call c;
	int err;

	if (!index->numel || !source->numel)
		return 0;
	err = begin(&c, op, out, index, source);
	if (err)
		return err;
	put_init(&p, mode, alpha);
	err = cuda_index_of(&c, &p.index, index, cuda_size(out, dim), 1);
	/* The indexed dimension is the innermost of the keys. */
	cuda_dims_add(&p.keys, 1, cuda_size(out, dim), (const int64_t[]){ cuda_stride(out, dim) });
	for (int d = shape->ndim - 1; d >= 0; d--)
		if (d == dim)
			cuda_dims_add(&p.place, 3, shape->sizes[d],
				      (const int64_t[]){ 0, source->strides[d],
							 cuda_stride(index, vector ? 0 : d) });
		else
			add_dim(&p, out, source, index, vector, d);
	if (!err)
		err = put(&c, &p, out, index, source);
	return cuda_end(&c, err);
}

int cuda_index_add(const char *op, tensor *out, int dim, const tensor *index, const tensor *source,
		   double alpha)
{
	return put_dim(op, out, dim, index, source, SCATTER_ADD, alpha, true);
}

int cuda_scatter_add(const char *op, tensor *out, int dim, const tensor *index,
		     const tensor *source)
{
	return put_dim(op, out, dim, index, source, SCATTER_ADD, 1, false);
}

int cuda_scatter(const char *op, tensor *out, int dim, const tensor *index, const tensor *source,
		 enum scatter_mode mode)
{
	return put_dim(op, out, dim, index, source, mode, 1, index->ndim != source->ndim);
}

/* ---- several indices ---- */

int cuda_index_put(const char *op, tensor *out, const tensor *at, const int *dims, int n,
		   const tensor *values, enum scatter_mode mode)
{
	struct indexed r;
	struct cuda_put p;
	struct cuda_call c;
	int err;

	if (!values->numel || !at->numel)
		return 0;
	err = indexed_build(&r, op, out, at, dims, n);
	if (!err)
		err = begin(&c, op, out, at, values);
	if (err)
		return err;
	put_init(&p, mode, 1);
	err = cuda_indices_of(&c, &p.index, out, at, dims, n);
	for (int k = n - 1; k >= 0; k--) {
		p.index.step[k] = p.keys.numel;
		cuda_dims_add(&p.keys, 1, out->sizes[dims[k]],
			      (const int64_t[]){ out->strides[dims[k]] });
	}
	for (int d = r.ndim - 1; d >= 0; d--) {
		int from = r.from[d];

		if (from < 0)
			cuda_dims_add(&p.place, 3, r.sizes[d],
				      (const int64_t[]){ 0, values->strides[d],
							 at->strides[d - r.first + 1] });
		else
			cuda_dims_add(&p.columns, 2, r.sizes[d],
				      (const int64_t[]){ out->strides[from], values->strides[d] });
	}
	if (!err)
		err = put(&c, &p, out, at, values);
	return cuda_end(&c, err);
}

/* ---- the gradient of embedding ---- */

int cuda_embedding_backward(tensor *out, const tensor *grad, const tensor *indices,
			    const struct embedding *e)
{
	const int64_t width = out->sizes[1];
	struct cuda_put p;
	struct cuda_call c;
	int err;

	err = begin(&c, "embedding_backward", out, indices, grad);
	if (err)
		return err;
	put_init(&p, SCATTER_ADD, 1);
	p.fresh = true;
	p.by_frequency = e->by_frequency;
	p.skip = e->padding_idx;
	err = cuda_index_of(&c, &p.index, indices, out->sizes[0], 1);
	cuda_dims_add(&p.keys, 1, out->sizes[0], (const int64_t[]){ width });
	cuda_dims_add(&p.place, 3, indices->numel, (const int64_t[]){ 0, width, 1 });
	cuda_dims_add(&p.columns, 2, width, (const int64_t[]){ 1, 1 });
	if (!err && out->numel)
		err = cuda_check(c.op, cudaMemsetAsync(out->data, 0,
						       out->numel * tensor_itemsize(out->dtype),
						       c.stream));
	if (!err && indices->numel)
		err = put(&c, &p, out, indices, grad);
	return cuda_end(&c, err);
}
