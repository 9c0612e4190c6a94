/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What both directions of DLPack use. */
#ifndef DEVTENSOR_DLPACK_H
#define DEVTENSOR_DLPACK_H

#include "internal.h"

#include <tensor/dlpack.h>

/* Names of capsules. */
extern const char dlpack_plain[], dlpack_plain_used[], dlpack_versioned[], dlpack_versioned_used[];

/* The library's error as a BufferError, but for a lack of memory. NULL. */
PyObject *dlpack_raise(void);
/* Two integers; what names the argument in the TypeError. 0 or -1. */
int dlpack_pair(PyObject *o, const char *what, long pair[2]);
/* None, or True or False: -1, 1 or 0. Returns 0 or -1. */
int dlpack_copy_argument(PyObject *o, int *copy);
/* A copy without history on the device, made without the lock. */
PyObject *dlpack_copy_to(tensor *t, tensor_device device);

static inline bool same_device(tensor_device a, tensor_device b)
{
	return a.type == b.type && a.index == b.index;
}

PyObject *dlpack_import(PyObject *module, PyObject *args, PyObject *kwargs);

#endif
