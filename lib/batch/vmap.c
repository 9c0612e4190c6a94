// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tensor_vmap(): one call of a function on batched tensors for each chunk of samples. */
#include "batch/batch.h"

#include "autograd/graph/callback.h"
#include "autograd/graph/dual.h"
#include "core/scope.h"

#include "family/cat.h"
#include "family/shape.h"
#include "family/view.h"

#include <stdlib.h>

struct vmap {
	tensor_graph_fn fn;
	void *ctx;
	tensor_list inputs;
	const int64_t *in_dims, *out_dims;
	int noutputs;
	int64_t size; /* samples of all chunks */
	enum tensor_vmap_randomness randomness;
};

/* ---- arguments ---- */

/* The batch dimension of input i, -1 for none; -errno below that. */
static int in_dim(const struct vmap *v, int64_t i)
{
	int64_t dim = v->in_dims ? v->in_dims[i] : 0;
	const tensor *t = v->inputs.data[i];

	if (dim == TENSOR_NONE || t == tensor_none)
		return -1;
	if (!t->ndim || dim < -t->ndim || dim >= t->ndim)
		return tensor_fail(EINVAL, "vmap: input %lld %s has no dimension %lld",
				   (long long)i, SHAPE_STR(t), (long long)dim),
		       -2;
	return (int)(dim < 0 ? dim + t->ndim : dim);
}

static int check_input(struct vmap *v, int64_t i)
{
	const tensor *t = v->inputs.data[i];
	int dim;

	if (!tensor_given(t))
		return null_argument_code("vmap");
	dim = in_dim(v, i);
	if (dim < -1)
		return -thread()->error.code;
	if (dim < 0)
		return 0;
	if (t->ext && !is_batched(t))
		return tensor_fail(EOPNOTSUPP, "vmap: input %lld must be strided, got a %s tensor",
				   (long long)i, tensor_layout_name(t->layout));
	if (v->size >= 0 && t->sizes[dim] != v->size)
		return tensor_fail(EINVAL, "vmap: input %lld has %lld samples, others have %lld",
				   (long long)i, (long long)t->sizes[dim], (long long)v->size);
	v->size = t->sizes[dim];
	return 0;
}

static int check_inputs(struct vmap *v)
{
	int err = 0;

	v->size = -1;
	for (int64_t i = 0; i < v->inputs.len && !err; i++)
		err = check_input(v, i);
	if (!err && v->size < 0)
		err = tensor_fail(EINVAL, "vmap: no input has a batch dimension");
	if (!err && !v->size)
		err = tensor_fail(EINVAL, "vmap: the batch has no samples");
	return err;
}

static int check_call(const struct vmap *v, tensor **outputs,
		      const struct tensor_vmap_options *options)
{
	if (!v->fn || v->noutputs < 1 || !outputs || v->inputs.len < 1 ||
	    v->inputs.len > INT32_MAX || !v->inputs.data)
		return tensor_fail(EINVAL, "vmap: a function, inputs and outputs must be given");
	if (options &&
	    (options->chunk_size < 0 || (unsigned)options->randomness > TENSOR_VMAP_RANDOM_SAME))
		return tensor_fail(EINVAL, "vmap: chunk size %lld, randomness %d",
				   (long long)options->chunk_size, (int)options->randomness);
	return 0;
}

/* ---- one chunk ---- */

/* Sets batched[] to the inputs of the samples first .. first + level->size - 1; in the open scope. */
static int batch_inputs(const struct vmap *v, struct batch_level *level, int64_t first,
			tensor **batched)
{
	for (int64_t i = 0; i < v->inputs.len; i++) {
		tensor *t = v->inputs.data[i];
		int dim = in_dim(v, i);

		batched[i] = t;
		if (dim < 0)
			continue;
		if (level->size != v->size)
			t = tensor_narrow(t, dim, first, level->size);
		t = dim ? tensor_movedim_int(t, dim, 0) : t;
		batched[i] = t ? scope_own(thread(), batched_new(level, tensor_get(t))) : NULL;
		if (!batched[i])
			return -thread()->error.code;
	}
	return 0;
}

/* The physical tensor of an output, repeated if it does not depend on the samples; in the open scope. */
static tensor *physical_output(const struct batch_level *level, int i, tensor *t)
{
	int64_t sizes[TENSOR_MAX_DIMS];

	if (!t || t == tensor_none)
		return tensor_fail_null(EINVAL, "vmap: the function did not set output %d", i);
	if (is_batched(t) && batched_of(t)->level == level)
		return batched_of(t)->physical;
	if (t->ndim == TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "vmap: output %d has no place for the batch", i);
	sizes[0] = level->size;
	for (int k = 0; k < t->ndim; k++)
		sizes[k + 1] = t->sizes[k];
	return tensor_expand(t, (tensor_ints){ sizes, t->ndim + 1 });
}

tensor *batch_output(const struct batch_level *level, int i, tensor *t)
{
	tensor *p = physical_output(level, i, t), *tangent = p ? tangent_of(t) : NULL;

	/* A tangent that the samples got inside is not one of the physical tensor. */
	if (!tangent || tangent_of(p))
		return p;
	tangent = physical_output(level, i, tangent);
	return tangent ? tensor_make_dual(p, tangent) : NULL;
}

static int take_outputs(const struct batch_level *level, tensor **outputs, int n)
{
	int i = 0;

	for (; i < n; i++) {
		tensor *t = batch_output(level, i, outputs[i]);

		if (!t)
			break;
		outputs[i] = tensor_get(t);
	}
	if (i == n)
		return 0;
	while (i--)
		tensor_put(outputs[i]);
	return -thread()->error.code;
}

/* Calls the function; outputs are physical and owned. */
static int call_level(const struct vmap *v, struct batch_level *level, tensor **batched,
		      tensor **outputs)
{
	struct callback before = callback_begin();
	struct tensor_thread *th = thread();
	int err;

	th->modes.include |= BATCHED_BIT;
	th->modes.batch_level = level;
	for (int i = 0; i < v->noutputs; i++)
		outputs[i] = NULL;
	err = v->fn(batched, (int)v->inputs.len, outputs, v->noutputs, v->ctx);
	err = callback_end(&before, err, "vmap: the function failed");
	return err ?: take_outputs(level, outputs, v->noutputs);
}

/* The outputs of the samples from `first`, owned. */
static int run_chunk(const struct vmap *v, int64_t first, int64_t n, tensor **outputs)
{
	struct batch_level *level = batch_level_new(thread()->modes.batch_level, n, v->randomness);
	struct tensor_scope_guard scope = tensor_scope_enter();
	tensor **batched = malloc(v->inputs.len * sizeof(*batched));
	int err = level && batched ? batch_inputs(v, level, first, batched) :
				     tensor_fail(ENOMEM, "vmap: no memory");

	if (!err)
		err = call_level(v, level, batched, outputs);
	free(batched);
	scope_leave(&scope);
	if (level)
		atomic_store_explicit(&level->ended, true, memory_order_release);
	batch_level_put(level);
	return err;
}

/* ---- all chunks ---- */

/* Joins output i of all chunks and puts its batch dimension in place; owned. */
static tensor *join_output(const struct vmap *v, tensor **parts, int64_t nparts, int i,
			   tensor **list)
{
	struct tensor_scope_guard scope = tensor_scope_enter();
	int64_t dim = v->out_dims ? v->out_dims[i] : 0;
	tensor *t;

	for (int64_t k = 0; k < nparts; k++)
		list[k] = parts[k * v->noutputs + i];
	t = nparts == 1 ? list[0] : tensor_cat((tensor_list){ list, nparts }, 0);
	if (t && dim)
		t = tensor_movedim_int(t, 0, dim);
	return scope_leave_with(&scope, t);
}

static int join_outputs(const struct vmap *v, tensor **parts, int64_t nparts, tensor **outputs)
{
	tensor **list = parts + nparts * v->noutputs;

	for (int i = 0; i < v->noutputs; i++) {
		outputs[i] = join_output(v, parts, nparts, i, list);
		if (outputs[i])
			continue;
		while (i--) {
			tensor_put(outputs[i]);
			outputs[i] = NULL;
		}
		return -thread()->error.code;
	}
	return 0;
}

static int run_chunks(const struct vmap *v, int64_t chunk, tensor **outputs)
{
	int64_t nparts = (v->size + chunk - 1) / chunk, done = 0;
	tensor **parts = calloc(nparts * (v->noutputs + 1), sizeof(*parts));
	int err = parts ? 0 : tensor_fail(ENOMEM, "vmap: no memory");

	for (; done < nparts && !err; done++) {
		int64_t first = done * chunk, left = v->size - first;

		err = run_chunk(v, first, left < chunk ? left : chunk, parts + done * v->noutputs);
	}
	if (!err)
		err = join_outputs(v, parts, nparts, outputs);
	else
		done--; /* the chunk that failed has no outputs */
	for (int64_t i = 0; parts && i < done * v->noutputs; i++)
		tensor_put(parts[i]);
	free(parts);
	return err;
}

TENSOR_EXPORT int tensor_vmap(tensor_graph_fn fn, void *ctx, tensor_list inputs,
			      const int64_t *in_dims, tensor **outputs, int noutputs,
			      const int64_t *out_dims, const struct tensor_vmap_options *options)
{
	struct vmap v = { .fn = fn,
			  .ctx = ctx,
			  .inputs = inputs,
			  .in_dims = in_dims,
			  .out_dims = out_dims,
			  .noutputs = noutputs,
			  .randomness = options ? options->randomness : 0 };
	int64_t chunk = options ? options->chunk_size : 0;
	int err = check_call(&v, outputs, options);

	if (err)
		return err;
	for (int i = 0; i < noutputs; i++)
		outputs[i] = NULL;
	err = check_inputs(&v);
	if (!err)
		err = run_chunks(&v, chunk && chunk < v.size ? chunk : v.size, outputs);
	return err ?: scope_own_list(outputs, noutputs);
}

TENSOR_EXPORT bool tensor_is_batched(const tensor *t)
{
	return tensor_given(t) && is_batched(t);
}
