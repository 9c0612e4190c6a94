// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Normalisations as layers. */
#include "train/layers/layer.h"

#include <math.h>
#include <tensor/autograd.h>

/* weight and bias of a norm; tensor_none for one that it has not, NULL with the error set. */
struct affine {
	tensor *weight, *bias;
};

static int affine_parameters(tensor_module *layer, const struct layer_key *key, tensor_ints sizes,
			     bool weight, bool bias, struct affine *a)
{
	double one = 1;

	a->weight = a->bias = tensor_none;
	if (weight)
		a->weight = layer_parameter(layer, key, "weight", sizes, layer_init_value, &one);
	if (bias && a->weight)
		a->bias = layer_parameter(layer, key, "bias", sizes, NULL, NULL);
	return a->weight && a->bias ? 0 : -EINVAL;
}

static double eps_of(const struct tensor_norm_options *o)
{
	return o->eps != 0 ? o->eps : 1e-5; /* NaN stays, and is an error of the operator */
}

/* ---- batch and instance norm ---- */

struct statistics {
	tensor *mean, *var, *count;
};

static int statistics_buffers(tensor_module *layer, const struct layer_key *key, int64_t channels,
			      bool have, struct statistics *s)
{
	tensor_ints sizes = { &channels, 1 };

	*s = (struct statistics){ tensor_none, tensor_none, tensor_none };
	if (!have)
		return 0;
	s->mean = layer_buffer(layer, key, "running_mean", sizes, TENSOR_DTYPE_NONE, 0);
	s->var = s->mean ? layer_buffer(layer, key, "running_var", sizes, TENSOR_DTYPE_NONE, 1) :
			   NULL;
	s->count = s->var ? layer_buffer(layer, key, "num_batches_tracked", TENSOR_SCALAR_SHAPE,
					 TENSOR_I64, 0) :
			    NULL;
	return s->count ? 0 : -EINVAL;
}

/* Counts a batch of training; *momentum becomes the weight of the batch in a mean over all. */
static int count_batch(const struct statistics *s, bool cumulative, double *momentum)
{
	double count = 1;
	bool done;

	tensor_no_grad
		done = tensor_add_scalar_(s->count, tensor_scalar_int(1));
	if (!done)
		return -EINVAL;
	if (cumulative) {
		if (tensor_item(s->count, &count) < 0)
			return -EINVAL;
		*momentum = 1 / count;
	}
	return 0;
}

struct channel_norm {
	struct layer_key key;
	const struct tensor_norm_options *o;
	int64_t channels;
	bool affine, stats;
};

static const struct layer_type batch_type = {
	.op = "module_batch_norm",
	.d = { "eps", "momentum" },
	.i = { "channels", "affine", "stats", "cumulative" },
};
static const struct layer_type instance_type = {
	.op = "module_instance_norm",
	.d = { "eps", "momentum" },
	.i = { "channels", "affine", "stats" },
};

/* The variance of one value is no estimate: it would make the running statistics NaN. */
static int check_values(const struct channel_norm *n, const tensor *x, bool batch)
{
	int64_t values = batch ? tensor_size(x, 0) : 1;

	for (int d = 2; d < tensor_dim(x); d++)
		values *= tensor_size(x, d);
	return values != 1 ?
		       0 :
		       tensor_fail(EINVAL,
				   "%s: training needs more than one value for each channel%s, got "
				   "x %s",
				   n->key.type->op, batch ? "" : " of a sample", SHAPE_STR(x));
}

static tensor *channel_norm(struct channel_norm *n, tensor_module *m, const char *name, tensor *x)
{
	const bool batch = n->key.type == &batch_type;
	double momentum = n->key.d[1];
	tensor_module *layer = layer_module(m, name, &n->key);
	struct statistics s;
	struct affine a;
	bool own;

	if (!layer ||
	    affine_parameters(layer, &n->key, (tensor_ints){ &n->channels, 1 }, n->affine,
			      n->affine, &a) < 0 ||
	    statistics_buffers(layer, &n->key, n->channels, n->stats, &s) < 0 ||
	    layer_made(layer, &n->key) < 0)
		return NULL;
	own = layer->training || !n->stats;
	if (own && check_values(n, x, batch) < 0)
		return NULL;
	if (!tensor_numel(x) && own) /* no values: the statistics stay as they are */
		s.mean = s.var = tensor_none;
	if (batch && n->stats && layer->training &&
	    count_batch(&s, n->o->cumulative, &momentum) < 0)
		return NULL;
	return (batch ? tensor_batch_norm : tensor_instance_norm)(
		x, a.weight, a.bias, s.mean, s.var, own, momentum, n->key.d[0], true);
}

static tensor *channel_norm_layer(struct channel_norm *n, const struct layer_type *type,
				  tensor_module *m, const char *name, tensor *x, int channel)
{
	struct tensor_scope_guard scope;

	if (!isfinite(n->o->momentum))
		return tensor_fail_null(EINVAL, "%s: momentum is %g", type->op, n->o->momentum);
	n->channels = tensor_size(x, channel);
	n->key = (struct layer_key){
		.type = type,
		.d = { eps_of(n->o), n->o->momentum != 0 ? n->o->momentum : 0.1 },
		.i = { n->channels, n->affine, n->stats, type == &batch_type && n->o->cumulative },
	};
	scope = tensor_scope_enter();
	return layer_leave(&scope, channel_norm(n, m, name, x));
}

TENSOR_EXPORT tensor *tensor_module_batch_norm_opt(tensor_module *m, const char *name, tensor *x,
						   struct tensor_norm_options o)
{
	struct channel_norm n = { .o = &o, .affine = !o.no_affine, .stats = !o.no_stats };

	if (layer_absent("module_batch_norm", m, x))
		return NULL;
	if (tensor_dim(x) < 2)
		return tensor_fail_null(EINVAL, "module_batch_norm: x must be [n, c, ...], got %s",
					SHAPE_STR(x));
	return channel_norm_layer(&n, &batch_type, m, name, x, 1);
}

TENSOR_EXPORT tensor *tensor_module_instance_norm_opt(tensor_module *m, const char *name, tensor *x,
						      struct tensor_norm_options o)
{
	struct channel_norm n = { .o = &o, .affine = o.affine, .stats = o.stats };

	if (layer_absent("module_instance_norm", m, x))
		return NULL;
	if (tensor_dim(x) < 3)
		return tensor_fail_null(EINVAL,
					"module_instance_norm: x must be [n, c, *, ...], got %s",
					SHAPE_STR(x));
	return channel_norm_layer(&n, &instance_type, m, name, x, 1);
}

/* ---- norms over the last dimensions ---- */

#define LAST_SIZES                                                                               \
	{                                                                                        \
		"dims", "weight", "bias", "size[0]", "size[1]", "size[2]", "size[3]", "size[4]", \
			"size[5]", "size[6]", "size[7]", "size[8]", "size[9]", "size[10]",       \
			"size[11]", "size[12]", "size[13]", "size[14]", "size[15]"               \
	}
static const struct layer_type layer_norm_type = { .op = "module_layer_norm",
						   .d = { "eps" },
						   .i = LAST_SIZES };
static const struct layer_type rms_norm_type = { .op = "module_rms_norm",
						 .d = { "eps" },
						 .i = LAST_SIZES };

static tensor *last_norm(struct layer_key *key, tensor_module *m, const char *name, tensor *x)
{
	tensor_ints sizes = { key->i + 3, key->i[0] };
	tensor_module *layer = layer_module(m, name, key);
	struct affine a;

	if (!layer || affine_parameters(layer, key, sizes, key->i[1], key->i[2], &a) < 0 ||
	    layer_made(layer, key) < 0)
		return NULL;
	if (key->type == &rms_norm_type)
		return tensor_rms_norm(x, sizes, a.weight, key->d[0]);
	return tensor_layer_norm(x, sizes, a.weight, a.bias, key->d[0], true);
}

static tensor *last_norm_layer(const struct layer_type *type, tensor_module *m, const char *name,
			       tensor *x, const struct tensor_norm_options *o)
{
	const bool rms = type == &rms_norm_type;
	struct layer_key key = { .type = type };
	struct tensor_scope_guard scope;

	if (layer_absent(type->op, m, x))
		return NULL;
	key.i[0] = o->dims ? o->dims : 1;
	key.i[1] = !o->no_affine;
	key.i[2] = !rms && !o->no_affine && !o->no_bias;
	key.d[0] = rms && o->eps == 0 ? TENSOR_NO_FLOAT : eps_of(o);
	if (key.i[0] < 1 || key.i[0] > tensor_dim(x))
		return tensor_fail_null(EINVAL, "%s: x has %d dimensions, .dims is %lld", type->op,
					tensor_dim(x), (long long)key.i[0]);
	for (int64_t k = 0; k < key.i[0]; k++)
		key.i[3 + k] = tensor_size(x, (int)(k - key.i[0]));
	scope = tensor_scope_enter();
	return layer_leave(&scope, last_norm(&key, m, name, x));
}

TENSOR_EXPORT tensor *tensor_module_layer_norm_opt(tensor_module *m, const char *name, tensor *x,
						   struct tensor_norm_options o)
{
	return last_norm_layer(&layer_norm_type, m, name, x, &o);
}

TENSOR_EXPORT tensor *tensor_module_rms_norm_opt(tensor_module *m, const char *name, tensor *x,
						 struct tensor_norm_options o)
{
	return last_norm_layer(&rms_norm_type, m, name, x, &o);
}

/* ---- group norm ---- */

static const struct layer_type group_type = { .op = "module_group_norm",
					      .d = { "eps" },
					      .i = { "channels", "groups", "affine" } };

static tensor *group_norm(struct layer_key *key, tensor_module *m, const char *name, tensor *x)
{
	tensor_module *layer = layer_module(m, name, key);
	struct affine a;

	if (!layer ||
	    affine_parameters(layer, key, (tensor_ints){ key->i, 1 }, key->i[2], key->i[2], &a) <
		    0 ||
	    layer_made(layer, key) < 0)
		return NULL;
	return tensor_group_norm(x, key->i[1], a.weight, a.bias, key->d[0], true);
}

TENSOR_EXPORT tensor *tensor_module_group_norm_opt(tensor_module *m, const char *name, tensor *x,
						   int64_t groups, struct tensor_norm_options o)
{
	struct layer_key key = { .type = &group_type };
	struct tensor_scope_guard scope;

	if (layer_absent(group_type.op, m, x))
		return NULL;
	if (tensor_dim(x) < 2)
		return tensor_fail_null(EINVAL, "module_group_norm: x must be [n, c, ...], got %s",
					SHAPE_STR(x));
	key.d[0] = eps_of(&o);
	key.i[0] = tensor_size(x, 1);
	key.i[1] = groups;
	key.i[2] = !o.no_affine;
	if (groups < 1 || key.i[0] % groups)
		return tensor_fail_null(EINVAL, "module_group_norm: %lld channels in %lld groups",
					(long long)key.i[0], (long long)groups);
	scope = tensor_scope_enter();
	return layer_leave(&scope, group_norm(&key, m, name, x));
}
