// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Functions that all layers use: the options of the first call, parameters, initial values. */
#include "train/layers/layer.h"

#include <math.h>

/* ---- options ---- */

/* NaN stands for a default. */
static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static int differs(const tensor_module *layer, const struct layer_key *now)
{
	const struct layer_key *first = &layer->key;
	const struct layer_type *type = now->type;

	if (first->type != type)
		return tensor_fail(EINVAL, "%s: '%s' is a layer of %s", type->op,
				   MODULE_PATH(layer), first->type->op);
	for (int k = 0; k < LAYER_FLOATS && type->d[k]; k++)
		if (!same_number(first->d[k], now->d[k]))
			return tensor_fail(EINVAL, "%s: '%s' was made with %s %g, not %g", type->op,
					   MODULE_PATH(layer), type->d[k], first->d[k], now->d[k]);
	for (int k = 0; k < LAYER_INTS && type->i[k]; k++)
		if (first->i[k] != now->i[k])
			return tensor_fail(EINVAL, "%s: '%s' was made with %s %lld, not %lld",
					   type->op, MODULE_PATH(layer), type->i[k],
					   (long long)first->i[k], (long long)now->i[k]);
	return 0;
}

tensor_module *layer_module(tensor_module *m, const char *name, const struct layer_key *key)
{
	tensor_module *layer = module_child(m, key->type->op, name);

	if (layer && atomic_load_explicit(&layer->is_layer, memory_order_acquire) &&
	    differs(layer, key) < 0)
		return NULL;
	return layer;
}

int layer_made(tensor_module *layer, const struct layer_key *key)
{
	if (atomic_load_explicit(&layer->is_layer, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&layer->tree->lock);
	if (!atomic_load_explicit(&layer->is_layer, memory_order_relaxed)) {
		layer->key = *key;
		atomic_store_explicit(&layer->is_layer, true, memory_order_release);
	}
	pthread_mutex_unlock(&layer->tree->lock);
	return differs(layer, key); /* from the call of another thread */
}

/* ---- parameters ---- */

tensor *layer_parameter(tensor_module *layer, const struct layer_key *key, const char *name,
			tensor_ints sizes, tensor_init_fn init, void *ctx)
{
	struct new_entry e = { .kind = NODE_PARAMETER, .sizes = sizes, .init = init, .ctx = ctx };

	return module_entry(layer, key->type->op, name, &e);
}

tensor *layer_buffer(tensor_module *layer, const struct layer_key *key, const char *name,
		     tensor_ints sizes, enum tensor_dtype dtype, double value)
{
	struct new_entry e = { .kind = NODE_BUFFER,
			       .sizes = sizes,
			       .dtype = dtype,
			       .init = layer_init_value,
			       .ctx = &value };

	return module_entry(layer, key->type->op, name, &e);
}

tensor *layer_init_uniform(tensor *t, void *ctx)
{
	double bound = *(double *)ctx;

	return tensor_uniform_(t, -bound, bound);
}

tensor *layer_init_value(tensor *t, void *ctx)
{
	return tensor_fill_(t, tensor_scalar_float(*(double *)ctx));
}

double layer_bound(double n)
{
	return n > 0 ? 1 / sqrt(n) : 0;
}

/* ---- checks ---- */

bool layer_absent(const char *op, const tensor_module *m, const tensor *x)
{
	if (!m) {
		null_argument(op);
		return true;
	}
	return tensor_absent(op, x);
}

int layer_at_least(const char *op, const char *option, int64_t value, int64_t from)
{
	return value >= from ? 0 :
			       tensor_fail(EINVAL, "%s: %s must be at least %lld, got %lld", op,
					   option, (long long)from, (long long)value);
}
