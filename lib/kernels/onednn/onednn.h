/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What the files of libtensor_onednn.so share. A blocked tensor carries oneDNN's memory descriptor;
 * its bytes are its storage's, which is an ordinary one. A primitive is made once for a key, which
 * says everything that its making reads, and is kept.
 */
#ifndef TENSOR_ONEDNN_H
#define TENSOR_ONEDNN_H

#include "core/plugin_tensor.h"
#include "kernels/abi/onednn.h"

#include <oneapi/dnnl/dnnl.h>

struct blocked {
	struct tensor_extension ext;
	/* Of the tensor's sizes, but for weights in groups: [groups, out / groups, ...]. */
	dnnl_memory_desc_t md;
};

static inline bool is_blocked(const tensor *t)
{
	return t->keys & KEY_BIT(TENSOR_KEY_BLOCKED_CPU);
}

static inline const dnnl_memory_desc_t *md_of(const tensor *t)
{
	return &((const struct blocked *)t->ext)->md;
}

static inline void *bytes_of(const tensor *t)
{
	return t->storage->data;
}

/* ---- plugin.c: the engine and its threads ---- */

extern dnnl_engine_t onednn_engine;

/* -errno with the error set; 0 for success. */
int onednn_check(const char *op, dnnl_status_t status);
/*
 * oneDNN does not look whether it gets the memory that it asks for: it writes to NULL, or throws what no C function
 * catches. So it is called only while the process can have more than it takes: -ENOMEM with the error set
 * otherwise. What another thread takes in between is not there for oneDNN.
 */
int onednn_memory_for(const char *op, size_t n);
#define MEMORY_TO_MAKE ((size_t)32 << 20) /* code that is generated, and descriptors of it */
#define MEMORY_TO_RUN  ((size_t)1 << 20)  /* descriptions of operands and streams */
/* How many threads oneDNN is to use now. */
int onednn_threads(void);

/* ---- primitive.c ---- */

#define KEY_NUMBERS 32

enum primitive_kind {
	PRIMITIVE_REORDER, /* md[0] to md[1] */
	PRIMITIVE_CONVOLUTION,
	PRIMITIVE_LINEAR,
	PRIMITIVE_POOL,
	PRIMITIVE_SOFTMAX,
	PRIMITIVE_BATCH_NORM,
	PRIMITIVE_KINDS
};

/* n and md are used up to their counts; the makers know what each number is. */
struct primitive_key {
	int32_t kind, threads, numbers, mds;
	int64_t n[KEY_NUMBERS];
	dnnl_memory_desc_t md[2];
};

struct primitive {
	struct primitive_key key;
	uint64_t hash, used;
	atomic_int refs;
	struct primitive *next;
	dnnl_primitive_t primitive;
	dnnl_memory_desc_t src, weights, dst; /* as oneDNN chose them */
	size_t scratch;
	bool slow; /* element by element, from any order to any other */
};

/* One of these for each kind: a descriptor from the key alone. */
typedef dnnl_status_t (*primitive_maker)(const struct primitive_key *key,
					 dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *pd);
extern const primitive_maker primitive_makers[PRIMITIVE_KINDS];

struct primitive_arg {
	int index; /* DNNL_ARG_... */
	const dnnl_memory_desc_t *md;
	void *data;
};

static inline struct primitive_key primitive_key(enum primitive_kind kind)
{
	struct primitive_key key;

	key.kind = kind;
	key.numbers = key.mds = 0;
	return key;
}

static inline void key_number(struct primitive_key *key, int64_t n)
{
	key->n[key->numbers++] = n;
}

static inline void key_numbers(struct primitive_key *key, const int64_t *n, int count)
{
	memcpy(key->n + key->numbers, n, count * sizeof(*n));
	key->numbers += count;
}

static inline void key_md(struct primitive_key *key, const dnnl_memory_desc_t *md)
{
	key->md[key->mds++] = *md;
}

/* Borrowed until primitive_put(); NULL with the error set. */
struct primitive *primitive_get(const char *op, struct primitive_key *key);
void primitive_put(struct primitive *p);
int primitive_run(const char *op, const struct primitive *p, const struct primitive_arg *args,
		  int nargs);
/* All of it. */
int primitive_once(const char *op, struct primitive_key *key, const struct primitive_arg *args,
		   int nargs);

/* ---- memory.c ---- */

/* Row-major, of f32 or bf16 elements. */
int md_plain(const char *op, dnnl_memory_desc_t *md, unsigned dtype, const int64_t *sizes,
	     int ndim);
/* In whatever order oneDNN likes. */
dnnl_status_t md_any(dnnl_memory_desc_t *md, unsigned dtype, const int64_t *sizes, int ndim);
/* Bytes in one order into another. */
int onednn_reorder(const char *op, const dnnl_memory_desc_t *from, const void *src,
		   const dnnl_memory_desc_t *to, void *dst);
/* Uninitialised. like may be NULL, else its extension is shared if the descriptor is the same. */
tensor *blocked_new(const char *op, const dnnl_memory_desc_t *md, unsigned dtype,
		    const int64_t *sizes, int ndim, const tensor *like);

/* A tensor's numbers, blocked or dense, as a descriptor and an address. */
struct operand {
	dnnl_memory_desc_t md;
	void *data;
	tensor *own; /* memory of a copy, or NULL */
};

/* Of the tensor as it is, seen as sizes (its own, or with the same elements when it is plain; a
 * copy is made when it is not). */
int operand_get(const char *op, struct operand *o, const tensor *t, const int64_t *sizes, int ndim);
/* Reordered where it is not so. */
int operand_as(const char *op, struct operand *o, const dnnl_memory_desc_t *md);
static inline void operand_put(struct operand *o)
{
	plugin_tensor_put(o->own);
}

tensor *onednn_from_dense(const char *op, const tensor *dense, enum tensor_dtype dtype);
int onednn_to_dense(const char *op, tensor *dense, const tensor *self);
tensor *onednn_empty(const char *op, enum tensor_dtype dtype, const int64_t *sizes, int ndim);
bool onednn_is_plain(const tensor *self);
tensor *onednn_clone(const char *op, const tensor *self);
tensor *onednn_reshape(const char *op, const tensor *self, const int64_t *sizes, int ndim);
tensor *onednn_permute(const char *op, const tensor *self, const int *permutation);
tensor *onednn_as_order(const char *op, tensor *other, const tensor *self);
int onednn_zero_padding(const char *op, tensor *self);

/* ---- product.c, pool.c, norm.c: see ../onednn.h ---- */

tensor *onednn_convolution(const char *op, const tensor *input, const tensor *weight,
			   const tensor *bias, const int64_t *sizes, const struct conv_params *p);
tensor *onednn_linear(const char *op, const tensor *input, const tensor *weight,
		      const tensor *bias);
tensor *onednn_convolution_weight(const char *op, const tensor *weight, const int64_t *input_sizes,
				  const int64_t *sizes, const struct conv_params *p);
tensor *onednn_linear_weight(const char *op, const tensor *weight, int64_t rows);
tensor *onednn_pool(const char *op, const tensor *self, const int64_t *sizes,
		    const struct pool_params *p, bool max);
tensor *onednn_softmax(const char *op, const tensor *self, int dim);
tensor *onednn_batch_norm(const char *op, const tensor *self, const tensor *weight,
			  const tensor *bias, const tensor *mean, const tensor *var, float eps);

dnnl_status_t make_convolution(const struct primitive_key *key, dnnl_primitive_attr_t attr,
			       dnnl_primitive_desc_t *pd);
dnnl_status_t make_linear(const struct primitive_key *key, dnnl_primitive_attr_t attr,
			  dnnl_primitive_desc_t *pd);
dnnl_status_t make_pool(const struct primitive_key *key, dnnl_primitive_attr_t attr,
			dnnl_primitive_desc_t *pd);
dnnl_status_t make_softmax(const struct primitive_key *key, dnnl_primitive_attr_t attr,
			   dnnl_primitive_desc_t *pd);
dnnl_status_t make_batch_norm(const struct primitive_key *key, dnnl_primitive_attr_t attr,
			      dnnl_primitive_desc_t *pd);

#endif
