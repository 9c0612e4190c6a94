// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Boxed calls: an operator by name with arguments as tagged values, for bindings, tools and test
 * programs. Fallbacks get calls in this form.
 */
#include "dispatch/boxed.h"

#include <stdlib.h>

static const char *kind_name(uint32_t kind)
{
	static const char *const names[] = { "nothing",	  "tensor",	"tensor list", "int",
					     "int list",  "bool",	"float",       "scalar",
					     "device",	  "string",	"float list",  "bool list",
					     "generator", "scalar list" };

	return kind < ARRAY_SIZE(names) ? names[kind] : "an unknown kind";
}

/* The value of argument i, or NULL for its default. */
static const tensor_value *given(struct unboxer *u, int i, bool required)
{
	if (u->err)
		return NULL;
	if (i < u->nargs && u->args[i].kind != TENSOR_VALUE_NONE)
		return &u->args[i];
	if (required)
		u->err = tensor_fail(EINVAL, "%s: argument %s is missing", u->op->schema.name,
				     u->op->schema.args[i].name);
	return NULL;
}

static bool has_empty_scalar(tensor_scalars list)
{
	for (int64_t i = 0; i < list.len; i++)
		if (list.data[i].kind == TENSOR_SCALAR_NONE)
			return true;
	return false;
}

/* Names the kind of a value, and an empty scalar in it, for an error text. */
static const char *value_name(const tensor_value *v)
{
	if (v->kind == TENSOR_VALUE_SCALAR && v->scalar.kind == TENSOR_SCALAR_NONE)
		return "an empty scalar";
	if (v->kind == TENSOR_VALUE_SCALARS && scalars_given(v->scalars) &&
	    has_empty_scalar(v->scalars))
		return "a scalar list with an empty scalar";
	return kind_name(v->kind);
}

static void wrong_kind(struct unboxer *u, int i, const char *expected)
{
	u->err = tensor_fail(EINVAL, "%s: argument %s: expected %s, got %s", u->op->schema.name,
			     u->op->schema.args[i].name, expected, value_name(&u->args[i]));
}

tensor *unbox_optional_tensor(struct unboxer *u, int i, bool required, tensor *def)
{
	const tensor_value *v = given(u, i, required);

	if (!v || (v->kind == TENSOR_VALUE_TENSOR && v->t == tensor_none))
		return def;
	if (v->kind != TENSOR_VALUE_TENSOR) {
		wrong_kind(u, i, "tensor");
		return def;
	}
	if (!v->t)
		u->err = null_argument_code(u->op->schema.name);
	return v->t;
}

tensor *unbox_tensor(struct unboxer *u, int i, bool required, tensor *def)
{
	tensor *t = unbox_optional_tensor(u, i, required, def);

	if (!u->err && !t)
		u->err = tensor_fail(EINVAL, "%s: argument %s must be a tensor", u->op->schema.name,
				     u->op->schema.args[i].name);
	return t;
}

tensor_list unbox_list(struct unboxer *u, int i, bool required, tensor_list def)
{
	const tensor_value *v = given(u, i, required);

	if (!v)
		return def;
	if (v->kind != TENSOR_VALUE_TENSOR_LIST)
		wrong_kind(u, i, "tensor list");
	else if (v->list.len < 0 || !list_complete(v->list))
		u->err = null_argument_code(u->op->schema.name);
	return v->list;
}

int64_t unbox_int(struct unboxer *u, int i, bool required, int64_t def)
{
	const tensor_value *v = given(u, i, required);
	tensor_scalar s;

	if (!v)
		return def;
	switch (v->kind) {
	case TENSOR_VALUE_INT:
		return v->i;
	case TENSOR_VALUE_BOOL:
		return v->b;
	case TENSOR_VALUE_SCALAR:
		s = scalar_normal(v->scalar);
		if (s.kind == TENSOR_SCALAR_BOOL || s.kind == TENSOR_SCALAR_INT)
			return s.i;
		break;
	}
	wrong_kind(u, i, "int");
	return def;
}

tensor_ints unbox_ints(struct unboxer *u, int i, bool required, tensor_ints def)
{
	const tensor_value *v = given(u, i, required);

	if (!v)
		return def;
	if (v->kind == TENSOR_VALUE_INT)
		return (tensor_ints){ &v->i, 1 };
	if (v->kind != TENSOR_VALUE_INTS || !ints_allowed(v->ints) ||
	    (v->ints.len < 0 && u->op->schema.args[i].type != TENSOR_ARG_OPTIONAL_INTS)) {
		wrong_kind(u, i, "int list");
		return def;
	}
	return v->ints;
}

bool unbox_bool(struct unboxer *u, int i, bool required, bool def)
{
	const tensor_value *v = given(u, i, required);

	if (!v)
		return def;
	if (v->kind == TENSOR_VALUE_BOOL)
		return v->b;
	if (v->kind == TENSOR_VALUE_INT)
		return v->i != 0;
	wrong_kind(u, i, "bool");
	return def;
}

tensor_scalar unbox_scalar(struct unboxer *u, int i, bool required, tensor_scalar def)
{
	const tensor_value *v = given(u, i, required);
	tensor_scalar s;

	if (!v)
		return def;
	switch (v->kind) {
	case TENSOR_VALUE_SCALAR:
		if (v->scalar.kind == TENSOR_SCALAR_NONE && !required)
			return def;
		if (v->scalar.kind == TENSOR_SCALAR_NONE)
			break;
		s = v->scalar;
		if (unlikely(scalar_unusual(s)) &&
		    wrong_scalar(u->op->schema.name, u->op->schema.args[i].name, &s))
			u->err = -thread()->error.code;
		return s;
	case TENSOR_VALUE_INT:
		return tensor_scalar_int(v->i);
	case TENSOR_VALUE_BOOL:
		return tensor_scalar_bool(v->b);
	case TENSOR_VALUE_FLOAT:
		return tensor_scalar_float(v->f);
	}
	wrong_kind(u, i, "scalar");
	return def;
}

double unbox_float(struct unboxer *u, int i, bool required, double def)
{
	const tensor_value *v = given(u, i, required);

	if (!v)
		return def;
	if (v->kind == TENSOR_VALUE_FLOAT)
		return v->f;
	return scalar_double(unbox_scalar(u, i, required, tensor_scalar_float(def)));
}

tensor_floats unbox_floats(struct unboxer *u, int i, bool required, tensor_floats def)
{
	const tensor_value *v = given(u, i, required);

	if (!v)
		return def;
	if (v->kind == TENSOR_VALUE_FLOAT)
		return (tensor_floats){ &v->f, 1 };
	if (v->kind != TENSOR_VALUE_FLOATS || !floats_allowed(v->floats) ||
	    (v->floats.len < 0 && u->op->schema.args[i].type != TENSOR_ARG_OPTIONAL_FLOATS)) {
		wrong_kind(u, i, "float list");
		return def;
	}
	return v->floats;
}

tensor_scalars unbox_scalars(struct unboxer *u, int i, bool required, tensor_scalars def)
{
	const tensor_value *v = given(u, i, required);
	tensor_scalars list;

	if (!v)
		return def;
	list = v->kind == TENSOR_VALUE_SCALAR ? (tensor_scalars){ &v->scalar, 1 } : v->scalars;
	if ((v->kind != TENSOR_VALUE_SCALAR && v->kind != TENSOR_VALUE_SCALARS) ||
	    !scalars_given(list) || has_empty_scalar(list)) {
		wrong_kind(u, i, "scalar list");
		return def;
	}
	if (wrong_scalars(u->op->schema.name, u->op->schema.args[i].name, list))
		u->err = -thread()->error.code;
	return list;
}

uint64_t unbox_bools(struct unboxer *u, int i, bool required, uint64_t def)
{
	const tensor_value *v = given(u, i, required);
	uint64_t bits = 0;

	if (!v)
		return def;
	if (v->kind == TENSOR_VALUE_BOOLS)
		return v->bools;
	if (v->kind != TENSOR_VALUE_INTS || v->ints.len < 0 || v->ints.len > 64 ||
	    (v->ints.len && !v->ints.data)) {
		wrong_kind(u, i, "bool list");
		return def;
	}
	for (int64_t k = 0; k < v->ints.len; k++)
		bits |= (uint64_t)(v->ints.data[k] != 0) << k;
	return bits;
}

const char *unbox_string(struct unboxer *u, int i, bool required, const char *def)
{
	const tensor_value *v = given(u, i, required);

	if (!v)
		return def;
	if (v->kind != TENSOR_VALUE_STRING || !v->s) {
		wrong_kind(u, i, "string");
		return def;
	}
	return v->s;
}

tensor_generator *unbox_generator(struct unboxer *u, int i, bool required, tensor_generator *def)
{
	const tensor_value *v = given(u, i, required);

	if (!v)
		return def;
	if (v->kind != TENSOR_VALUE_GENERATOR) {
		wrong_kind(u, i, "generator");
		return def;
	}
	return v->generator;
}

/* An enumeration passed as an integer: 0 means not given. */
static int unbox_enum(struct unboxer *u, int i, bool required, int def, int count, const char *what)
{
	int64_t n = unbox_int(u, i, required, def);

	if (!u->err && (n < 0 || n >= count))
		u->err = tensor_fail(EINVAL, "%s: argument %s: %lld is no %s", u->op->schema.name,
				     u->op->schema.args[i].name, (long long)n, what);
	return (int)n;
}

enum tensor_dtype unbox_dtype(struct unboxer *u, int i, bool required, int def)
{
	return unbox_enum(u, i, required, def, TENSOR_DTYPE_COUNT, "dtype");
}

enum tensor_layout unbox_layout(struct unboxer *u, int i, bool required, int def)
{
	return unbox_enum(u, i, required, def, TENSOR_LAYOUT_COUNT, "layout");
}

enum tensor_memory_format unbox_memory_format(struct unboxer *u, int i, bool required, int def)
{
	return unbox_enum(u, i, required, def, TENSOR_MEMORY_FORMAT_COUNT, "memory format");
}

tensor_device unbox_device(struct unboxer *u, int i, bool required, tensor_device def)
{
	const tensor_value *v = given(u, i, required);

	if (!v)
		return def;
	if (v->kind != TENSOR_VALUE_DEVICE) {
		wrong_kind(u, i, "device");
		return def;
	}
	if (v->device.type < 0 || v->device.type >= TENSOR_DEVICE_TYPE_COUNT || v->device.index < 0)
		u->err = tensor_fail(EINVAL, "%s: %d:%d is no device", u->op->schema.name,
				     v->device.type, v->device.index);
	return v->device;
}

static __thread const tensor_options *boxed_options;

const tensor_options *box_options(const tensor_options *options)
{
	const tensor_options *before = boxed_options;

	boxed_options = options;
	return before;
}

void unbox_options(const struct unboxer *u, tensor_options *options)
{
	if (!u->skip || !boxed_options)
		return;
	options->shareable = boxed_options->shareable;
	if (!options->memory_format)
		options->memory_format = boxed_options->memory_format;
}

int box_result(struct unboxer *u, tensor *t)
{
	if (!t)
		return u->err = -thread()->error.code;
	u->rets[u->filled++] = (tensor_value){ .kind = TENSOR_VALUE_TENSOR, .t = t };
	return u->err;
}

void box_optional(struct unboxer *u, tensor *t)
{
	uint32_t kind = t ? TENSOR_VALUE_TENSOR : TENSOR_VALUE_NONE;

	u->rets[u->filled++] = (tensor_value){ .kind = kind, .t = t };
}

tensor **unbox_room(struct unboxer *u)
{
	tensor **results;

	if (u->err)
		return NULL;
	results = calloc(u->nrets ? u->nrets : 1, sizeof(*results));
	if (!results)
		u->err = tensor_fail(ENOMEM, "%s: no memory for %d results", u->op->schema.name,
				     u->nrets);
	return results;
}

int box_list(struct unboxer *u, tensor **results, int n)
{
	for (int i = 0; i < u->nrets; i++)
		box_optional(u, i < n ? results[i] : NULL);
	free(results);
	return n < 0 ? n : 0;
}

int dispatch_fallback_list(const struct tensor_op *op, uint32_t keys, const tensor_value *args,
			   int nargs, tensor **results, int64_t room)
{
	int nrets = room > INT32_MAX ? INT32_MAX : (int)room, n = 0, err;
	tensor_value *rets = calloc(nrets ? nrets : 1, sizeof(*rets));

	if (!rets)
		return tensor_fail(ENOMEM, "%s: no memory for %d results", op->schema.name, nrets);
	err = dispatch_fallback(op, keys, args, nargs, rets, nrets);
	for (; !err && n < nrets && rets[n].kind == TENSOR_VALUE_TENSOR; n++)
		results[n] = rets[n].t;
	free(rets);
	return err ? err : n;
}

static const char *plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

/* The lengths of the lists that a boxed call reads and writes. */
static int check_counts(const tensor_op *op, const tensor_value *args, int nargs,
			const tensor_value *rets, int nrets)
{
	const char *name = op->schema.name;
	int most = op->schema.nargs, returns = op->schema.nreturns;

	if (nargs < 0 || nargs > most)
		return tensor_fail(EINVAL, "%s: takes at most %d argument%s, got %d", name, most,
				   plural(most), nargs);
	if (nargs && !args)
		return tensor_fail(EINVAL, "%s: args is NULL where nargs is %d", name, nargs);
	if (returns == TENSOR_RETURNS_LIST ? nrets < 0 : nrets != returns)
		return returns == TENSOR_RETURNS_LIST ?
			       tensor_fail(EINVAL, "%s: returns a list, got room for %d results",
					   name, nrets) :
			       tensor_fail(EINVAL, "%s: returns %d result%s, got room for %d", name,
					   returns, plural(returns), nrets);
	if (nrets && !rets)
		return tensor_fail(EINVAL, "%s: rets is NULL where nrets is %d", name, nrets);
	return 0;
}

int boxed_call_past(const tensor_op *op, uint32_t skip, const tensor_value *args, int nargs,
		    tensor_value *rets, int nrets)
{
	struct unboxer u = { op, args, nargs, rets, nrets, 0, 0, skip };
	struct tensor_thread *th = thread();
	uint32_t exclude = th->modes.exclude;
	int err;

	if (!op)
		return tensor_fail(ENOENT, "boxed call: there is no such operator");
	err = check_counts(op, args, nargs, rets, nrets);
	if (err < 0)
		return err;
	err = op->unbox(&u);
	th->modes.exclude = exclude;
	if (err < 0 && op->calls)
		error_in(op->schema.name);
	return err;
}

static int own_values(tensor_value *rets, int nrets)
{
	int err = 0;

	for (int i = 0; i < nrets; i++) {
		if (rets[i].kind != TENSOR_VALUE_TENSOR || !rets[i].t)
			continue;
		if (err)
			tensor_put(rets[i].t);
		else if (scope_own(thread(), rets[i].t))
			continue;
		/* Earlier results stay in the scope, which releases them. */
		err = -ENOMEM;
		rets[i].t = NULL;
	}
	for (int i = 0; err && i < nrets; i++)
		rets[i] = (tensor_value){ 0 };
	return err;
}

TENSOR_EXPORT int tensor_op_call(const tensor_op *op, const tensor_value *args, int nargs,
				 tensor_value *rets, int nrets)
{
	int err = boxed_call_past(op, 0, args, nargs, rets, nrets);

	/* In-place and out forms return an argument, whose ownership does not change. */
	return !err && op->variant == VARIANT_FUNCTION ? own_values(rets, nrets) : err;
}

TENSOR_EXPORT int tensor_call(const char *name, const tensor_value *args, int nargs,
			      tensor_value *rets, int nrets)
{
	const tensor_op *op = tensor_op_find(name);

	if (!op)
		return tensor_fail(ENOENT, "call: there is no operator %s", QUOTED(name));
	return tensor_op_call(op, args, nargs, rets, nrets);
}

TENSOR_EXPORT int tensor_op_call_below(const tensor_op *op, enum tensor_key key,
				       const tensor_value *args, int nargs, tensor_value *rets,
				       int nrets)
{
	struct tensor_thread *th = thread();
	uint32_t before = th->modes.exclude;
	int err;

	if ((unsigned)key >= TENSOR_KEY_COUNT)
		return tensor_fail(EINVAL, "call_below: %d is no key", (int)key);
	/* The caller of the fallback gives the results to the scope. */
	th->modes.exclude |= KEY_BIT(KEY_NONE) - KEY_BIT(key);
	err = boxed_call_past(op, 0, args, nargs, rets, nrets);
	th->modes.exclude = before;
	return err;
}
