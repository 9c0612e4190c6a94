// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Parameters and buffers of a module: made at the first use of a name, found by later ones. */
#include "train/module/entry.h"

#include "autograd/graph/callback.h"

#include <tensor/autograd.h>
#include <tensor/ops.h>

/* ---- a new tensor ---- */

static bool same_sizes(const tensor *t, tensor_ints sizes)
{
	return t->ndim == sizes.len &&
	       (!sizes.len || !memcmp(t->sizes, sizes.data, (size_t)sizes.len * sizeof(int64_t)));
}

static tensor *initialised(tensor *t, const struct new_entry *e, const char *op)
{
	struct callback before;
	int err;

	if (!t || !e->init)
		return t ? tensor_zero_(t) : NULL;
	before = callback_begin();
	err = e->init(t, e->ctx) ? 0 : -EINVAL;
	if (callback_end(&before, err, "%s: the initialiser failed", op) < 0)
		return NULL;
	if (!same_sizes(t, e->sizes))
		return tensor_fail_null(EINVAL, "%s: the initialiser changed the sizes to %s", op,
					SHAPE_STR(t));
	return t;
}

/* The same in all modes of the caller. Owned. */
static tensor *entry_new(const struct new_entry *e, tensor_options options, const char *op)
{
	struct thread_modes before = thread_enter_plain();
	struct tensor_scope_guard scope = tensor_scope_enter();
	tensor *t = initialised(tensor_empty(e->sizes, options), e, op);

	t = scope_leave_with(&scope, t);
	thread()->modes = before;
	return t;
}

/* ---- a tensor that was loaded before ---- */

int entry_check_sizes(const char *op, const struct module_node *node, const tensor *t,
		      tensor_ints sizes, const char *which)
{
	char text[SHAPE_TEXT];

	if (same_sizes(t, sizes))
		return 0;
	return tensor_fail(EINVAL, "%s: '%s' must be %s, %s has %s", op, NODE_PATH(node),
			   format_sizes(sizes.data, (int)sizes.len, text, sizeof(text)), which,
			   SHAPE_STR(t));
}

/* The tensor that a file had for the node as the tree's dtype and device need it. Owned. */
static tensor *entry_loaded(const struct module_node *node, tensor *file, const struct new_entry *e,
			    tensor_options options, const char *op)
{
	struct thread_modes before = thread_enter_plain();
	struct tensor_scope_guard scope = tensor_scope_enter();
	tensor *t = NULL;

	if (entry_check_sizes(op, node, file, e->sizes, "the file") == 0) {
		if (file->dtype != options.dtype && !node->cast)
			tensor_fail(EINVAL, "%s: '%s' must be %s, the file has %s", op,
				    NODE_PATH(node), tensor_dtype_name(options.dtype),
				    tensor_dtype_name(file->dtype));
		else
			t = tensor_to_opt(file, options, false, options.shareable);
	}
	t = scope_leave_with(&scope, t);
	thread()->modes = before;
	return t;
}

/*
 * Sets *file to what a file had for a vacant node, NULL if nothing. Owned, and of this thread alone, because
 * others may use the same tensor of the file.
 */
static int file_tensor(struct module_node *node, tensor **file)
{
	struct module_tree *tree = node->parent->tree;
	struct thread_modes before = thread_enter_plain();
	bool found;

	pthread_mutex_lock(&tree->lock);
	found = node_kind(node) == NODE_VACANT && node->t;
	*file = found ? tensor_new_detached(node->t) : NULL;
	pthread_mutex_unlock(&tree->lock);
	thread()->modes = before;
	return found && !*file ? -ENOMEM : 0;
}

/* ---- names ---- */

static const char *const kind_text[] = { "not set", "a child", "a parameter", "a buffer" };

static tensor *existing(struct module_node *node, const struct new_entry *e, const char *op)
{
	tensor *t = node_tensor(node);

	if (node_kind(node) != e->kind)
		return tensor_fail_null(EEXIST, "%s: '%s' is %s", op, NODE_PATH(node),
					kind_text[node_kind(node)]);
	return entry_check_sizes(op, node, t, e->sizes, "the module") < 0 ? NULL : t;
}

/* Gives t to the node, unless another thread was faster. Consumes t. */
static void publish(struct module_node *node, tensor *t, enum node_kind kind)
{
	struct module_tree *tree = node->parent->tree;

	pthread_mutex_lock(&tree->lock);
	if (node_kind(node) == NODE_VACANT) {
		tensor *file = node->t;

		node->t = t;
		t = file;
		atomic_store_explicit(&node->kind, kind, memory_order_release);
	}
	pthread_mutex_unlock(&tree->lock);
	tensor_put(t);
}

tensor *module_entry(tensor_module *m, const char *op, const char *path, const struct new_entry *e)
{
	struct module_node *node = module_node_at(m, op, path);
	tensor_options options;
	tensor *t, *file;
	bool trained;

	if (!node)
		return NULL;
	module_place(node);
	if (node_kind(node) != NODE_VACANT)
		return existing(node, e, op);
	options = m->tree->options;
	options.dtype = e->dtype ? e->dtype : options.dtype;
	trained = e->kind == NODE_PARAMETER && !node->parent->frozen;
	if (file_tensor(node, &file) < 0)
		return NULL;
	t = file ? entry_loaded(node, file, e, options, op) : entry_new(e, options, op);
	tensor_put(file);
	if (!t || (trained && tensor_set_requires_grad(t, true) < 0)) {
		tensor_put(t);
		return NULL;
	}
	publish(node, t, e->kind);
	return existing(node, e, op);
}

static tensor *public_entry(tensor_module *m, const char *op, const char *path,
			    const struct new_entry *e)
{
	if (!m)
		return null_argument(op);
	if (e->sizes.len < 0 || e->sizes.len > TENSOR_MAX_DIMS || (e->sizes.len && !e->sizes.data))
		return tensor_fail_null(EINVAL, "%s: there are 0 to %d sizes, got %lld", op,
					TENSOR_MAX_DIMS, (long long)e->sizes.len);
	return module_entry(m, op, path, e);
}

TENSOR_EXPORT tensor *tensor_module_parameter(tensor_module *m, const char *path, tensor_ints sizes,
					      tensor_init_fn init, void *ctx)
{
	struct new_entry e = { .kind = NODE_PARAMETER, .sizes = sizes, .init = init, .ctx = ctx };

	return public_entry(m, "module_parameter", path, &e);
}

TENSOR_EXPORT tensor *tensor_module_buffer(tensor_module *m, const char *path, tensor_ints sizes,
					   enum tensor_dtype dtype, tensor_init_fn init, void *ctx)
{
	struct new_entry e = {
		.kind = NODE_BUFFER, .sizes = sizes, .dtype = dtype, .init = init, .ctx = ctx
	};

	return public_entry(m, "module_buffer", path, &e);
}

TENSOR_EXPORT tensor *tensor_module_get(const tensor_module *m, const char *path)
{
	const struct module_node *node;

	if (!m)
		return null_argument("module_get");
	if (!path)
		return tensor_fail_null(EINVAL, "module_get: the name is NULL");
	node = module_node_find(m, path);
	if (!node || !node_has_tensor(node))
		return tensor_fail_null(ENOENT, "module_get: there is no parameter or buffer %s",
					QUOTED(path));
	return node_tensor(node);
}

TENSOR_EXPORT int tensor_module_tie(tensor_module *m, const char *path, const char *from)
{
	struct module_node *source, *node;
	int err = 0;

	if (!m)
		return null_argument_code("module_tie");
	source = from ? module_node_find(m, from) : NULL;
	if (!source || node_kind(source) != NODE_PARAMETER)
		return tensor_fail(ENOENT, "module_tie: there is no parameter %s", QUOTED(from));
	node = module_node_at(m, "module_tie", path);
	if (!node)
		return -thread()->error.code;
	module_place(node);
	pthread_mutex_lock(&m->tree->lock);
	if (node_kind(node) == NODE_VACANT) {
		/* A value of a file has been used: it is that of the other name. */
		tensor_put(node->t);
		node->t = NULL;
		node->loaded |= source->loaded;
		node->tied = source->tied ? source->tied : source;
		atomic_store_explicit(&node->kind, NODE_PARAMETER, memory_order_release);
	} else {
		err = -EEXIST;
	}
	pthread_mutex_unlock(&m->tree->lock);
	return err ? tensor_fail(EEXIST, "module_tie: '%s' is %s", NODE_PATH(node),
				 kind_text[node_kind(node)]) :
		     0;
}
