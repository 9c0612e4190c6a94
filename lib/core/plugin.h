/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Libraries of ours that are opened when they are first needed: CUDA, oneDNN. */
#ifndef TENSOR_PLUGIN_H
#define TENSOR_PLUGIN_H

#include "core/tensor_impl.h"

/*
 * Opens `file`, whose constructor registers what it brings: the file that the environment variable
 * names, else the one beside libtensor itself, else the one that the loader finds. False with the
 * loader's words in `reason`.
 */
bool plugin_open(const char *file, const char *variable, char *reason, size_t size);

/*
 * For plugins: tensor_new() on the CPU, tensor_new_unstrided() and tensor_put(). Under names of their
 * own, because a name that is exported is looked up at each of the library's own calls.
 */
tensor *plugin_tensor(enum tensor_dtype dtype, const int64_t *sizes, int ndim);
tensor *plugin_tensor_unstrided(tensor_options options, const int64_t *sizes, int ndim,
				size_t nbytes, struct tensor_extension *ext);
void plugin_tensor_put(tensor *t);

#endif
