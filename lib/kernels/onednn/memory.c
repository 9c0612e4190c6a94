// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Blocked tensors: creation, copies to other memory formats, conversion from and to dense. */
#include "kernels/onednn/onednn.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- descriptors ---- */

static dnnl_data_type_t type_of(unsigned dtype)
{
	return dtype == TENSOR_BF16 ? dnnl_bf16 : dnnl_f32;
}

int md_plain(const char *op, dnnl_memory_desc_t *md, unsigned dtype, const int64_t *sizes, int ndim)
{
	int64_t strides[DNNL_MAX_NDIMS], step = 1;

	for (int i = ndim - 1; i >= 0; i--) {
		strides[i] = step;
		step *= sizes[i] ? sizes[i] : 1;
	}
	return onednn_check(op, dnnl_memory_desc_init_by_strides(md, ndim, sizes, type_of(dtype),
								 strides));
}

dnnl_status_t md_any(dnnl_memory_desc_t *md, unsigned dtype, const int64_t *sizes, int ndim)
{
	return dnnl_memory_desc_init_by_tag(md, ndim, sizes, type_of(dtype), dnnl_format_tag_any);
}

static bool same_dims(const dnnl_memory_desc_t *md, const int64_t *sizes, int ndim)
{
	return md->ndims == ndim && !memcmp(md->dims, sizes, ndim * sizeof(*sizes));
}

static bool is_plain(const dnnl_memory_desc_t *md)
{
	int64_t step = 1;

	for (int i = md->ndims - 1; i >= 0; i--) {
		if (md->dims[i] != 1 && md->format_desc.blocking.strides[i] != step)
			return false;
		step *= md->dims[i];
	}
	return md->format_kind == dnnl_blocked && !md->format_desc.blocking.inner_nblks;
}

static tensor *new_bytes(const dnnl_memory_desc_t *md);

/* Two reorders, through row-major order: oneDNN's direct reorder between some pairs of blocked
 * formats is its slow reference implementation. */
static int reorder_by_plain(const char *op, const dnnl_memory_desc_t *from, const void *src,
			    const dnnl_memory_desc_t *to, void *dst)
{
	unsigned dtype = to->data_type == dnnl_bf16 ? TENSOR_BF16 : TENSOR_F32;
	dnnl_memory_desc_t plain;
	tensor *between = NULL;
	int err = md_plain(op, &plain, dtype, to->dims, to->ndims);

	if (!err) {
		between = new_bytes(&plain);
		err = between ? 0 : -tensor_last_error()->code;
	}
	if (!err)
		err = onednn_reorder(op, from, src, &plain, between->data);
	if (!err)
		err = onednn_reorder(op, &plain, between->data, to, dst);
	tensor_plugin_put(between);
	return err;
}

static dnnl_status_t make_reorder(const struct primitive_key *key, dnnl_primitive_attr_t attr,
				  dnnl_primitive_desc_t *pd)
{
	return dnnl_reorder_primitive_desc_create(pd, &key->md[0], onednn_engine, &key->md[1],
						  onednn_engine, attr);
}

int onednn_reorder(const char *op, const dnnl_memory_desc_t *from, const void *src,
		   const dnnl_memory_desc_t *to, void *dst)
{
	struct primitive_key key = primitive_key(make_reorder);
	const struct primitive_arg args[] = { { DNNL_ARG_FROM, from, (void *)src },
					      { DNNL_ARG_TO, to, dst } };
	struct primitive *p;
	int err;

	if (!dnnl_memory_desc_get_size(from))
		return 0;
	key_md(&key, from);
	key_md(&key, to);
	p = primitive_get(op, &key);
	if (!p)
		return -tensor_last_error()->code;
	err = p->slow && !is_plain(from) && !is_plain(to) && !dnnl_memory_desc_equal(from, to) ?
		      reorder_by_plain(op, from, src, to, dst) :
		      primitive_run(op, p, args, 2);
	primitive_put(p);
	return err;
}

/* ---- the extension ---- */

static void free_blocked(struct tensor_extension *x)
{
	free(x);
}

/* The only part of a blocked tensor is its dense copy. */
static tensor *part(const tensor *t, int i, const char **name)
{
	tensor *dense;

	*name = "";
	if (i)
		return NULL;
	dense = tensor_plugin_new(t->dtype, t->sizes, t->ndim);
	if (dense && onednn_to_dense("format", dense, t) == 0)
		return dense;
	tensor_plugin_put(dense);
	return NULL;
}

static void describe(const tensor *t, char *buf, size_t size)
{
	snprintf(buf, size, ", layout=blocked");
}

static const struct extension_ops blocked_ops = { .free = free_blocked,
						  .part = part,
						  .describe = describe };

static struct tensor_extension *new_extension(const char *op, const dnnl_memory_desc_t *md,
					      const tensor *like)
{
	struct blocked *b;

	if (like && is_blocked(like) && dnnl_memory_desc_equal(md_of(like), md))
		return extension_get(like);
	b = malloc(sizeof(*b));
	if (!b) {
		tensor_fail(ENOMEM, "%s: no memory", op);
		return NULL;
	}
	b->ext = (struct tensor_extension){ 1, &blocked_ops };
	b->md = *md;
	return &b->ext;
}

tensor *blocked_new(const char *op, const dnnl_memory_desc_t *md, unsigned dtype,
		    const int64_t *sizes, int ndim, const tensor *like)
{
	struct tensor_extension *ext = new_extension(op, md, like);

	return ext ? tensor_plugin_new_unstrided(TENSOR_OPTIONS(.dtype = dtype,
								.layout = TENSOR_BLOCKED),
						 sizes, ndim, dnnl_memory_desc_get_size(md), ext) :
		     NULL;
}

/* ---- operands ---- */

/* Memory for the elements that md describes. */
static tensor *new_bytes(const dnnl_memory_desc_t *md)
{
	int64_t size = (int64_t)dnnl_memory_desc_get_size(md);

	return tensor_plugin_new(TENSOR_U8, &size, 1);
}

int operand_as(const char *op, struct operand *o, const dnnl_memory_desc_t *md)
{
	tensor *copy;
	int err;

	if (dnnl_memory_desc_equal(&o->md, md))
		return 0;
	copy = new_bytes(md);
	if (!copy)
		return -tensor_last_error()->code;
	err = onednn_reorder(op, &o->md, o->data, md, copy->data);
	tensor_plugin_put(o->own);
	*o = (struct operand){ *md, copy->data, copy };
	return err;
}

int operand_get(const char *op, struct operand *o, const tensor *t, const int64_t *sizes, int ndim)
{
	dnnl_memory_desc_t plain;
	int err;

	o->own = NULL;
	if (!is_blocked(t)) {
		o->data = t->data;
		return md_plain(op, &o->md, t->dtype, sizes, ndim);
	}
	o->md = *md_of(t);
	o->data = bytes_of(t);
	if (same_dims(&o->md, sizes, ndim))
		return 0;
	err = md_plain(op, &plain, t->dtype, o->md.dims, o->md.ndims);
	if (!err)
		err = operand_as(op, o, &plain);
	return err ? err : md_plain(op, &o->md, t->dtype, sizes, ndim);
}

/* ---- copies ---- */

/* A blocked tensor with the elements of src. `to` is the format of the copy; md describes the
 * same bytes with the tensor's own sizes. */
static tensor *copy(const char *op, const dnnl_memory_desc_t *from, const void *src,
		    const dnnl_memory_desc_t *to, const dnnl_memory_desc_t *md, unsigned dtype,
		    const int64_t *sizes, int ndim, const tensor *like)
{
	tensor *t = blocked_new(op, md, dtype, sizes, ndim, like);

	if (t && onednn_reorder(op, from, src, to, bytes_of(t)) < 0) {
		tensor_plugin_put(t);
		return NULL;
	}
	return t;
}

tensor *onednn_from_dense(const char *op, const tensor *dense, enum tensor_dtype dtype)
{
	dnnl_memory_desc_t from, to;

	if (md_plain(op, &from, dense->dtype, dense->sizes, dense->ndim) < 0 ||
	    md_plain(op, &to, dtype, dense->sizes, dense->ndim) < 0)
		return NULL;
	return copy(op, &from, dense->data, &to, &to, dtype, dense->sizes, dense->ndim, NULL);
}

int onednn_to_dense(const char *op, tensor *dense, const tensor *self)
{
	const dnnl_memory_desc_t *from = md_of(self);
	dnnl_memory_desc_t to;
	int err = md_plain(op, &to, dense->dtype, from->dims, from->ndims);

	return err ? err : onednn_reorder(op, from, bytes_of(self), &to, dense->data);
}

tensor *onednn_empty(const char *op, enum tensor_dtype dtype, const int64_t *sizes, int ndim)
{
	dnnl_memory_desc_t md;

	return md_plain(op, &md, dtype, sizes, ndim) < 0 ?
		       NULL :
		       blocked_new(op, &md, dtype, sizes, ndim, NULL);
}

bool onednn_is_plain(const tensor *self)
{
	return md_of(self)->ndims == self->ndim && is_plain(md_of(self));
}

tensor *onednn_clone(const char *op, const tensor *self)
{
	const dnnl_memory_desc_t *md = md_of(self);

	return copy(op, md, bytes_of(self), md, md, self->dtype, self->sizes, self->ndim, self);
}

tensor *onednn_reshape(const char *op, const tensor *self, const int64_t *sizes, int ndim)
{
	const dnnl_memory_desc_t *from = md_of(self);
	dnnl_memory_desc_t to, md;

	if (md_plain(op, &to, self->dtype, from->dims, from->ndims) < 0 ||
	    md_plain(op, &md, self->dtype, sizes, ndim) < 0)
		return NULL;
	return copy(op, from, bytes_of(self), &to, &md, self->dtype, sizes, ndim, NULL);
}

tensor *onednn_permute(const char *op, const tensor *self, const int *permutation)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	int places[TENSOR_MAX_DIMS];
	dnnl_memory_desc_t permuted, to;
	tensor *t = NULL;
	struct operand o;

	for (int i = 0; i < self->ndim; i++) {
		sizes[i] = self->sizes[permutation[i]];
		places[permutation[i]] = i;
	}
	if (operand_get(op, &o, self, self->sizes, self->ndim) == 0 &&
	    onednn_check(op, dnnl_memory_desc_permute_axes(&permuted, &o.md, places)) == 0 &&
	    md_plain(op, &to, self->dtype, sizes, self->ndim) == 0)
		t = copy(op, &permuted, o.data, &to, &to, self->dtype, sizes, self->ndim, NULL);
	operand_put(&o);
	return t;
}

tensor *onednn_as_order(const char *op, tensor *other, const tensor *self)
{
	const dnnl_memory_desc_t *md = md_of(self);
	tensor *t = NULL;
	struct operand o;

	if (dnnl_memory_desc_equal(md_of(other), md))
		return tensor_get(other);
	if (operand_get(op, &o, other, md->dims, md->ndims) == 0)
		t = copy(op, &o.md, o.data, md, md, other->dtype, self->sizes, self->ndim, self);
	operand_put(&o);
	return t;
}

/* dnnl_memory_create() writes the zeros. */
int onednn_zero_padding(const char *op, tensor *self)
{
	dnnl_memory_t memory;
	int err;

	if (dnnl_memory_desc_get_size(md_of(self)) == self->numel * tensor_itemsize(self->dtype))
		return 0;
	err = onednn_memory_for(op, MEMORY_TO_RUN);
	if (err < 0)
		return err;
	err = onednn_check(op,
			   dnnl_memory_create(&memory, md_of(self), onednn_engine, bytes_of(self)));
	if (!err)
		dnnl_memory_destroy(memory);
	return err;
}
