/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Conversion of boxed arguments and results, for the generated unboxing functions. */
#ifndef TENSOR_BOXED_H
#define TENSOR_BOXED_H

#include "dispatch/dispatch.h"

struct unboxer {
	const struct tensor_op *op;
	const tensor_value *args;
	int nargs;
	tensor_value *rets;
	int nrets, filled;
	int err;       /* the first error; later calls do nothing */
	uint32_t skip; /* keys that are excluded from this call, but not from calls inside it */
};

/* The function of the operator for arguments with these keys; NULL with u->err set. */
static inline tensor_kernel unbox_function(struct unboxer *u, uint32_t keys)
{
	uint32_t ks = dispatch_keys(thread(), op_mask(u->op) & ~u->skip, keys);

	if (likely(ks)) {
		tensor_kernel fn = op_function(u->op, top_key(ks));

		/* It asks the thread again which fallback is the highest. boxed_call_past() puts it back. */
		if (unlikely(u->skip && fn == u->op->box))
			thread()->modes.exclude |= u->skip;
		return fn;
	}
	u->err = dispatch_missing(u->op, keys);
	return NULL;
}

/*
 * Options of a factory that are not in its schema (memory_format). A typed call sets them around the
 * fallback and restores the returned value; boxed_call_past() reads them.
 */
const tensor_options *box_options(const tensor_options *options);
void unbox_options(const struct unboxer *u, tensor_options *options);

/* As tensor_op_call(), without the functions for the keys in skip; the caller owns the results. */
int boxed_call_past(const struct tensor_op *op, uint32_t skip, const tensor_value *args, int nargs,
		    tensor_value *rets, int nrets);

tensor *unbox_tensor(struct unboxer *u, int i, bool required, tensor *def);
tensor *unbox_optional_tensor(struct unboxer *u, int i, bool required, tensor *def);
tensor_list unbox_list(struct unboxer *u, int i, bool required, tensor_list def);
int64_t unbox_int(struct unboxer *u, int i, bool required, int64_t def);
tensor_ints unbox_ints(struct unboxer *u, int i, bool required, tensor_ints def);
bool unbox_bool(struct unboxer *u, int i, bool required, bool def);
double unbox_float(struct unboxer *u, int i, bool required, double def);
tensor_scalar unbox_scalar(struct unboxer *u, int i, bool required, tensor_scalar def);
enum tensor_dtype unbox_dtype(struct unboxer *u, int i, bool required, int def);
enum tensor_layout unbox_layout(struct unboxer *u, int i, bool required, int def);
enum tensor_memory_format unbox_memory_format(struct unboxer *u, int i, bool required, int def);
tensor_generator *unbox_generator(struct unboxer *u, int i, bool required, tensor_generator *def);
tensor_device unbox_device(struct unboxer *u, int i, bool required, tensor_device def);
tensor_floats unbox_floats(struct unboxer *u, int i, bool required, tensor_floats def);
tensor_scalars unbox_scalars(struct unboxer *u, int i, bool required, tensor_scalars def);
uint64_t unbox_bools(struct unboxer *u, int i, bool required, uint64_t def);
const char *unbox_string(struct unboxer *u, int i, bool required, const char *def);
/* Stores an optional result, which may be NULL. */
void box_optional(struct unboxer *u, tensor *t);
/*
 * Space for the results of an operator that returns Tensor[]. box_list() stores n results, or fails
 * if n < 0, and frees the space.
 */
tensor **unbox_room(struct unboxer *u);
int box_list(struct unboxer *u, tensor **results, int n);
/* Stores a result; NULL: the call failed. */
int box_result(struct unboxer *u, tensor *t);

#endif
