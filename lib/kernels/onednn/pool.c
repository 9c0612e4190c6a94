// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Maximum and average pooling, of images in any memory format. */
#include "kernels/onednn/onednn.h"

enum { POOL_MAX, POOL_PADDED, POOL_UNPADDED };

static dnnl_status_t make_pool(const struct primitive_key *key, dnnl_primitive_attr_t attr,
			       dnnl_primitive_desc_t *pd)
{
	static const dnnl_alg_kind_t algorithms[] = { dnnl_pooling_max,
						      dnnl_pooling_avg_include_padding,
						      dnnl_pooling_avg_exclude_padding };
	int spatial = (int)key->n[2], n = spatial + 2;
	const int64_t *sizes = key->n + 3, *kernel = sizes + n, *stride = kernel + spatial;
	const int64_t *dilation = stride + spatial, *before = dilation + spatial;
	const int64_t *after = before + spatial;
	dnnl_pooling_v2_desc_t desc;
	dnnl_memory_desc_t dst;
	dnnl_status_t status = md_any(&dst, (unsigned)key->n[0], sizes, n);

	if (status == dnnl_success)
		status = dnnl_pooling_v2_forward_desc_init(&desc, dnnl_forward_inference,
							   algorithms[key->n[1]], &key->md[0], &dst,
							   stride, kernel, dilation, before, after);
	return status != dnnl_success ?
		       status :
		       dnnl_primitive_desc_create(pd, &desc, attr, onednn_engine, NULL);
}

/* Padding after dimension d: as before it, or more if the last window ends later. */
static int64_t padding_after(const struct pool_params *p, int d, int64_t size, int64_t out)
{
	int64_t reach = (out - 1) * p->stride[d] + p->dilation[d] * (p->kernel[d] - 1) + 1;
	int64_t needed = reach - size - p->padding[d];

	return needed > p->padding[d] ? needed : p->padding[d];
}

static struct primitive_key pool_key(const tensor *self, const int64_t *sizes,
				     const struct pool_params *p, bool max)
{
	struct primitive_key key = primitive_key(make_pool);
	int n = p->spatial, first = 3 - n;

	key_number(&key, self->dtype);
	key_number(&key, max ? POOL_MAX : p->count_include_pad ? POOL_PADDED : POOL_UNPADDED);
	key_number(&key, n);
	key_numbers(&key, sizes, n + 2);
	key_numbers(&key, p->kernel + first, n);
	key_numbers(&key, p->stride + first, n);
	for (int d = first; d < 3; d++)
		key_number(&key, p->dilation[d] - 1);
	key_numbers(&key, p->padding + first, n);
	for (int d = first; d < 3; d++)
		key_number(&key,
			   padding_after(p, d, self->sizes[d - first + 2], sizes[d - first + 2]));
	return key;
}

tensor *onednn_pool(const char *op, const tensor *self, const int64_t *sizes,
		    const struct pool_params *p, bool max)
{
	struct primitive_key key = pool_key(self, sizes, p, max);
	struct primitive *prim = NULL;
	tensor *t = NULL;
	struct operand o;

	if (operand_get(op, &o, self, self->sizes, self->ndim) == 0) {
		key_md(&key, &o.md);
		prim = primitive_get(op, &key);
	}
	if (prim)
		t = blocked_new(op, &prim->dst, self->dtype, sizes, self->ndim, NULL);
	if (t && primitive_run(op, prim,
			       (const struct primitive_arg[]){
				       { DNNL_ARG_SRC, &o.md, o.data },
				       { DNNL_ARG_DST, &prim->dst, bytes_of(t) } },
			       2) < 0) {
		tensor_plugin_put(t);
		t = NULL;
	}
	primitive_put(prim);
	operand_put(&o);
	return t;
}
