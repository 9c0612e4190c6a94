/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Shared by the files of libtensor_onednn.so. A blocked tensor carries oneDNN's memory descriptor;
 * its bytes are in an ordinary storage. A primitive is created once for each key, which contains
 * everything that its creation reads, and is cached.
 */
#ifndef TENSOR_ONEDNN_H
#define TENSOR_ONEDNN_H

#include "core/plugin_tensor.h"
#include "kernels/abi/onednn.h"

#include <oneapi/dnnl/dnnl.h>

struct blocked {
	struct tensor_extension ext;
	/* Has the tensor's sizes; for grouped weights [groups, out / groups, ...]. */
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

/* ---- engine.c: the engine, errors, memory, threads ---- */

extern dnnl_engine_t onednn_engine;
/* Creates the engine; called once, by the plugin's constructor. */
dnnl_status_t onednn_engine_open(void);

/* 0, or -errno with the error set. */
int onednn_check(const char *op, dnnl_status_t status);
/*
 * Returns 0 if the process can allocate n bytes now, -ENOMEM with the error set otherwise. oneDNN
 * does not check its own allocations: it writes to NULL, or throws an exception that C cannot
 * catch. Another thread may still take the memory between this check and oneDNN's call.
 */
int onednn_memory_for(const char *op, size_t n);
#define MEMORY_TO_MAKE ((size_t)32 << 20) /* generated code and its descriptors */
#define MEMORY_TO_RUN  ((size_t)1 << 20)  /* dnnl_memory objects and a stream */
/* The number of threads that oneDNN should use: 1 in a forked child. */
int onednn_threads(void);

/* ---- primitive.c ---- */

#define KEY_NUMBERS 32

struct primitive_key;

/* Creates a primitive descriptor from the key alone. */
typedef dnnl_status_t (*primitive_maker)(const struct primitive_key *key,
					 dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *pd);

/*
 * Everything that determines a primitive. The first `numbers` of n and the first `mds` of md are
 * used; `make` defines their meaning. There is no padding before n: keys are hashed as bytes.
 */
struct primitive_key {
	primitive_maker make;
	int32_t threads;
	int16_t numbers, mds;
	int64_t n[KEY_NUMBERS];
	dnnl_memory_desc_t md[2];
};

_Static_assert(offsetof(struct primitive_key, n) ==
		       sizeof(primitive_maker) + sizeof(int32_t) + 2 * sizeof(int16_t),
	       "padding in a key would be hashed");

struct primitive {
	struct primitive_key key;
	uint64_t hash, used;
	atomic_int refs;
	struct primitive *next;
	dnnl_primitive_t primitive;
	dnnl_memory_desc_t src, weights, dst; /* chosen by oneDNN */
	size_t scratch;			      /* bytes of scratchpad */
	bool slow;			      /* oneDNN's reference implementation of a reorder */
};

struct primitive_arg {
	int index; /* DNNL_ARG_... */
	const dnnl_memory_desc_t *md;
	void *data;
};

static inline struct primitive_key primitive_key(primitive_maker make)
{
	struct primitive_key key;

	key.make = make;
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

/* Returns a reference, to be released by primitive_put(), or NULL with the error set. */
struct primitive *primitive_get(const char *op, struct primitive_key *key);
void primitive_put(struct primitive *p);
int primitive_run(const char *op, const struct primitive *p, const struct primitive_arg *args,
		  int nargs);
/* primitive_get(), primitive_run() and primitive_put(). */
int primitive_once(const char *op, struct primitive_key *key, const struct primitive_arg *args,
		   int nargs);

/* ---- memory.c ---- */

/* Descriptor of a row-major tensor of f32 or bf16 elements. */
int md_plain(const char *op, dnnl_memory_desc_t *md, unsigned dtype, const int64_t *sizes,
	     int ndim);
/* Descriptor that lets oneDNN choose the memory format. */
dnnl_status_t md_any(dnnl_memory_desc_t *md, unsigned dtype, const int64_t *sizes, int ndim);
/* Copies src, laid out as `from`, to dst, laid out as `to`. */
int onednn_reorder(const char *op, const dnnl_memory_desc_t *from, const void *src,
		   const dnnl_memory_desc_t *to, void *dst);
/* An uninitialised blocked tensor. Shares the extension of `like` if that has the same
 * descriptor; like may be NULL. */
tensor *blocked_new(const char *op, const dnnl_memory_desc_t *md, unsigned dtype,
		    const int64_t *sizes, int ndim, const tensor *like);

/* The elements of a blocked or dense tensor: a descriptor and an address. */
struct operand {
	dnnl_memory_desc_t md;
	void *data;
	tensor *own; /* owns the memory of a copy, or NULL */
};

/* The operand for t viewed as `sizes`. A blocked tensor whose own sizes differ from these is
 * copied to row-major order first. */
int operand_get(const char *op, struct operand *o, const tensor *t, const int64_t *sizes, int ndim);
/* Copies the operand to the format md unless it has that format. */
int operand_as(const char *op, struct operand *o, const dnnl_memory_desc_t *md);
static inline void operand_put(struct operand *o)
{
	tensor_plugin_put(o->own);
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

/* ---- product.c, pool.c, norm.c: documented in kernels/abi/onednn.h ---- */

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

#endif
