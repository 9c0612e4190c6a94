/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The dispatcher: operators by schema name, boxed calls, registration of backends.
 *
 * Every tensor has a set of dispatch keys. A call takes the union of its tensors' sets, with the
 * thread's included and excluded keys, and runs the operator's function for the highest key that
 * has one. Functionality keys (autograd) are above backend keys (CPU, CUDA, private ones): their
 * functions call the operator again with their own key excluded.
 */
#ifndef TENSOR_DISPATCH_H
#define TENSOR_DISPATCH_H

#include <tensor/types.h>
#include <tensor/storage.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In ascending priority. */
enum tensor_key {
	TENSOR_KEY_CPU = 0,
	TENSOR_KEY_CUDA,
	TENSOR_KEY_SPARSE_CPU,
	TENSOR_KEY_SPARSE_CUDA,
	TENSOR_KEY_QUANTIZED_CPU,
	TENSOR_KEY_BLOCKED_CPU,
	TENSOR_KEY_PRIVATE0, /* assigned by tensor_register_backend() */
	TENSOR_KEY_PRIVATE1,
	TENSOR_KEY_PRIVATE2,
	TENSOR_KEY_PRIVATE3,
	TENSOR_KEY_BATCHED, /* tensors with a batch dimension inside tensor_vmap() */
	TENSOR_KEY_AUTOGRAD,
	TENSOR_KEY_FORWARD, /* tensors with a tangent, see tensor_make_dual() */
	TENSOR_KEY_AUTOCAST, /* included by tensor_autocast(); on operators that convert their arguments */
	TENSOR_KEY_TRACE, /* a boxed observer, see tensor_register_fallback() */
	TENSOR_KEY_PROFILE, /* above all others: the library's own observer, which every thread includes */
	TENSOR_KEY_COUNT
};

/* ---- introspection ---- */

/* An operator: one schema with its tables. Never freed. */
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
	TENSOR_ARG_DTYPE, /* these three are always optional */
	TENSOR_ARG_LAYOUT,
	TENSOR_ARG_DEVICE,
	TENSOR_ARG_GENERATOR, /* TENSOR_VALUE_NONE or NULL: the default generator */
	TENSOR_ARG_OPTIONAL_BOOL,
	TENSOR_ARG_OPTIONAL_TENSOR_LIST, /* tensor_none for an absent element */
	TENSOR_ARG_BOOLS,
	TENSOR_ARG_OPTIONAL_FLOAT,
	TENSOR_ARG_FLOATS,
	TENSOR_ARG_OPTIONAL_FLOATS,
	TENSOR_ARG_STRING,
	TENSOR_ARG_OPTIONAL_STRING,
	TENSOR_ARG_SCALARS,
	TENSOR_ARG_MEMORY_FORMAT, /* always optional */
};

struct tensor_arg {
	const char *name;
	enum tensor_arg_type type;
	const char *default_text; /* as in the schema, NULL if required */
	bool keyword_only;
	bool mutated; /* written in place, or an out argument */
};

#define TENSOR_RETURNS_LIST (-1)

struct tensor_schema {
	const char *name; /* "add.Tensor" */
	const char *text; /* the whole schema */
	const struct tensor_arg *args;
	int nargs;
	int nreturns;		 /* or TENSOR_RETURNS_LIST: Tensor[], a variable number */
	const char *const *tags; /* NULL-terminated: "pointwise", "view", "inplace" ... */
};

/* All operators, sorted by name: an array of *count elements, owned by the library. */
const tensor_op *const *tensor_op_list(int *count);
/* The same list by number and by name; op i is valid for 0 <= i < count. */
int tensor_op_count(void);
const tensor_op *tensor_op_at(int i);		   /* NULL past the end */
const tensor_op *tensor_op_find(const char *name); /* NULL if unknown */
/* The schema, owned by the library. */
const struct tensor_schema *tensor_op_schema(const tensor_op *op);
/* True if a function (not a fallback) is registered for the key. */
bool tensor_op_has_kernel(const tensor_op *op, enum tensor_key key);
const char *tensor_key_name(enum tensor_key key); /* "SparseCPU"; "?" for an unknown key */
uint32_t tensor_keys(const tensor *t);		  /* bit k: key k */

/* ---- boxed calls ---- */

enum tensor_value_kind {
	TENSOR_VALUE_NONE = 0, /* the default, or "not given" */
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

/* One argument or result: 32 bytes, the same in every language binding. */
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
 * Call an operator by its schema name with arguments in schema order; trailing ones with defaults
 * may be omitted. Numbers convert as in C (an int where a float or a Scalar is declared). Results
 * are new tensors, owned like those of a C call; a result excluded by a mask has kind
 * TENSOR_VALUE_NONE. For an operator that returns Tensor[], nrets is the capacity: ENOSPC if there
 * are more results; unused entries have kind TENSOR_VALUE_NONE. 0 or -errno: ENOENT unknown
 * operator, EINVAL wrong number or kind of arguments.
 */
int tensor_call(const char *name, const tensor_value *args, int nargs, tensor_value *rets,
		int nrets);
/* As tensor_call() without the search by name. */
int tensor_op_call(const tensor_op *op, const tensor_value *args, int nargs, tensor_value *rets,
		   int nrets);
/* As tensor_call(), dispatched to keys below `key` only: for fallbacks. */
int tensor_op_call_below(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			 int nargs, tensor_value *rets, int nrets);

/* ---- registration ---- */

typedef void (*tensor_kernel)(void); /* cast from the operator's own function type */
/* Boxed function for any operator: sets rets[0..nrets - 1] to owned results. 0 or -errno. */
typedef int (*tensor_fallback)(const tensor_op *op, enum tensor_key key, const tensor_value *args,
			       int nargs, tensor_value *rets, int nrets, void *ctx);

/*
 * Register a device type: its tensors have the returned key (>= 0) and memory of the allocator.
 * Sets device->type to TENSOR_PRIVATE and device->index to an unused number. -ENOSPC if all private
 * keys are in use.
 */
int tensor_register_backend(const char *name, const struct tensor_allocator *allocator,
			    tensor_device *device);
/*
 * Register the function of an operator for a key. Its C type is that of the operator's public
 * function with every argument of the schema (tensor_add_opt for add.Tensor); a functional form
 * returns a tensor owned by the caller. -ENOENT unknown operator, -EBUSY already registered.
 */
int tensor_register_kernel(const char *name, enum tensor_key key, tensor_kernel fn);
/* Register the function for all operators without one for the key. 0 or -errno. */
int tensor_register_fallback(enum tensor_key key, tensor_fallback fn, void *ctx);

/*
 * Streams of a backend, if it has some: queues of work, each of which runs in order, at its own time. A thread has a
 * current stream for each device, in which its operators queue their work. A backward runs a node in the stream that
 * was the current one when the node was recorded, and lets it wait for the streams of the gradients that it reads. To
 * the caller a backward is work of its current streams: it begins after what they have queued before, and what they
 * queue later waits for it. NULL is the default stream. Functions that return int: 0, or -errno with the error set by
 * an operator of the library, or not at all. All are called from any thread.
 */
struct tensor_streams {
	void *(*current)(tensor_device device); /* of the calling thread */
	int (*set)(tensor_device device, void *stream);
	/* A new event, which is reached when the work queued in the stream so far is done. NULL: failed */
	void *(*record)(tensor_device device, void *stream);
	/* Work that the stream queues later waits for the event */
	int (*wait)(tensor_device device, void *stream, void *event);
	void (*release)(tensor_device device, void *event); /* may be called before it is reached */
};
/* Register the streams of a backend's device; the table must stay valid. 0, or -errno: EINVAL no registered device or
 * a missing function, EBUSY registered before. */
int tensor_register_streams(tensor_device device, const struct tensor_streams *streams);

/* New tensor on a backend's device, in memory of its allocator: contiguous, uninitialized. NULL
 * with the error set. */
tensor *tensor_empty_on(tensor_device device, tensor_ints_arg size, enum tensor_dtype dtype);
/* Address of the first element on the tensor's device. */
void *tensor_device_data(const tensor *t);

/* ---- the thread's key sets ---- */

struct tensor_key_sets {
	uint32_t include, exclude;
};
/* Set the keys included and excluded by this thread. Returns the previous sets, to restore them. */
struct tensor_key_sets tensor_set_key_sets(struct tensor_key_sets sets);

#ifdef __cplusplus
}
#endif
#endif
