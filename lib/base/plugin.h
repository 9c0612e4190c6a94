/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Plugins of the library, which are opened when they are first needed: CUDA, oneDNN. */
#ifndef TENSOR_PLUGIN_H
#define TENSOR_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens the plugin `file`, whose constructor registers what it brings. The path is that of the
 * environment variable; else that of the file beside libtensor, if there is one; else the loader
 * searches. False: `reason` has the loader's error text.
 */
bool plugin_open(const char *file, const char *variable, char *reason, size_t size);

#endif
