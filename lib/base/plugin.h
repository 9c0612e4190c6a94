/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Plugins of the library, loaded when first needed: CUDA, oneDNN. */
#ifndef TENSOR_PLUGIN_H
#define TENSOR_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Loads the plugin file, whose constructor registers its functions. Path: the environment variable,
 * else file beside libtensor if it exists, else the search of the dynamic loader. Returns false
 * with the loader's error text in reason.
 */
bool plugin_open(const char *file, const char *variable, char *reason, size_t size);

#endif
