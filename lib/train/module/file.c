// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A module's state in safetensors. Loading checks the whole file before it changes anything: each
 * tensor of the file is connected with its node first.
 */
#include "train/module/list.h"
#include "train/optim/optim.h"

#include <stdlib.h>
#include <tensor/autograd.h>
#include <tensor/ops.h>

TENSOR_EXPORT int tensor_module_save(tensor_module *m, const char *path)
{
	const struct tensor_named *named;
	int64_t n =
		tensor_module_named(m, TENSOR_MODULE_PARAMETERS | TENSOR_MODULE_BUFFERS, &named);

	return n < 0 ? (int)n : tensor_save_safetensors(path, named, n, NULL, 0);
}

TENSOR_EXPORT int tensor_training_save(tensor_module *m, tensor_optim *o, const char *path)
{
	struct optim_file f = { .caller = "training_save", .path = path, .with_module = true };

	f.nmodule =
		tensor_module_named(m, TENSOR_MODULE_PARAMETERS | TENSOR_MODULE_BUFFERS, &f.module);
	return f.nmodule < 0 ? (int)f.nmodule : optim_save(o, &f);
}

/* ---- loading ---- */

/* A file that is being loaded: for each tensor of the module, owned, its name and its node. */
struct state_file {
	int64_t n;
	tensor **t;
	const char **name; /* borrowed */
	struct module_node **node;
	unsigned flags;
};

/* Not as tensors of inference mode, which could not become parameters. */
static int read_tensors(struct state_file *f, tensor_archive *archive)
{
	struct tensor_grad_guard mode = tensor_inference_enter(false);
	struct tensor_scope_guard scope = tensor_scope_enter();

	int err = 0;

	for (int64_t i = 0; i < tensor_archive_count(archive) && !err; i++) {
		const char *name = tensor_archive_name(archive, i);
		tensor *t;

		if (!strncmp(name, OPTIM_PREFIX, strlen(OPTIM_PREFIX)))
			continue;
		t = tensor_archive_at(archive, i);
		if (t) {
			f->name[f->n] = name;
			f->t[f->n++] = tensor_get(t);
		} else
			err = -thread()->error.code;
	}
	tensor_scope_leave(&scope);
	tensor_grad_leave(&mode);
	return err;
}

static int check_fits(const struct state_file *f, const struct module_node *node, const tensor *t)
{
	const tensor *into = node_tensor(node);

	if (node_kind(node) == NODE_MODULE)
		return tensor_fail(EINVAL, "module_load: '%s' is a child, the file has a tensor",
				   NODE_PATH(node));
	if (!node_has_tensor(node))
		return 0;
	if (!sizes_equal(into, t))
		return tensor_fail(EINVAL, "module_load: '%s' is %s, the file has %s",
				   NODE_PATH(node), SHAPE_STR(into), SHAPE_STR(t));
	if (into->dtype != t->dtype && !(f->flags & TENSOR_LOAD_CAST))
		return tensor_fail(EINVAL, "module_load: '%s' is %s, the file has %s",
				   NODE_PATH(node), tensor_dtype_name(into->dtype),
				   tensor_dtype_name(t->dtype));
	if (!tensor_is_writable(into))
		return tensor_fail(EACCES, "module_load: '%s' is read-only", NODE_PATH(node));
	return 0;
}

/* In an order in which "a.b" follows "a", without other names between them. */
static int by_path(const void *x, const void *y)
{
	const unsigned char *a = *(const unsigned char *const *)x,
			    *b = *(const unsigned char *const *)y;

	for (; *a == *b && *a; a++, b++)
		;
	return (*a == '.' ? 1 : *a + (*a != 0)) - (*b == '.' ? 1 : *b + (*b != 0));
}

/* A name of the file that is a module of another name. */
static int check_nested(const struct state_file *f)
{
	const char **names = calloc((size_t)f->n + 1, sizeof(*names));
	int err = names ? 0 : tensor_fail(ENOMEM, "module_load: no memory");

	for (int64_t i = 0; i < f->n && !err; i++)
		names[i] = f->name[i];
	if (!err && f->n)
		qsort(names, (size_t)f->n, sizeof(*names), by_path);
	for (int64_t i = 1; i < f->n && !err; i++) {
		size_t n = strlen(names[i - 1]);

		if (!strncmp(names[i - 1], names[i], n) && names[i][n] == '.')
			err = tensor_fail(EINVAL,
					  "module_load: %s is a child, the file has a tensor",
					  QUOTED(names[i - 1]));
	}
	free(names);
	return err;
}

/* Checks all names, shapes and dtypes. Changes nothing. */
static int check_file(const tensor_module *m, const struct state_file *f)
{
	int err = check_nested(f);

	for (int64_t i = 0; i < f->n && !err; i++) {
		const char *name = f->name[i];
		const struct module_node *node = module_node_find(m, name);

		if (f->flags & TENSOR_LOAD_STRICT && (!node || node_kind(node) == NODE_VACANT))
			return tensor_fail(ENOENT, "module_load: the module has no %s of the file",
					   QUOTED(name));
		err = node ? check_fits(f, node, f->t[i]) :
			     module_check_new(m, "module_load", name);
	}
	return err;
}

/* Finds or makes the nodes, so that nothing needs memory later. */
static int connect_nodes(tensor_module *m, struct state_file *f)
{
	for (int64_t i = 0; i < f->n; i++) {
		f->node[i] = module_node_at(m, "module_load", f->name[i]);
		if (!f->node[i])
			return -thread()->error.code;
	}
	return 0;
}

/* ---- which names were in the file ---- */

static int by_address(const void *x, const void *y)
{
	uintptr_t a = (uintptr_t) * (struct module_node *const *)x,
		  b = (uintptr_t) * (struct module_node *const *)y;

	return (a > b) - (a < b);
}

/* The name of a tied parameter is in the file if one of its names is: both nodes have one tensor. */
static const struct module_node *owner_of(const struct module_node *node)
{
	return node->tied ? node->tied : node;
}

static bool contains(struct module_node *const *owners, int64_t n, const struct module_node *node)
{
	return n && bsearch(&node, owners, (size_t)n, sizeof(*owners), by_address);
}

/* owners has the nodes with the tensors of the file, sorted. */
static int check_complete(tensor_module *m, struct module_node *const *owners, int64_t n)
{
	struct module_node *node = NULL;

	while ((node = module_next_node(m, node)))
		if (node_has_tensor(node) && !contains(owners, n, owner_of(node)))
			return tensor_fail(ENOENT, "module_load: the file has no '%s'",
					   NODE_PATH(node));
	return 0;
}

static void mark(const struct state_file *f, tensor_module *m, struct module_node *const *owners)
{
	struct module_node *node = NULL;

	while ((node = module_next_node(m, node)))
		node->loaded |= contains(owners, f->n, owner_of(node));
}

static int store(struct state_file *f, tensor_module *m, struct module_node *const *owners)
{
	struct tensor_grad_guard grad = tensor_grad_enter(false);
	bool done = true;

	for (int64_t i = 0; i < f->n && done; i++)
		if (node_has_tensor(f->node[i]))
			done = tensor_copy_(node_tensor(f->node[i]), f->t[i]);
	tensor_grad_leave(&grad);
	if (!done)
		return -thread()->error.code;
	mark(f, m, owners);
	for (int64_t i = 0; i < f->n; i++)
		if (!node_has_tensor(f->node[i])) {
			tensor *before = f->node[i]->t; /* of another file */

			f->node[i]->cast = f->flags & TENSOR_LOAD_CAST;
			f->node[i]->t = f->t[i];
			f->t[i] = before;
		}
	return 0;
}

static int load_from(tensor_module *m, tensor_archive *archive, unsigned flags)
{
	const size_t n = (size_t)tensor_archive_count(archive) + 1;
	struct state_file f = { .flags = flags };
	struct module_node **owners = calloc(n, sizeof(*owners));
	int err;

	f.t = calloc(n, sizeof(*f.t));
	f.node = calloc(n, sizeof(*f.node));
	f.name = calloc(n, sizeof(*f.name));
	if (!owners || !f.t || !f.node || !f.name)
		err = tensor_fail(ENOMEM, "module_load: no memory");
	else
		err = read_tensors(&f, archive);
	if (!err)
		err = check_file(m, &f);
	if (!err)
		err = connect_nodes(m, &f);
	for (int64_t i = 0; i < f.n && !err; i++)
		owners[i] = (struct module_node *)owner_of(f.node[i]);
	if (!err && f.n)
		qsort(owners, (size_t)f.n, sizeof(*owners), by_address);
	if (!err && flags & TENSOR_LOAD_STRICT)
		err = check_complete(m, owners, f.n);
	if (!err)
		err = store(&f, m, owners);
	for (int64_t i = 0; f.t && i < f.n; i++)
		tensor_put(f.t[i]);
	free(f.t);
	free(f.node);
	free(f.name);
	free(owners);
	return err;
}

TENSOR_EXPORT int tensor_module_load(tensor_module *m, const char *path, unsigned flags)
{
	tensor_archive *archive;
	int err;

	if (!m)
		return null_argument_code("module_load");
	if (flags & ~(TENSOR_LOAD_STRICT | TENSOR_LOAD_CAST))
		return tensor_fail(EINVAL, "module_load: 0x%x is no set of flags", flags);
	archive = tensor_open_safetensors(path, NULL);
	if (!archive)
		return -thread()->error.code;
	err = load_from(m, archive, flags);
	tensor_archive_close(archive);
	return err;
}

/* ---- what was not in both ---- */

static int64_t names(tensor_module *m, enum module_list list, const char *op,
		     const struct tensor_named **named)
{
	if (named)
		*named = NULL;
	if (!m)
		return null_argument_code(op);
	if (!named)
		return tensor_fail(EINVAL, "%s: the place for the list is NULL", op);
	return module_list(m, op, list, named, NULL);
}

TENSOR_EXPORT int64_t tensor_module_unexpected(tensor_module *m, const struct tensor_named **named)
{
	return names(m, LIST_UNEXPECTED, "module_unexpected", named);
}

TENSOR_EXPORT int64_t tensor_module_missing(tensor_module *m, const struct tensor_named **named)
{
	return names(m, LIST_MISSING, "module_missing", named);
}

TENSOR_EXPORT int tensor_module_check_loaded(tensor_module *m)
{
	const struct tensor_named *unexpected, *missing;
	int64_t more, fewer;

	if (!m)
		return null_argument_code("module_check_loaded");
	more = module_list(m, "module_check_loaded", LIST_UNEXPECTED, &unexpected, NULL);
	fewer = module_list(m, "module_check_loaded", LIST_MISSING, &missing, NULL);
	if (more < 0 || fewer < 0)
		return -ENOMEM;
	if (!more && !fewer)
		return 0;
	return tensor_fail(ENOENT,
			   "module_check_loaded: %lld names of the file were not used (%.100s%s), "
			   "%lld names were not in it (%.100s%s)",
			   (long long)more, more ? unexpected->name : "", more > 1 ? ", ..." : "",
			   (long long)fewer, fewer ? missing->name : "", fewer > 1 ? ", ..." : "");
}
