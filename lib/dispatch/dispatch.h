/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Data of the dispatcher: a struct tensor_op for each schema, with a function for each key, and a
 * struct tensor_kernel_table for the kernels of an operator, shared by its functional, in-place and
 * out schemas.
 */
#ifndef TENSOR_DISPATCH_INTERNAL_H
#define TENSOR_DISPATCH_INTERNAL_H

#include "base/init.h"
#include "core/tensor_impl.h"

/* The dtype of the result, from the common dtype of the arguments. */
enum dtype_rule {
	RULE_SAME,    /* that of the first argument */
	RULE_PROMOTE, /* the common dtype */
	RULE_FLOAT,   /* the common dtype; f32 for integers */
	RULE_BOOL,    /* bool; computed in the common dtype */
	RULE_SUM,     /* i64 for bool and integers */
	RULE_INDEX,   /* i64 */
};

enum op_variant { VARIANT_FUNCTION, VARIANT_INPLACE, VARIANT_OUT };

/* Kernels by backend; kernels/abi has the types of the functions. */
struct tensor_kernel_table {
	const char *name;
	tensor_kernel fn[TENSOR_KEY_AUTOGRAD]; /* none for TENSOR_KEY_BATCHED */
};

struct unboxer;
struct batch_call;
struct tensor_op;

/* How an operator runs on batched tensors (lib/batch). Generated, one row for each schema. */
struct batch_row {
	struct tensor_op *op;
	int (*rule)(struct batch_call *c);
	uint32_t dims;		    /* bit i: argument i is a dimension, or a list of them */
	int rank;		    /* a number that the entry gives the rule */
	struct tensor_op *function; /* of an in-place form: the functional form, or NULL */
};

struct tensor_op {
	uint32_t mask;	 /* keys for which call[] is set */
	uint8_t variant; /* enum op_variant */
	uint8_t rule;	 /* enum dtype_rule */
	bool calls;	 /* a composite: the error of an operator that it calls gets its name */
	tensor_kernel call[KEY_NONE + 1];
	struct tensor_kernel_table *kernels;
	const char *name;  /* for messages: "add" */
	tensor_kernel box; /* function for a key that has only a fallback */
	int (*unbox)(struct unboxer *u);
	uint32_t builtin; /* keys of the library's own functions, which a backend may replace */
	struct tensor_schema schema;
	const struct batch_row *batch;
	_Atomic uint64_t batch_loops; /* calls that the loop over the samples computed */
	_Atomic uint64_t
		host_calls; /* calls for a device that the CPU computed (ops/host_fallback.c) */
};

/* Generated: all entries, sorted by schema name. */
extern struct tensor_op *const tensor_ops[];
extern const int tensor_ops_count;
extern struct tensor_kernel_table *const tensor_kernel_tables[];
extern const int tensor_kernel_tables_count;

#define KEYS_PRIVATE                                                   \
	(KEY_BIT(TENSOR_KEY_PRIVATE0) | KEY_BIT(TENSOR_KEY_PRIVATE1) | \
	 KEY_BIT(TENSOR_KEY_PRIVATE2) | KEY_BIT(TENSOR_KEY_PRIVATE3))
/* The backends that the library's operator functions support; kernels may be missing. */
#define KEYS_DENSE (KEY_BIT(TENSOR_KEY_CPU) | KEY_BIT(TENSOR_KEY_CUDA))
/* Keys of plain strided tensors: all views support them. */
#define KEYS_STRIDED (KEYS_DENSE | KEYS_PRIVATE)
/*
 * Keys of tensors with an extension. Every operator has a function for these keys: the one named
 * under dispatch in its entry, or one that fails.
 */
#define KEYS_EXTENSION                                                      \
	(KEY_BIT(TENSOR_KEY_SPARSE_CPU) | KEY_BIT(TENSOR_KEY_SPARSE_CUDA) | \
	 KEY_BIT(TENSOR_KEY_QUANTIZED_CPU) | KEY_BIT(TENSOR_KEY_BLOCKED_CPU))

void dispatch_fill(struct tensor_op *op, uint32_t keys, tensor_kernel fn);
int dispatch_missing(const struct tensor_op *op, uint32_t keys) __attribute__((cold));
/* dispatch_missing() for a kernel that the function of op calls. */
void dispatch_no_kernel(const struct tensor_op *op, uint32_t keys) __attribute__((cold));
/*
 * For the function of an operator that has failed: true if a device lacks a kernel or a dtype of a kernel, and has a
 * fallback that the function is to call. The error record keeps the reason, in case that the fallback refuses.
 */
bool dispatch_may_fall_back(void) __attribute__((cold));
int dispatch_fallback(const struct tensor_op *op, uint32_t keys, const tensor_value *args,
		      int nargs, tensor_value *rets, int nrets);
/* Switches fn off or on again, if it is the fallback of the key, for all operators without a function of their own. */
void dispatch_set_fallback(enum tensor_key key, tensor_fallback fn, bool on);

/* The same for an operator that returns Tensor[]: the number of results. */
int dispatch_fallback_list(const struct tensor_op *op, uint32_t keys, const tensor_value *args,
			   int nargs, tensor **results, int64_t room);

/* For composites that return Tensor[]: -ENOSPC if there is not enough space for n results. */
static inline int results_fit(const char *op, int64_t n, int64_t room)
{
	if (likely(n <= room))
		return 0;
	return tensor_fail(ENOSPC, "%s: there are %lld results, room for %lld was given", op,
			   (long long)n, (long long)room);
}

/*
 * Registers a kernel for one backend by the name in its entry (kernel, default the base name of the
 * operator). -ENOENT for an unknown name. Exported for plugins.
 */
int tensor_kernel_table_set(const char *name, enum tensor_key key, tensor_kernel fn);
/* The kernel of a backend, for plugins that use another backend's; NULL if there is none. */
tensor_kernel tensor_kernel_table_get(const char *name, enum tensor_key key);

static inline unsigned top_key(uint32_t keys)
{
	return 31 - __builtin_clz(keys);
}

/* Acquire: another thread may be registering a function, which is written before its bit. */
static inline uint32_t op_mask(const struct tensor_op *op)
{
	return __atomic_load_n(&op->mask, __ATOMIC_ACQUIRE);
}

static inline tensor_kernel op_function(const struct tensor_op *op, unsigned key)
{
	return __atomic_load_n(&op->call[key], __ATOMIC_RELAXED);
}

static inline uint32_t dispatch_keys(const struct tensor_thread *th, uint32_t mask, uint32_t keys)
{
	return (keys | th->modes.include) & ~th->modes.exclude & mask;
}

static inline uint32_t list_keys(tensor_list list)
{
	uint32_t keys = 0;

	for (int64_t i = 0; i < list.len; i++)
		keys |= list.data[i]->keys;
	return keys;
}

/* The keys of a list; tensor_none stands for a missing element. */
static inline uint32_t optional_list_keys(tensor_list list)
{
	return list_keys(list) & ~KEY_BIT(KEY_NONE);
}

/*
 * Checks of lists of numbers: a required list, and one that may be TENSOR_NO_INTS or
 * TENSOR_NO_FLOATS.
 */
static inline bool ints_given(tensor_ints list)
{
	return !list.len || (list.len > 0 && list.data);
}

static inline bool ints_allowed(tensor_ints list)
{
	return list.len <= 0 || list.data;
}

static inline bool floats_given(tensor_floats list)
{
	return !list.len || (list.len > 0 && list.data);
}

static inline bool floats_allowed(tensor_floats list)
{
	return list.len <= 0 || list.data;
}

static inline bool scalars_given(tensor_scalars list)
{
	return !list.len || (list.len > 0 && list.data);
}

static inline bool string_given(const char *s)
{
	return s;
}

/*
 * The normal form, which kernels read: a bool is 0 or 1, and kind UINT stands for integers above INT64_MAX alone. A
 * scalar that the caller filled in by hand may have another form.
 */
static inline tensor_scalar scalar_normal(tensor_scalar s)
{
	if (unlikely(s.kind == TENSOR_SCALAR_BOOL))
		s.i = s.i != 0;
	else if (unlikely(s.kind == TENSOR_SCALAR_UINT) && s.u <= INT64_MAX)
		s.kind = TENSOR_SCALAR_INT;
	return s;
}

/* True for a scalar that wrong_scalar() has to look at: of kind UINT, of no kind, or a bool that is not 0 or 1. */
static inline bool scalar_unusual(tensor_scalar s)
{
	return s.kind == TENSOR_SCALAR_UINT || s.kind > TENSOR_SCALAR_COMPLEX ||
	       (s.kind == TENSOR_SCALAR_BOOL && s.u > 1);
}

/* Makes s normal. True with the error set if it is above INT64_MAX and the argument accepts no such integer. */
bool wrong_scalar(const char *op, const char *arg, tensor_scalar *s) __attribute__((cold));
/* The same without a change of the list: its elements are read with scalar_normal(). */
bool wrong_scalars(const char *op, const char *arg, tensor_scalars list);
/* EOVERFLOW: an integer above INT64_MAX for a dtype that does not hold it. */
int scalar_overflow(const char *op, const char *what, tensor_scalar s, enum tensor_dtype dtype)
	__attribute__((cold));

/* The errors of these checks. */
tensor *wrong_list(const char *op, const char *arg) __attribute__((cold));
int wrong_list_code(const char *op, const char *arg) __attribute__((cold));
/* For a NULL pointer to a result that cannot be dropped. */
int no_result_code(const char *op, const char *result) __attribute__((cold));

static inline bool list_complete(tensor_list list)
{
	if (list.len < 0 || (list.len && !list.data))
		return false;
	for (int64_t i = 0; i < list.len; i++)
		if (!list.data[i])
			return false;
	return true;
}

static inline uint32_t option_keys(tensor_options options)
{
	tensor_device d = options.device.type ? options.device : TENSOR_DEVICE_CPU;

	return device_key(d, TENSOR_STRIDED);
}

/* Checks an in-place or out argument: -EACCES for read-only memory, -EPERM for a tensor of inference mode. */
static inline int check_writable(const struct tensor_op *op, const tensor *t)
{
	return tensor_check_writable(op->schema.name, t);
}

/* Checks an out argument, which must be strided. */
static inline int check_given(const struct tensor_op *op, const tensor *t)
{
	if (unlikely(t->ext))
		return tensor_fail(EOPNOTSUPP,
				   "%s: out must be a strided tensor of plain numbers, got a "
				   "%s one",
				   op->schema.name, tensor_layout_name(t->layout));
	return check_writable(op, t);
}

/* The backend key of a tensor. */
static inline unsigned backend_key(const tensor *t)
{
	return top_key(t->keys & KEYS_BACKEND);
}

/* The kernel of op for the backend of a tensor; NULL with the error set. */
static inline tensor_kernel op_kernel(const struct tensor_op *op,
				      const struct tensor_kernel_table *kernels, const tensor *t)
{
	tensor_kernel fn = kernels->fn[backend_key(t)];

	if (unlikely(!fn))
		dispatch_no_kernel(op, t->keys & KEYS_BACKEND);
	return fn;
}

#endif
