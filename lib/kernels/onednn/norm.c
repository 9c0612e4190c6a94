// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* softmax along a dimension, and batch_norm with given statistics. */
#include "kernels/onednn/onednn.h"

/* The bits of a float as a number of a key, and back. */
static int64_t float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return bits;
}

static float bits_float(int64_t n)
{
	uint32_t bits = (uint32_t)n;
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

/* ---- softmax ---- */

static dnnl_status_t make_softmax(const struct primitive_key *key, dnnl_primitive_attr_t attr,
				  dnnl_primitive_desc_t *pd)
{
	const dnnl_memory_desc_t *md = &key->md[0];
	dnnl_softmax_v2_desc_t desc;
	dnnl_status_t status = dnnl_softmax_v2_forward_desc_init(
		&desc, dnnl_forward_inference, dnnl_softmax_accurate, md, md, (int)key->n[0]);

	return status != dnnl_success ?
		       status :
		       dnnl_primitive_desc_create(pd, &desc, attr, onednn_engine, NULL);
}

/* Runs the primitive of key on self; the result has self's memory format. more: the arguments
 * besides source and destination. */
static tensor *apply_primitive(const char *op, struct primitive_key *key, const tensor *self,
			       const struct primitive_arg *more, int nmore)
{
	struct primitive_arg args[6];
	tensor *t = NULL;
	struct operand o;
	int err = operand_get(op, &o, self, self->sizes, self->ndim);

	if (!err) {
		key_md(key, &o.md);
		t = blocked_new(op, &o.md, self->dtype, self->sizes, self->ndim, self);
	}
	if (t) {
		args[0] = (struct primitive_arg){ DNNL_ARG_SRC, &o.md, o.data };
		args[1] = (struct primitive_arg){ DNNL_ARG_DST, &o.md, bytes_of(t) };
		if (nmore)
			memcpy(args + 2, more, nmore * sizeof(*more));
		err = primitive_once(op, key, args, nmore + 2);
	}
	operand_put(&o);
	if (!err)
		return t;
	tensor_plugin_put(t);
	return NULL;
}

tensor *onednn_softmax(const char *op, const tensor *self, int dim)
{
	struct primitive_key key = primitive_key(make_softmax);

	key_number(&key, dim);
	return apply_primitive(op, &key, self, NULL, 0);
}

/* ---- batch_norm ---- */

static dnnl_status_t make_batch_norm(const struct primitive_key *key, dnnl_primitive_attr_t attr,
				     dnnl_primitive_desc_t *pd)
{
	dnnl_batch_normalization_desc_t desc;
	dnnl_status_t status = dnnl_batch_normalization_forward_desc_init(
		&desc, dnnl_forward_inference, &key->md[0], bits_float(key->n[0]),
		(unsigned)key->n[1]);

	return status != dnnl_success ?
		       status :
		       dnnl_primitive_desc_create(pd, &desc, attr, onednn_engine, NULL);
}

tensor *onednn_batch_norm(const char *op, const tensor *self, const tensor *weight,
			  const tensor *bias, const tensor *mean, const tensor *var, float eps)
{
	struct primitive_key key = primitive_key(make_batch_norm);
	unsigned flags = dnnl_use_global_stats;
	struct primitive_arg args[4];
	dnnl_memory_desc_t md;
	int n = 0;

	if (md_plain(op, &md, TENSOR_F32, mean->sizes, 1) < 0)
		return NULL;
	args[n++] = (struct primitive_arg){ DNNL_ARG_MEAN, &md, mean->data };
	args[n++] = (struct primitive_arg){ DNNL_ARG_VARIANCE, &md, var->data };
	if (weight) {
		flags |= dnnl_use_scale;
		args[n++] = (struct primitive_arg){ DNNL_ARG_SCALE, &md, weight->data };
	}
	if (bias) {
		flags |= dnnl_use_shift;
		args[n++] = (struct primitive_arg){ DNNL_ARG_SHIFT, &md, bias->data };
	}
	key_number(&key, float_bits(eps));
	key_number(&key, flags);
	return apply_primitive(op, &key, self, args, n);
}
