// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The registries: functions by operator and key, kernels by name and backend, fallbacks by key, and
 * operators by name. Written at load or when a backend is set up, while other threads may call
 * operators.
 */
#include "dispatch/fallback.h"

#include "core/debug.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A replaced function stays valid: another thread may be about to call it. */
struct fallback {
	tensor_fallback fn;
	void *ctx;
	struct fallback *replaced;
};

static struct fallback *_Atomic fallbacks[TENSOR_KEY_COUNT];

/*
 * Registers a function of the library for a key. Every key of KEYS_EXTENSION without a function
 * gets the fallback function, which fails if there is no fallback: otherwise an argument with such
 * a key beside a strided one would be ignored. The same holds for tensor_none.
 */
void dispatch_fill(struct tensor_op *op, uint32_t keys, tensor_kernel fn)
{
	for (unsigned k = 0; k < TENSOR_KEY_COUNT; k++)
		if (keys & KEY_BIT(k))
			op->call[k] = fn;
		else if (KEYS_EXTENSION & KEY_BIT(k) && !op->call[k])
			op->call[k] = op->box;
	op->call[KEY_NONE] = op->box;
	op->mask |= keys | KEYS_EXTENSION | KEY_BIT(KEY_NONE);
	op->builtin |= keys;
}

static int compare_name(const void *name, const void *op)
{
	return strcmp(name, (*(struct tensor_op *const *)op)->schema.name);
}

TENSOR_EXPORT const tensor_op *tensor_op_find(const char *name)
{
	struct tensor_op *const *found;

	if (!name)
		return NULL;
	found = bsearch(name, tensor_ops, tensor_ops_count, sizeof(*tensor_ops), compare_name);
	return found ? *found : NULL;
}

TENSOR_EXPORT const tensor_op *const *tensor_op_list(int *count)
{
	if (count)
		*count = tensor_ops_count;
	return (const tensor_op *const *)tensor_ops;
}

TENSOR_EXPORT int tensor_op_count(void)
{
	return tensor_ops_count;
}

TENSOR_EXPORT const tensor_op *tensor_op_at(int i)
{
	return i >= 0 && i < tensor_ops_count ? tensor_ops[i] : NULL;
}

TENSOR_EXPORT const struct tensor_schema *tensor_op_schema(const tensor_op *op)
{
	return op ? &op->schema : NULL;
}

TENSOR_EXPORT bool tensor_op_has_kernel(const tensor_op *op, enum tensor_key key)
{
	tensor_kernel fn;

	if (!op || (unsigned)key >= TENSOR_KEY_COUNT)
		return false;
	fn = op_function(op, key);
	if (!fn || fn == op->box)
		return false;
	/*
	 * An operator function exists for every dense backend, but needs a kernel of the backend.
	 */
	return !(__atomic_load_n(&op->builtin, __ATOMIC_RELAXED) & KEYS_DENSE & KEY_BIT(key)) ||
	       !op->kernels || __atomic_load_n(&op->kernels->fn[key], __ATOMIC_RELAXED);
}

TENSOR_EXPORT const char *tensor_key_name(enum tensor_key key)
{
	static const char *const names[TENSOR_KEY_COUNT] = {
		"CPU",	    "CUDA",	"SparseCPU", "SparseCUDA", "QuantizedCPU", "BlockedCPU",
		"Private0", "Private1", "Private2",  "Private3",   "Batched",	   "Autograd",
		"Forward",  "Autocast", "Trace",     "Profile",
	};

	return (unsigned)key < TENSOR_KEY_COUNT ? names[key] : "?";
}

static bool takes_device(const struct tensor_op *op)
{
	for (int i = 0; i < op->schema.nargs; i++)
		if (op->schema.args[i].type == TENSOR_ARG_DEVICE)
			return true;
	return false;
}

int dispatch_missing(const struct tensor_op *op, uint32_t keys)
{
	char text[160] = "";
	size_t at = 0;

	if (!keys && takes_device(op))
		return tensor_fail(EINVAL, "%s: there is no such device", op->schema.name);
	if (!keys)
		return tensor_fail(EINVAL, "%s: the list of tensors is empty", op->schema.name);
	for (unsigned k = 0; k < TENSOR_KEY_COUNT; k++)
		if (keys & KEY_BIT(k) && at < sizeof(text))
			at += snprintf(text + at, sizeof(text) - at, "%s%s", at ? "+" : "",
				       tensor_key_name(k));
	return tensor_fail(EOPNOTSUPP, "%s: no kernel for %s", op->schema.name, text);
}

void dispatch_no_kernel(const struct tensor_op *op, uint32_t keys)
{
	dispatch_missing(op, keys);
	thread()->no_kernel = true;
}

bool dispatch_may_fall_back(void)
{
	return thread()->no_kernel && fallbacks[TENSOR_KEY_CUDA];
}

int scalar_overflow(const char *op, const char *what, tensor_scalar s, enum tensor_dtype dtype)
{
	return tensor_fail(EOVERFLOW, "%s: %s is %llu, beyond the range of %s", op, what,
			   (unsigned long long)s.u, tensor_dtype_name(dtype));
}

/* Operands and fill values become elements; other arguments are parameters, which kernels read as i64. */
static bool accepts_unsigned(const char *op, const char *arg)
{
	static const char *const operands[] = { "self", "other", "fill_value", "s" };
	static const char *const fills[] = { "fill", "masked_fill", "index_fill", "constant_pad_nd",
					     "scatter.value" };

	for (size_t i = 0; i < ARRAY_SIZE(operands); i++)
		if (!strcmp(arg, operands[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(fills); i++)
		if (!strncmp(op, fills[i], strlen(fills[i])))
			return !strcmp(arg, "value");
	return false;
}

bool wrong_scalar(const char *op, const char *arg, tensor_scalar *s)
{
	*s = scalar_normal(*s);
	if (s->kind > TENSOR_SCALAR_COMPLEX)
		tensor_fail(EINVAL, "%s: argument %s: %u is no kind of a scalar", op, arg, s->kind);
	else if (s->kind != TENSOR_SCALAR_UINT || accepts_unsigned(op, arg))
		return false;
	else
		scalar_overflow(op, arg, *s, TENSOR_I64);
	return true;
}

bool wrong_scalars(const char *op, const char *arg, tensor_scalars list)
{
	for (int64_t i = 0; i < list.len; i++) {
		tensor_scalar s = list.data[i];

		if (unlikely(scalar_unusual(s)) && wrong_scalar(op, arg, &s))
			return true;
	}
	return false;
}

int wrong_list_code(const char *op, const char *arg)
{
	return tensor_fail(EINVAL, "%s: argument %s is needed, and is NULL or of negative length",
			   op, arg);
}

int no_result_code(const char *op, const char *result)
{
	return tensor_fail(EINVAL, "%s: the pointer to %s is NULL", op, result);
}

tensor *wrong_list(const char *op, const char *arg)
{
	wrong_list_code(op, arg);
	return NULL;
}

/* The argument that no operator accepts, or NULL. */
static const tensor *no_tensor(const tensor_value *v, uint32_t type)
{
	if (type == TENSOR_ARG_TENSOR && v->t && v->t->keys & KEY_BIT(KEY_NONE))
		return v->t;
	for (int64_t i = 0; type == TENSOR_ARG_TENSOR_LIST && i < v->list.len; i++)
		if (v->list.data[i] && v->list.data[i]->keys & KEY_BIT(KEY_NONE))
			return v->list.data[i];
	return NULL;
}

static int refuse(const struct tensor_op *op, const tensor_value *args, int nargs)
{
	const tensor *t = NULL;
	int i;

	for (i = 0; i < nargs && !t; i++)
		t = no_tensor(&args[i], op->schema.args[i].type);
	if (t && t != tensor_none)
		debug_dead(t, op->name);
	return tensor_fail(EINVAL, "%s: argument %s must be a tensor, got tensor_none",
			   op->schema.name, t ? op->schema.args[i - 1].name : "?");
}

int dispatch_fallback(const struct tensor_op *op, uint32_t keys, const tensor_value *args,
		      int nargs, tensor_value *rets, int nrets)
{
	/*
	 * The caller found the fallback in the table, perhaps for the profile key, which another thread has switched off
	 * since. Its fallback calls the operator's next function then, too.
	 */
	uint32_t mask = op_mask(op) |
			(fallbacks[TENSOR_KEY_PROFILE] ? KEY_BIT(TENSOR_KEY_PROFILE) : 0);
	unsigned key = top_key(dispatch_keys(thread(), mask, keys));
	const struct fallback *f;

	if (key == KEY_NONE)
		return refuse(op, args, nargs);
	f = fallbacks[key];
	if (!f)
		return dispatch_missing(op, keys & KEYS_BACKEND);
	return f->fn(op, key, args, nargs, rets, nrets, f->ctx);
}

/* The caller holds the lock. The function is written before its bit (op_mask()). */
static void set_function(struct tensor_op *op, unsigned key, tensor_kernel fn)
{
	__atomic_store_n(&op->call[key], fn, __ATOMIC_RELAXED);
	__atomic_store_n(&op->mask, op->mask | KEY_BIT(key), __ATOMIC_RELEASE);
}

TENSOR_EXPORT int tensor_register_kernel(const char *name, enum tensor_key key, tensor_kernel fn)
{
	struct tensor_op *op = (struct tensor_op *)tensor_op_find(name);
	int err = 0;

	if (!op)
		return tensor_fail(ENOENT, "register_kernel: there is no operator %s",
				   QUOTED(name));
	if ((unsigned)key >= TENSOR_KEY_COUNT || !fn)
		return tensor_fail(EINVAL, "register_kernel: %s: bad key or function", name);
	pthread_mutex_lock(&lock);
	if (op->call[key] && op->call[key] != op->box && !(op->builtin & KEY_BIT(key))) {
		err = tensor_fail(EBUSY, "register_kernel: %s has a function for %s", name,
				  tensor_key_name(key));
	} else {
		set_function(op, key, fn);
		__atomic_store_n(&op->builtin, op->builtin & ~KEY_BIT(key), __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int dispatch_register_fallback(enum tensor_key key, tensor_fallback fn, void *ctx,
			       bool (*chosen)(const struct tensor_op *op))
{
	struct fallback *f;

	if ((unsigned)key >= TENSOR_KEY_COUNT || !fn)
		return tensor_fail(EINVAL, "register_fallback: bad key or function");
	f = malloc(sizeof(*f));
	if (!f)
		return tensor_fail(ENOMEM, "register_fallback: no memory");
	pthread_mutex_lock(&lock);
	*f = (struct fallback){ fn, ctx, fallbacks[key] };
	fallbacks[key] = f;
	for (int i = 0; i < tensor_ops_count; i++) {
		struct tensor_op *op = tensor_ops[i];

		if ((!op->call[key] || (op->call[key] == op->box && !(op->mask & KEY_BIT(key)))) &&
		    (!chosen || chosen(op)))
			set_function(op, key, op->box);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int dispatch_replace_missing(enum tensor_key key, tensor_fallback fn, void *ctx,
			     bool (*missing)(const struct tensor_op *op))
{
	int err = dispatch_register_fallback(key, fn, ctx, missing);

	pthread_mutex_lock(&lock);
	for (int i = 0; i < tensor_ops_count && !err; i++) {
		struct tensor_op *op = tensor_ops[i];

		if (!(op->builtin & KEY_BIT(key)) || !op->call[key] || !missing(op))
			continue;
		set_function(op, key, op->box);
		__atomic_store_n(&op->builtin, op->builtin & ~KEY_BIT(key), __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

TENSOR_EXPORT int tensor_register_fallback(enum tensor_key key, tensor_fallback fn, void *ctx)
{
	return dispatch_register_fallback(key, fn, ctx, NULL);
}

void dispatch_set_fallback(enum tensor_key key, tensor_fallback fn, bool on)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < tensor_ops_count && fallbacks[key]->fn == fn; i++) {
		struct tensor_op *op = tensor_ops[i];
		uint32_t mask = on ? op->mask | KEY_BIT(key) : op->mask & ~KEY_BIT(key);

		if (op->call[key] == op->box)
			__atomic_store_n(&op->mask, mask, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
}

static int compare_tables(const void *name, const void *kernels)
{
	return strcmp(name, (*(struct tensor_kernel_table *const *)kernels)->name);
}

static struct tensor_kernel_table *kernel_table(const char *name)
{
	struct tensor_kernel_table *const *found =
		bsearch(name, tensor_kernel_tables, tensor_kernel_tables_count,
			sizeof(*tensor_kernel_tables), compare_tables);

	return found ? *found : NULL;
}

TENSOR_EXPORT tensor_kernel tensor_kernel_table_get(const char *name, enum tensor_key key)
{
	struct tensor_kernel_table *table = kernel_table(name);

	return table ? __atomic_load_n(&table->fn[key], __ATOMIC_ACQUIRE) : NULL;
}

TENSOR_EXPORT int tensor_kernel_table_set(const char *name, enum tensor_key key, tensor_kernel fn)
{
	struct tensor_kernel_table *table = kernel_table(name);

	if (!table)
		return tensor_fail(ENOENT,
				   "kernel_table_set: no operator has a kernel table named %s",
				   QUOTED(name));
	__atomic_store_n(&table->fn[key], fn, __ATOMIC_RELEASE);
	return 0;
}
