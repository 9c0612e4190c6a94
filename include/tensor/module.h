/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A named tree of parameters and buffers: the state of a model. The model itself is C functions over
 * it, and <tensor/layers.h> has functions for the usual layers:
 *
 *	static tensor *net(tensor_module *m, tensor *x)
 *	{
 *		x = tensor_relu(tensor_module_linear(m, "hidden", x, 128));
 *		return tensor_module_linear(m, "out", x, 10);
 *	}
 *
 *	tensor_module *m = tensor_module_new(TENSOR_OPTIONS(0));
 *	...
 *	tensor_module_free(m);
 *
 * The first call of a layer makes its parameters; later calls use them. Names are those of PyTorch's
 * state dict, "layer1.0.conv1.weight", and files are safetensors.
 *
 * Ownership. tensor_module_new() returns a tree that the caller frees. Everything else that these
 * functions return is borrowed from the tree: children, parameters, names. An open tensor_scope does
 * not release it.
 *
 * Threads. Several threads may call layers, tensor_module_child(), tensor_module_parameter(),
 * tensor_module_buffer() and tensor_module_get() on one tree, also if these make parameters: each
 * name is made once. In training, batch_norm and instance_norm with statistics change their buffers without a lock.
 * All other functions need that no other thread uses the tree. A child of a fork may call layers that
 * were called before.
 *
 * Errors. As everywhere: NULL or -errno, with the thread's error record. A layer given NULL returns
 * NULL and keeps the first error.
 */
#ifndef TENSOR_MODULE_H
#define TENSOR_MODULE_H

#include <tensor/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tree, or a child within one: opaque. */
typedef struct tensor_module tensor_module;

/* A new, empty tree in training mode. Parameters that are made in it get the dtype (default f32),
 * which is floating or complex, the device and .shareable of the options. NULL with the error set. */
tensor_module *tensor_module_new(tensor_options options);
/* Free a tree, and its references to its tensors. NULL is ignored; a child belongs to its tree and is
 * freed with it: for a child only the error record is set. */
void tensor_module_free(tensor_module *m);

/*
 * A path is one or more names separated by '.', relative to a module. A name has no '.', and is not
 * empty; the whole path from the root has at most TENSOR_MODULE_PATH bytes of UTF-8.
 */
#define TENSOR_MODULE_PATH 512

/* The child at a path, made when it does not exist, in the mode of its parent. EEXIST if a parameter
 * has that name. */
tensor_module *tensor_module_child(tensor_module *m, const char *path);

/* Initialise t, a tensor of uninitialised elements, in place; NULL fails. Called without gradients. */
typedef tensor *(*tensor_init_fn)(tensor *t, void *ctx);

/*
 * The parameter at a path. The first call makes it: contiguous, of these sizes, with the tree's dtype
 * and device, initialised by init (NULL: zeros), a leaf that requires a gradient, also inside of
 * tensor_no_grad. EINVAL if it has other sizes; EEXIST if a buffer or a child has that name.
 */
tensor *tensor_module_parameter(tensor_module *m, const char *path, tensor_ints_arg sizes,
				tensor_init_fn init, void *ctx);
/* A buffer: state that is saved and requires no gradient. dtype TENSOR_DTYPE_NONE is the tree's. */
tensor *tensor_module_buffer(tensor_module *m, const char *path, tensor_ints_arg sizes,
			     enum tensor_dtype dtype, tensor_init_fn init, void *ctx);
/* The parameter or buffer at a path. NULL with ENOENT. */
tensor *tensor_module_get(const tensor_module *m, const char *path);
/*
 * Give a parameter a second name: tensor_module_tie(m, "head.weight", "embedding.weight"). Both are
 * one tensor, listed once for the optimiser and saved under both names. A file may lack one of them.
 * A layer that is called later uses it. EEXIST if `path` exists.
 */
int tensor_module_tie(tensor_module *m, const char *path, const char *existing);

/* ---- lists ---- */

#define TENSOR_MODULE_PARAMETERS 1u
#define TENSOR_MODULE_BUFFERS	 2u

/*
 * The parameters or buffers of m and all below it with their paths, in the order of PyTorch's state
 * dict: those of a module as they were made, parameters before buffers, then its children. Returns
 * their number or -errno; *named is valid until the next call for m with the same `which`, and until
 * m is freed. Tied parameters are listed under each name.
 */
int64_t tensor_module_named(tensor_module *m, unsigned which, const struct tensor_named **named);
/* The parameters in the same order, each tensor once: for an optimiser. Valid until the next call for
 * m. Empty, with the error set, for NULL and without memory. */
tensor_list tensor_module_parameters(tensor_module *m);
/* Number of elements of all parameters, or -errno. */
int64_t tensor_module_numel(tensor_module *m);

/* ---- mode ---- */

/* Set training (the mode at first) or evaluation for m and all below it. dropout and norms read it. */
int tensor_module_train(tensor_module *m, bool training);
/* False for NULL. */
bool tensor_module_is_training(const tensor_module *m);
/* Set whether parameters of m and below require a gradient, also those that are made later. */
int tensor_module_set_requires_grad(tensor_module *m, bool requires_grad);
/* Remove the gradients of all parameters. */
int tensor_module_zero_grad(tensor_module *m);

/*
 * Convert parameters and floating buffers of m and below to another dtype, and all to another device;
 * zero options stay as they are. Of the root, also those that are made later. Tensors that change are
 * replaced, so an optimiser is made after it. On failure nothing is changed.
 */
int tensor_module_to(tensor_module *m, tensor_options options);
/* tensor_share_memory() for every parameter and buffer: then a forked child uses the same memory, and
 * tensor_send() gives another process access without a copy. */
int tensor_module_share_memory(tensor_module *m);

/* ---- files ---- */

/* Save parameters and buffers of m and below as safetensors; the old file is replaced atomically. */
int tensor_module_save(tensor_module *m, const char *path);
/*
 * Save m and an optimizer to one file, which is replaced atomically, so that a training that is interrupted can go on
 * from it bit for bit. tensor_module_load() and tensor_optim_load() each read their part of it: the module before the
 * first call of the model, if need be, and the optimizer, which needs the parameters, after it. What else a training
 * needs, such as the number of steps, can be buffers of m. 0 or -errno.
 */
struct tensor_optim;
int tensor_training_save(tensor_module *m, struct tensor_optim *o, const char *path);

#define TENSOR_LOAD_STRICT 1u /* ENOENT if a name of the file or of m has no counterpart now */
#define TENSOR_LOAD_CAST   2u /* convert other dtypes; without it they are an error */

/*
 * Load a safetensors file. What m has is copied in place; shapes and dtypes must match. Other tensors
 * are kept until a layer, tensor_module_parameter() or tensor_module_buffer() first uses their name,
 * so a file may be loaded before the first call of the model. All is checked before anything is
 * changed. 0 or -errno.
 */
int tensor_module_load(tensor_module *m, const char *path, unsigned flags);
/* After loading one or several files, and as a rule after the first call of the model: 0 if every name
 * of the files was used and every name of m was in one; ENOENT with names in the error record. */
int tensor_module_check_loaded(tensor_module *m);
/* The names of files that were not used, and the parameters and buffers that were in no file, as
 * tensor_module_named(): their number or -errno. */
int64_t tensor_module_unexpected(tensor_module *m, const struct tensor_named **named);
int64_t tensor_module_missing(tensor_module *m, const struct tensor_named **named);

#ifdef __cplusplus
}
#endif
#endif
