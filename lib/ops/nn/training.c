// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operators on all tensors of a list in one call of a kernel, for gradients and averages of parameters; the scale of
 * gradients in half precision. They are not recorded.
 */
#include "kernels/abi/list.h"
#include "ops/nn/items.h"
#include "ops/op.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/unary.h"
#include "family/training.h"

#include <math.h>
#include <stdlib.h>

/* The tensors of one position: as given and as the kernel gets them, which is owned. `other` may be NULL. */
struct pass_tensors {
	tensor *t, *other, *dense, *dense_other;
};

struct pass {
	const struct tensor_op *op;
	enum list_method method;
	double value;
	tensor_list self, other; /* other.len is 0 without one */
	double result;
};

static int check_tensor(const struct pass *p, const tensor *t, bool written)
{
	const char *name = p->op->schema.name;

	if (t->ext ||
	    !(dtype_is_float(t->dtype) || (dtype_is_complex(t->dtype) && p->method != LIST_CLAMP)))
		return tensor_fail(EINVAL, "%s: a tensor is %s %s", name,
				   tensor_layout_name(t->layout), tensor_dtype_name(t->dtype));
	if (operand_check_device(name, t, p->self.data[0]) < 0)
		return error_code();
	if (!written)
		return 0;
	if (tensor_overlaps_itself(t))
		return tensor_fail(EINVAL, "%s: a tensor's elements share memory", name);
	if (operand_is_recorded(t))
		return tensor_fail(EINVAL,
				   "%s: a tensor requires a gradient; call it under tensor_no_grad",
				   name);
	return check_writable(p->op, t);
}

static int gather(const struct pass *p, int64_t i, struct pass_tensors *g,
		  struct optimizer_item *item)
{
	bool norm = p->method >= LIST_NORM_1, alike;

	g->t = p->self.data[i];
	g->other = p->other.len ? p->other.data[i] : NULL;
	if (check_tensor(p, g->t, !norm) < 0 || (g->other && check_tensor(p, g->other, false) < 0))
		return error_code();
	if (g->other && (g->other->dtype != g->t->dtype || !sizes_equal(g->other, g->t)))
		return tensor_fail(EINVAL, "%s: %s %s for a tensor %s %s", p->op->schema.name,
				   tensor_dtype_name(g->other->dtype), SHAPE_STR(g->other),
				   tensor_dtype_name(g->t->dtype), SHAPE_STR(g->t));
	alike = dense_alike(g->t, g->t) && (!g->other || dense_alike(g->other, g->t));
	/* The absolute value of a complex number is not that of its parts. */
	if (norm && p->method != LIST_NORM_2 && dtype_is_complex(g->t->dtype))
		g->dense = call_abs(g->t);
	else
		g->dense = alike ? tensor_get(g->t) : operand_contiguous(g->t);
	if (g->other)
		g->dense_other = alike ? tensor_get(g->other) : operand_contiguous(g->other);
	if (!g->dense || (g->other && !g->dense_other))
		return error_code();
	item->dtype = dtype_real(g->dense->dtype);
	item->n = real_numel(g->dense);
	item->param = g->dense->data;
	item->grad = g->other ? g->dense_other->data : NULL;
	item->tensors[0] = g->dense;
	item->tensors[1] = g->dense_other;
	return 0;
}

static int finish(struct pass *p, struct pass_tensors *g)
{
	if (p->method >= LIST_NORM_1)
		return 0;
	if (g->dense != g->t && operand_copy(g->t, g->dense) < 0)
		return error_code();
	tensor_bump_version(g->t);
	return 0;
}

static int pass_items(struct pass *p, struct pass_tensors *g, struct optimizer_item *items)
{
	list_kernel fn = (list_kernel)op_kernel(p->op, &kernels_list, p->self.data[0]);
	int64_t n = 0, begin = 0, chunks;
	double *part;

	if (!fn)
		return error_code();
	for (int64_t i = 0; i < p->self.len; i++) {
		if (gather(p, i, &g[i], &items[n]) < 0)
			return error_code();
		items[n].begin = begin;
		begin += items[n].n;
		n += items[n].n > 0;
	}
	if (!n)
		return 0;
	chunks = (begin + LIST_GRAIN - 1) / LIST_GRAIN;
	part = calloc((size_t)chunks, sizeof(*part));
	if (!part)
		return tensor_fail(ENOMEM, "%s: no memory", p->op->schema.name);
	if (fn(p->method, p->value, part, items, n) < 0) {
		free(part);
		return error_code();
	}
	for (int64_t i = 0; i < chunks; i++)
		if (p->method == LIST_NORM_MAX || p->method == LIST_UNSCALE)
			p->result = part[i] > p->result || isnan(part[i]) ? part[i] : p->result;
		else
			p->result += part[i];
	free(part);
	for (int64_t i = 0; i < p->self.len; i++)
		if (finish(p, &g[i]) < 0)
			return error_code();
	return 0;
}

static int list_pass(struct pass *p)
{
	struct pass_tensors *g;
	int err;

	if (p->other.len && p->other.len != p->self.len)
		return tensor_fail(EINVAL, "%s: %lld tensors for %lld", p->op->schema.name,
				   (long long)p->other.len, (long long)p->self.len);
	if (!p->self.len)
		return 0;
	g = calloc((size_t)p->self.len, sizeof(*g) + sizeof(struct optimizer_item));
	if (!g)
		return tensor_fail(ENOMEM, "%s: no memory", p->op->schema.name);
	err = pass_items(p, g, (struct optimizer_item *)(g + p->self.len));
	for (int64_t i = 0; i < p->self.len; i++) {
		tensor_put(g[i].dense);
		tensor_put(g[i].dense_other);
	}
	free(g);
	return err;
}

/* ---- norms, scaling ---- */

tensor *composite_list_norm(tensor_list self, double ord)
{
	struct pass p = { .op = &entry__list_norm, .value = ord, .self = self };
	enum tensor_dtype dtype = TENSOR_F32;

	if (!(ord > 0))
		return tensor_fail_null(EINVAL, "_list_norm: ord must be above 0, got %g", ord);
	p.method = ord == 1   ? LIST_NORM_1 :
		   ord == 2   ? LIST_NORM_2 :
		   isinf(ord) ? LIST_NORM_MAX :
				LIST_NORM_P;
	if (list_pass(&p) < 0)
		return NULL;
	for (int64_t i = 0; i < self.len; i++)
		if (dtype_real(self.data[i]->dtype) == TENSOR_F64)
			dtype = TENSOR_F64;
	if (ord == 2)
		p.result = sqrt(p.result);
	else if (p.method == LIST_NORM_P)
		p.result = pow(p.result, 1 / ord);
	return call_full(TENSOR_SCALAR_SHAPE, tensor_scalar_float(p.result),
			 TENSOR_OPTIONS(.dtype = dtype, .device = self.len ? self.data[0]->device :
									     TENSOR_DEVICE_CPU));
}

int composite_list_scale_(tensor_list self, double scale)
{
	struct pass p = { &entry__list_scale_, LIST_SCALE, scale, self, { NULL, 0 }, 0 };

	return list_pass(&p);
}

int composite_list_clamp_(tensor_list self, double limit)
{
	struct pass p = { &entry__list_clamp_, LIST_CLAMP, limit, self, { NULL, 0 }, 0 };

	if (!(limit >= 0))
		return tensor_fail(EINVAL, "_list_clamp_: the limit is %g", limit);
	return list_pass(&p);
}

int composite_list_lerp_(tensor_list self, tensor_list end, double weight)
{
	struct pass p = { &entry__list_lerp_, LIST_LERP, weight, self, end, 0 };

	if (end.len != self.len)
		return tensor_fail(EINVAL, "_list_lerp_: %lld tensors for %lld", (long long)end.len,
				   (long long)self.len);
	return list_pass(&p);
}

/* ---- the scale of gradients ---- */

static int check_number(const struct tensor_op *op, const tensor *t, enum tensor_dtype dtype,
			bool written, bool on_cpu)
{
	if (t->ext || t->numel != 1 || t->dtype != dtype ||
	    (on_cpu && t->device.type != TENSOR_CPU))
		return tensor_fail(EINVAL, "%s: one element of %s%s is needed, got %s %s",
				   op->schema.name, tensor_dtype_name(dtype),
				   on_cpu ? " on the CPU" : "", tensor_dtype_name(t->dtype),
				   SHAPE_STR(t));
	return written ? check_writable(op, t) : 0;
}

/* Check that t is one element of dtype on the CPU, and return its address; NULL with the error set. */
static void *number_at(const struct tensor_op *op, tensor *t, enum tensor_dtype dtype, bool written)
{
	return check_number(op, t, dtype, written, true) < 0 ? NULL : t->data;
}

int composite_amp_unscale_(tensor_list self, tensor *found_inf, tensor *inv_scale)
{
	struct pass p = { .op = &entry__amp_foreach_non_finite_check_and_unscale_,
			  .method = LIST_UNSCALE,
			  .self = self };

	if (check_number(p.op, found_inf, TENSOR_F32, true, false) < 0 ||
	    check_number(p.op, inv_scale, TENSOR_F32, false, false) < 0 ||
	    tensor_item(inv_scale, &p.value) < 0 || list_pass(&p) < 0)
		return error_code();
	if (p.result != 0 && !call_fill__Scalar(found_inf, tensor_scalar_int(1)))
		return error_code();
	return 0;
}

tensor *composite_amp_update_scale_(tensor *self, tensor *growth_tracker, tensor *found_inf,
				    double growth, double backoff, int64_t interval)
{
	const struct tensor_op *op = &entry__amp_update_scale_;
	float *scale = number_at(op, self, TENSOR_F32, true);
	int32_t *tracker = number_at(op, growth_tracker, TENSOR_I32, true);
	const float *found = number_at(op, found_inf, TENSOR_F32, false);

	if (!scale || !tracker || !found)
		return NULL;
	if (*found != 0) {
		*scale = (float)(*scale * backoff);
		*tracker = 0;
	} else if ((int64_t)*tracker + 1 == interval) {
		if (isfinite((float)(*scale * growth)))
			*scale = (float)(*scale * growth);
		*tracker = 0;
	} else if (*tracker < INT32_MAX) {
		++*tracker;
	}
	tensor_bump_version(self);
	tensor_bump_version(growth_tracker);
	return self;
}
