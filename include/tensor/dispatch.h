/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The dispatcher from outside: operators by schema name, boxed calls, and new backends.
 *
 * Every tensor carries a set of dispatch keys. A call takes the union of its tensors' sets,
 * adds and removes what the thread says, and runs the operator's function for the highest key
 * that has one. Functionality keys (autograd) are above backend keys (CPU, CUDA, yours): each
 * does its part and calls on with its own key excluded.
 */
#ifndef TENSOR_DISPATCH_H
#define TENSOR_DISPATCH_H

#include <tensor/types.h>
#include <tensor/storage.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lowest priority first. */
enum tensor_key {
	TENSOR_KEY_CPU = 0,
	TENSOR_KEY_CUDA,
	TENSOR_KEY_SPARSE_CPU,
	TENSOR_KEY_SPARSE_CUDA,
	TENSOR_KEY_QUANTIZED_CPU,
	TENSOR_KEY_BLOCKED_CPU,
	TENSOR_KEY_PRIVATE0, /* handed out by tensor_register_backend() */
	TENSOR_KEY_PRIVATE1,
	TENSOR_KEY_PRIVATE2,
	TENSOR_KEY_PRIVATE3,
	TENSOR_KEY_AUTOGRAD,
	TENSOR_KEY_TRACE, /* above everything: a boxed observer, see tensor_register_fallback() */
	TENSOR_KEY_COUNT
};

/* ---- introspection ---- */

/* An operator: one schema, with its tables. Lives as long as the library. */
typedef struct tensor_op tensor_op;

enum tensor_arg_type {
	TENSOR_ARG_TENSOR = 1,
	TENSOR_ARG_OPTIONAL_TENSOR,
	TENSOR_ARG_TENSOR_LIST,
	TENSOR_ARG_INT,
	TENSOR_ARG_OPTIONAL_INT,
	TENSOR_ARG_INTS,
	TENSOR_ARG_OPTIONAL_INTS,
	TENSOR_ARG_BOOL,
	TENSOR_ARG_FLOAT,
	TENSOR_ARG_SCALAR,
	TENSOR_ARG_OPTIONAL_SCALAR,
	TENSOR_ARG_DTYPE, /* these three are optional wherever they occur */
	TENSOR_ARG_LAYOUT,
	TENSOR_ARG_DEVICE,
	TENSOR_ARG_GENERATOR, /* not given, or NULL: the default one */
	TENSOR_ARG_OPTIONAL_BOOL,
	TENSOR_ARG_OPTIONAL_TENSOR_LIST, /* tensor_none where there is none */
	TENSOR_ARG_BOOLS,
	TENSOR_ARG_OPTIONAL_FLOAT,
	TENSOR_ARG_FLOATS,
	TENSOR_ARG_OPTIONAL_FLOATS,
	TENSOR_ARG_STRING,
	TENSOR_ARG_OPTIONAL_STRING,
	TENSOR_ARG_SCALARS,
	TENSOR_ARG_MEMORY_FORMAT, /* optional, too */
};

struct tensor_arg {
	const char *name;
	enum tensor_arg_type type;
	const char *default_text; /* as in the schema, NULL when required */
	bool keyword_only;
	bool mutated; /* written in place, or an out argument */
};

#define TENSOR_RETURNS_LIST (-1)

struct tensor_schema {
	const char *name; /* "add.Tensor" */
	const char *text; /* the whole declaration */
	const struct tensor_arg *args;
	int nargs;
	int nreturns;		 /* or TENSOR_RETURNS_LIST: Tensor[], as many as there are */
	const char *const *tags; /* NULL-terminated: "pointwise", "view", "inplace" ... */
};

/* All operators, sorted by name: an array of *count. */
const tensor_op *const *tensor_op_list(int *count);
int tensor_op_count(void);
const tensor_op *tensor_op_at(int i);		   /* NULL past the end */
const tensor_op *tensor_op_find(const char *name); /* NULL when there is none */
const struct tensor_schema *tensor_op_schema(const tensor_op *op);
/* Whether a function (not a fallback) is registered for the key. */
bool tensor_op_has_kernel(const tensor_op *op, enum tensor_key key);
const char *tensor_key_name(enum tensor_key key);
uint32_t tensor_keys(const tensor *t); /* bit k: key k */

/* ---- boxed calls ---- */

enum tensor_value_kind {
	TENSOR_VALUE_NONE = 0, /* takes the default, or "not given" */
	TENSOR_VALUE_TENSOR,
	TENSOR_VALUE_TENSOR_LIST,
	TENSOR_VALUE_INT, /* also dtype, layout */
	TENSOR_VALUE_INTS,
	TENSOR_VALUE_BOOL,
	TENSOR_VALUE_FLOAT,
	TENSOR_VALUE_SCALAR,
	TENSOR_VALUE_DEVICE,
	TENSOR_VALUE_STRING,
	TENSOR_VALUE_FLOATS,
	TENSOR_VALUE_BOOLS, /* bit i: element i; also from INTS */
	TENSOR_VALUE_GENERATOR,
	TENSOR_VALUE_SCALARS,
};

/* One argument or result. 32 bytes, the same for every language. */
typedef struct tensor_value {
	uint32_t kind; /* enum tensor_value_kind */
	uint32_t reserved;
	union {
		tensor *t;
		tensor_list list;
		int64_t i;
		tensor_ints ints;
		bool b;
		double f;
		tensor_scalar scalar;
		tensor_device device;
		const char *s;
		tensor_floats floats;
		tensor_scalars scalars;
		uint64_t bools;
		tensor_generator *generator;
	};
} tensor_value;

/*
 * Calls an operator by its schema name with arguments in schema order; trailing ones may be
 * left out where the schema has defaults. Numbers convert as C programmers expect (an int where
 * a float or a Scalar is declared). Results are new tensors owned like those of a C call; one that
 * a mask left out has kind TENSOR_VALUE_NONE. Of an operator that returns Tensor[] nrets is how many
 * there may be: ERANGE when there are more, and the rest have kind TENSOR_VALUE_NONE.
 * 0 or -errno: ENOENT unknown operator, EINVAL wrong number or kind of arguments.
 */
int tensor_call(const char *name, const tensor_value *args, int nargs, tensor_value *rets,
		int nrets);
int tensor_op_call(const tensor_op *op, const tensor_value *args, int nargs, tensor_value *rets,
		   int nrets);
/* The same, continuing below a key: for fallbacks. */
int tensor_op_call_below(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			 int nargs, tensor_value *rets, int nrets);

/* ---- registering ---- */

typedef void (*tensor_kernel)(void); /* cast from the operator's own function type */
typedef int (*tensor_fallback)(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			       int nargs, tensor_value *rets, int nrets, void *ctx);

/*
 * A device of its own: its tensors carry the key that is returned (>= 0) and live in memory of
 * the allocator. device->type is TENSOR_PRIVATE and device->index a free number afterwards.
 * -ENOSPC when all private keys are taken.
 */
int tensor_register_backend(const char *name, const struct tensor_allocator *allocator,
			    tensor_device *device);
/*
 * The function that runs an operator for a key. Its C type is that of the operator's public
 * function with every argument of the schema (tensor_add_opt for add.Tensor); a functional one
 * returns a tensor that the caller owns. -ENOENT unknown operator, -EBUSY already registered.
 */
int tensor_register_kernel(const char *name, enum tensor_key key, tensor_kernel fn);
/* What runs for every operator that has no function for the key. */
int tensor_register_fallback(enum tensor_key key, tensor_fallback fn, void *ctx);
/* A tensor on a backend's device: memory from its allocator, contiguous, uninitialised. */
tensor *tensor_empty_on(tensor_device device, tensor_ints_arg size, enum tensor_dtype dtype);
/* The address on its device, whatever device that is. */
void *tensor_device_data(const tensor *t);

/* ---- the thread's key sets ---- */

struct tensor_key_sets {
	uint32_t include, exclude;
};
/* Returns the former sets, to be put back. */
struct tensor_key_sets tensor_set_key_sets(struct tensor_key_sets sets);

#ifdef __cplusplus
}
#endif
#endif
