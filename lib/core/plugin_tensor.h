/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * tensor_new() on the CPU, tensor_new_unstrided() and tensor_put() for plugins, exported under
 * other names: calls of an exported function inside the library would go through the PLT.
 */
#ifndef TENSOR_PLUGIN_TENSOR_H
#define TENSOR_PLUGIN_TENSOR_H

#include "core/tensor_impl.h"

tensor *tensor_plugin_new(enum tensor_dtype dtype, const int64_t *sizes, int ndim);
tensor *tensor_plugin_new_unstrided(tensor_options options, const int64_t *sizes, int ndim,
				    size_t nbytes, struct tensor_extension *ext);
void tensor_plugin_put(tensor *t);

#endif
