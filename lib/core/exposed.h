/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Called with a tensor's extension when the program gets the address of its elements to write to them: what was computed from the elements
 * must not be kept. NULL, or set once when the library is loaded.
 */
#ifndef TENSOR_EXPOSED_H
#define TENSOR_EXPOSED_H

#include "core/tensor_impl.h"

extern void (*extension_exposed)(const tensor *t);

#endif
