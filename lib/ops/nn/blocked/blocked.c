// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Blocked tensors: plugin, conversions, and the fallback that runs backward operators on dense
 * copies. */
#include "ops/nn/blocked/blocked.h"
#include "ops/memory_format.h"

#include "base/plugin.h"

#include "family/blocked.h"
#include "family/copy.h"
#include "family/sparse.h"
#include "family/view.h"

#include <pthread.h>
#include <stdio.h>

#define PLUGIN	 "libtensor_onednn.so.0"
#define DIMS_MAX 12 /* limit of oneDNN */
#define ARGS_MAX 24

/* ---- the plugin ---- */

static const struct onednn_plugin *plugin;
static char reason[TENSOR_ERROR_TEXT] = PLUGIN " registered nothing";
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int by_dense(const tensor_op *op, enum tensor_key key, const tensor_value *args, int nargs,
		    tensor_value *rets, int nrets, void *ctx);

/* Called by the plugin's constructor with its table, or with NULL and the reason it has none. */
TENSOR_EXPORT int tensor_register_onednn(const struct onednn_plugin *p, const char *error)
{
	int err = p ? tensor_register_fallback(TENSOR_KEY_BLOCKED_CPU, by_dense, NULL) : 0;

	if (!err)
		plugin = p;
	if (err || error)
		snprintf(reason, sizeof(reason), "%s",
			 err ? "no memory to register " PLUGIN : error);
	return err;
}

static void load(void)
{
	plugin_open(PLUGIN, "TENSOR_ONEDNN_PLUGIN", reason, sizeof(reason));
}

const struct onednn_plugin *blocked_plugin(const char *op)
{
	pthread_once(&once, load);
	if (!plugin)
		tensor_fail(ENOSYS,
			    "%s: the blocked layout needs oneDNN 2 (Debian: libdnnl2) and "
			    "libtensor's plugin for it: %s",
			    op, reason);
	return plugin;
}

/* ---- backward operators ---- */

static bool is_blocked_value(const tensor_value *v)
{
	return v->kind == TENSOR_VALUE_TENSOR && v->t != tensor_none && is_blocked(v->t);
}

/* Fallback for operators without a function for blocked tensors: EOPNOTSUPP, except for backward
 * operators. Those run on dense copies of the saved tensors, and return strided gradients. */
static int by_dense(const tensor_op *op, enum tensor_key key, const tensor_value *args, int nargs,
		    tensor_value *rets, int nrets, void *ctx)
{
	tensor_value dense[ARGS_MAX];
	int err = 0;

	if (!strstr(op->schema.name, "_backward") || op->variant != VARIANT_FUNCTION ||
	    nargs > ARGS_MAX)
		return dispatch_missing(op, KEY_BIT(key));
	for (int i = 0; i < nargs; i++) {
		dense[i] = args[i];
		if (err || !is_blocked_value(&args[i]))
			continue;
		dense[i].t = blocked_dense(op->schema.name, args[i].t);
		err = dense[i].t ? 0 : error_code();
	}
	if (!err)
		err = tensor_op_call_below(op, TENSOR_KEY_AUTOGRAD, dense, nargs, rets, nrets);
	for (int i = 0; i < nargs; i++)
		if (is_blocked_value(&args[i]) && dense[i].t != args[i].t)
			tensor_put(dense[i].t);
	return err;
}

/* ---- checks ---- */

static int check_dtype(const char *op, const char *name, enum tensor_dtype dtype)
{
	if (dtype == TENSOR_F32 || dtype == TENSOR_BF16)
		return 0;
	return tensor_fail(EINVAL, "%s: %s must be f32 or bf16, got %s", op, name,
			   tensor_dtype_name(dtype));
}

int blocked_need_form(const struct tensor_op *op, bool inplace)
{
	if (op->variant == VARIANT_FUNCTION || (inplace && op->variant == VARIANT_INPLACE))
		return 0;
	return tensor_fail(EOPNOTSUPP, "%s: this form is not supported for blocked tensors",
			   op->schema.name);
}

int blocked_need_elements(const char *op, const tensor *t)
{
	return t->numel ? 0 :
			  tensor_fail(EINVAL,
				      "%s: with a blocked tensor all sizes must be "
				      "positive, got %s",
				      op, SHAPE_STR(t));
}

int blocked_deliver(const struct tensor_op *op, tensor **out, tensor *result)
{
	*out = result;
	return result ? 0 : error_code();
}

/* ---- conversions ---- */

tensor *blocked_dense(const char *op, tensor *t)
{
	tensor *dense;

	if (!t)
		return NULL;
	if (!is_blocked(t))
		return operand_contiguous(t);
	dense = tensor_new(t->device, t->dtype, t->sizes, t->ndim);
	if (dense && plugin->to_dense(op, dense, t) < 0) {
		tensor_put(dense);
		return NULL;
	}
	return dense;
}

tensor *blocked_plain(const tensor *t, const int64_t *sizes, int ndim)
{
	int64_t strides[TENSOR_MAX_DIMS];

	contiguous_strides(sizes, ndim, strides);
	storage_get(t->storage);
	return tensor_new_on_storage(t->storage, t->dtype, sizes, strides, ndim, t->offset);
}

tensor *blocked_empty_like(const char *op, const tensor *t, const int64_t *sizes, int ndim)
{
	return is_blocked(t) ? blocked_plugin(op)->empty(op, t->dtype, sizes, ndim) :
			       tensor_new_like(t, sizes, ndim);
}

tensor *blocked_operand(tensor *t)
{
	return is_blocked(t) ? tensor_get(t) : operand_contiguous(t);
}

tensor *kernel_to_mkldnn(tensor *self, enum tensor_dtype dtype)
{
	const struct onednn_plugin *p;
	tensor *full, *t;

	if (check_dtype("to_mkldnn", "self", self->dtype) < 0 ||
	    (dtype && check_dtype("to_mkldnn", "dtype", dtype) < 0))
		return NULL;
	if (self->ndim < 1 || self->ndim > DIMS_MAX)
		return tensor_fail_null(EINVAL,
					"to_mkldnn: self must have 1 to %d dimensions, got %s",
					DIMS_MAX, SHAPE_STR(self));
	p = blocked_plugin("to_mkldnn");
	full = p ? operand_contiguous(self) : NULL;
	t = full ? p->from_dense("to_mkldnn", full, dtype ? dtype : self->dtype) : NULL;
	tensor_put(full);
	return t;
}

tensor *kernel_blocked_to_mkldnn(tensor *self, enum tensor_dtype dtype)
{
	if (dtype && dtype != self->dtype)
		return tensor_fail_null(EINVAL, "to_mkldnn: self is blocked and stays %s, got %s",
					tensor_dtype_name(self->dtype), tensor_dtype_name(dtype));
	return plugin->clone("to_mkldnn", self);
}

tensor *kernel_blocked_to_dense(tensor *self, enum tensor_dtype dtype)
{
	tensor *dense = blocked_dense("to_dense", self), *t;

	t = dense ? operand_cast(dense, dtype ? dtype : self->dtype) : NULL;
	tensor_put(dense);
	return t;
}

int op_blocked_clone(const struct tensor_op *op, tensor **out, tensor *self,
		     enum tensor_memory_format memory_format)
{
	if (memory_check_clone(memory_format) < 0)
		return error_code();
	return blocked_deliver(op, out, plugin->clone(op->schema.name, self));
}

/* The result aliases self's memory. Views of blocked tensors do not exist, so no view metadata is
 * needed. */
tensor *kernel_blocked_detach(tensor *self)
{
	return tensor_new_detached(self);
}

/* ---- shapes ---- */

tensor *kernel_mkldnn_reshape(tensor *self, tensor_ints shape)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	if (view_reshape_sizes("reshape", self, shape, sizes) < 0)
		return NULL;
	if (shape.len < 1 || shape.len > DIMS_MAX)
		return tensor_fail_null(EINVAL,
					"reshape: a blocked tensor has 1 to %d dimensions, got "
					"%lld",
					DIMS_MAX, (long long)shape.len);
	return plugin->reshape("reshape", self, sizes, (int)shape.len);
}

tensor *kernel_blocked_reshape(tensor *self, tensor_ints shape)
{
	return call__mkldnn_reshape(self, shape);
}

tensor *kernel_blocked_transpose(tensor *self, int64_t dim0, int64_t dim1)
{
	int a = wrap_dim("transpose", dim0, self->ndim), places[DIMS_MAX];
	int b = a < 0 ? -1 : wrap_dim("transpose", dim1, self->ndim);

	if (b < 0)
		return NULL;
	for (int i = 0; i < self->ndim; i++)
		places[i] = i == a ? b : i == b ? a : i;
	return plugin->permute("transpose", self, places);
}
