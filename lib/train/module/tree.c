// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The tree of a module: nodes by name, children, and the order of modules. */
#include "train/module/tree.h"

#include "base/text.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 16 };

/* ---- hash table of nodes ---- */

static size_t hash(const tensor_module *m, const char *name, size_t n)
{
	uint64_t h = 14695981039346656037u ^ ((uintptr_t)m >> 4);

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)name[i]) * 1099511628211u;
	return (size_t)(h ^ h >> 29);
}

static struct node_table *table_new(size_t slots, struct node_table *before)
{
	struct node_table *t = calloc(1, sizeof(*t) + slots * sizeof(t->slot[0]));

	if (t) {
		t->mask = slots - 1;
		t->before = before;
	}
	return t;
}

static struct module_node *table_find(const struct module_tree *tree, const tensor_module *m,
				      const char *name, size_t n)
{
	struct node_table *t = atomic_load_explicit(&tree->table, memory_order_acquire);
	struct module_node *node;

	for (size_t i = hash(m, name, n);; i++) {
		node = atomic_load_explicit(&t->slot[i & t->mask], memory_order_acquire);
		if (!node || (node->parent == m && !strncmp(node->name, name, n) && !node->name[n]))
			return node;
	}
}

static void table_put(struct node_table *t, struct module_node *node)
{
	size_t i = hash(node->parent, node->name, strlen(node->name));

	while (atomic_load_explicit(&t->slot[i & t->mask], memory_order_relaxed))
		i++;
	atomic_store_explicit(&t->slot[i & t->mask], node, memory_order_release);
	t->used++;
}

/* Space for another node: at most half of the slots are used. */
static int table_reserve(struct module_tree *tree)
{
	struct node_table *t = atomic_load_explicit(&tree->table, memory_order_relaxed), *larger;

	if (t->used < (t->mask + 1) / 2)
		return 0;
	larger = table_new(2 * (t->mask + 1), t);
	if (!larger)
		return -ENOMEM;
	for (size_t i = 0; i <= t->mask; i++) {
		struct module_node *node = atomic_load_explicit(&t->slot[i], memory_order_relaxed);

		if (node)
			table_put(larger, node);
	}
	atomic_store_explicit(&tree->table, larger, memory_order_release);
	return 0;
}

/* ---- nodes ---- */

static void append(tensor_module *m, struct module_node *node)
{
	node->prev = m->last;
	node->next = NULL;
	*(m->last ? &m->last->next : &m->first) = node;
	m->last = node;
}

static void unlink_node(tensor_module *m, struct module_node *node)
{
	*(node->prev ? &node->prev->next : &m->first) = node->next;
	*(node->next ? &node->next->prev : &m->last) = node->prev;
}

void module_place(struct module_node *node)
{
	struct module_tree *tree = node->parent->tree;

	if (atomic_load_explicit(&node->placed, memory_order_relaxed))
		return;
	pthread_mutex_lock(&tree->lock);
	for (; node && !node->placed; node = node->parent->self) {
		unlink_node(node->parent, node);
		append(node->parent, node);
		atomic_store_explicit(&node->placed, true, memory_order_relaxed);
	}
	pthread_mutex_unlock(&tree->lock);
}

/* The caller holds the lock. NULL without memory. */
static struct module_node *node_new(tensor_module *m, const char *name, size_t n)
{
	struct module_node *node = table_find(m->tree, m, name, n);

	if (node)
		return node; /* another thread was faster */
	node = calloc(1, sizeof(*node) + n + 1);
	if (!node || table_reserve(m->tree) < 0) {
		free(node);
		return NULL;
	}
	memcpy(node->name, name, n);
	node->parent = m;
	append(m, node);
	table_put(m->tree->table, node);
	return node;
}

/* The path of a name of n bytes in m. */
static int check_length(const tensor_module *m, const char *op, const char *name, size_t n)
{
	if ((m->self ? module_path_length(NULL, m->self) + 1 : 0) + n <= TENSOR_MODULE_PATH)
		return 0;
	return tensor_fail(ENAMETOOLONG, "%s: the path of %s has more than %d bytes", op,
			   QUOTED(name), TENSOR_MODULE_PATH);
}

static struct module_node *node_in(tensor_module *m, const char *op, const char *name, size_t n)
{
	struct module_node *node = table_find(m->tree, m, name, n);

	if (node)
		return node;
	if (check_length(m, op, name, n) < 0)
		return NULL;
	pthread_mutex_lock(&m->tree->lock);
	node = node_new(m, name, n);
	pthread_mutex_unlock(&m->tree->lock);
	if (!node)
		tensor_fail(ENOMEM, "%s: no memory", op);
	return node;
}

static int check_path(const char *op, const char *path)
{
	size_t n = path ? strlen(path) : 0;

	if (!path)
		return tensor_fail(EINVAL, "%s: the name is NULL", op);
	if (!n || *path == '.' || path[n - 1] == '.' || strstr(path, ".."))
		return tensor_fail(EINVAL, "%s: %s has an empty name", op, QUOTED(path));
	if (!text_is_utf8(path, n))
		return tensor_fail(EINVAL, "%s: a name is not UTF-8", op);
	return 0;
}

/* The end of the first name of a path. */
static size_t first_name(const char *path)
{
	return strcspn(path, ".");
}

static struct module_node *node_below(tensor_module *m, const char *op, const char *path)
{
	struct module_node *node;
	size_t n;

	if (check_path(op, path) < 0)
		return NULL;
	for (;; path += n + 1) {
		n = first_name(path);
		node = node_in(m, op, path, n);
		if (!node || !path[n])
			return node;
		m = module_of_node(node, op);
		if (!m)
			return NULL;
	}
}

struct module_node *module_node_find(const tensor_module *m, const char *path)
{
	struct module_node *node;
	size_t n;

	for (;; path += n + 1) {
		n = first_name(path);
		node = n ? table_find(m->tree, m, path, n) : NULL;
		if (!node || !path[n])
			return node;
		if (node_kind(node) != NODE_MODULE)
			return NULL;
		m = node->child;
	}
}

/* A name that exists needs no check. */
struct module_node *module_node_at(tensor_module *m, const char *op, const char *path)
{
	struct module_node *node = path ? module_node_find(m, path) : NULL;

	return node ? node : node_below(m, op, path);
}

/* ---- modules ---- */

static const char *describe(const struct module_node *node)
{
	switch (node_kind(node)) {
	case NODE_PARAMETER:
		return "a parameter";
	case NODE_BUFFER:
		return "a buffer";
	default:
		return "a tensor of the file that was loaded";
	}
}

tensor_module *module_of_node(struct module_node *node, const char *op)
{
	struct module_tree *tree = node->parent->tree;
	tensor_module *m = NULL;
	bool other;

	if (node_kind(node) == NODE_MODULE)
		return node->child;
	pthread_mutex_lock(&tree->lock);
	other = node_kind(node) != NODE_MODULE && (node_kind(node) != NODE_VACANT || node->t);
	if (node_kind(node) == NODE_MODULE) {
		m = node->child;
	} else if (!other && (m = calloc(1, sizeof(*m)))) {
		m->self = node;
		m->tree = tree;
		m->training = node->parent->training;
		m->frozen = node->parent->frozen;
		node->child = m;
		atomic_store_explicit(&node->kind, NODE_MODULE, memory_order_release);
	}
	pthread_mutex_unlock(&tree->lock);
	if (other)
		tensor_fail(EEXIST, "%s: '%s' is %s", op, NODE_PATH(node), describe(node));
	else if (!m)
		tensor_fail(ENOMEM, "%s: no memory", op);
	return m;
}

int module_check_new(const tensor_module *m, const char *op, const char *path)
{
	const struct module_node *node;
	size_t n;

	if (check_path(op, path) < 0 || check_length(m, op, path, strlen(path)) < 0)
		return -thread()->error.code;
	for (;; path += n + 1, m = node->child) {
		n = first_name(path);
		node = table_find(m->tree, m, path, n);
		if (!node || !path[n] || (node_kind(node) == NODE_VACANT && !node->t))
			return 0;
		if (node_kind(node) != NODE_MODULE)
			return tensor_fail(EEXIST, "%s: '%s' is %s", op, NODE_PATH(node),
					   describe(node));
	}
}

tensor_module *module_child(tensor_module *m, const char *op, const char *name)
{
	struct module_node *node;

	if (!m) {
		null_argument(op);
		return NULL;
	}
	node = module_node_at(m, op, name);
	if (!node)
		return NULL;
	module_place(node);
	return module_of_node(node, op);
}

TENSOR_EXPORT tensor_module *tensor_module_child(tensor_module *m, const char *path)
{
	return module_child(m, "module_child", path);
}

TENSOR_EXPORT tensor_module *tensor_module_new(tensor_options options)
{
	tensor_module *m = calloc(1, sizeof(*m));
	struct module_tree *tree = calloc(1, sizeof(*tree));
	struct node_table *table;

	if (!options.dtype)
		options.dtype = TENSOR_F32;
	if (options.layout > TENSOR_STRIDED ||
	    !(options.dtype < TENSOR_DTYPE_COUNT && dtype_trainable(options.dtype))) {
		tensor_fail(EINVAL, "module_new: parameters are strided, floating or complex");
		goto failed;
	}
	table = m && tree ? table_new(FIRST_SLOTS, NULL) : NULL;
	if (!table) {
		tensor_fail(ENOMEM, "module_new: no memory");
		goto failed;
	}
	atomic_init(&tree->table, table);
	pthread_mutex_init(&tree->lock, NULL);
	tree->options = options;
	m->tree = tree;
	m->training = true;
	return m;
failed:
	free(tree);
	free(m);
	return NULL;
}

static void free_module(tensor_module *m)
{
	for (int i = 0; i < LIST_COUNT; i++)
		free(m->list[i]);
	free(m);
}

/* The module whose nodes are freed next: a child comes before the rest of its parent. */
static tensor_module *free_first_node(tensor_module *m)
{
	struct module_node *node = m->first;
	tensor_module *up = m->self ? m->self->parent : NULL, *child = node ? node->child : NULL;

	if (!node) {
		free_module(m);
		return up;
	}
	if (child) {
		node->child = NULL;
		return child;
	}
	unlink_node(m, node);
	tensor_put(node->t);
	free(node);
	return m;
}

static void free_nodes(tensor_module *root)
{
	while (root)
		root = free_first_node(root);
}

TENSOR_EXPORT void tensor_module_free(tensor_module *m)
{
	struct module_tree *tree;
	struct node_table *table, *before;

	if (!m)
		return;
	if (m->self) {
		tensor_fail(EINVAL, "module_free: '%s' is a child, which its tree frees",
			    MODULE_PATH(m));
		return;
	}
	tree = m->tree;
	free_nodes(m);
	for (table = tree->table; table; table = before) {
		before = table->before;
		free(table);
	}
	pthread_mutex_destroy(&tree->lock);
	free(tree);
}

/* ---- order and paths ---- */

static tensor_module *first_module(const struct module_node *node)
{
	while (node && node_kind(node) != NODE_MODULE)
		node = node->next;
	return node ? node->child : NULL;
}

tensor_module *module_next(const tensor_module *top, const tensor_module *m)
{
	tensor_module *next = first_module(m->first);

	for (; !next && m != top; m = m->self->parent)
		next = first_module(m->self->next);
	return next;
}

size_t module_path_length(const tensor_module *top, const struct module_node *node)
{
	size_t n = strlen(node->name);

	for (; node->parent != top && node->parent->self; node = node->parent->self)
		n += strlen(node->parent->self->name) + 1;
	return n;
}

const char *module_path(const tensor_module *top, const struct module_node *node, char *buf)
{
	char *end = buf + module_path_length(top, node);

	*end = '\0';
	for (;; node = node->parent->self) {
		size_t n = strlen(node->name);

		end -= n;
		memcpy(end, node->name, n);
		if (end == buf)
			return buf;
		*--end = '.';
	}
}
