/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The header of a .npy file: what NumPy's documentation calls format versions 1, 2 and 3. */
#ifndef TENSOR_IO_NPY_H
#define TENSOR_IO_NPY_H

#include "io/file.h"

#define NPY_PREFIX     12 /* what tells the length of the header; version 1 needs two bytes less */
#define NPY_HEADER_MAX 65536 /* ours has at most some 400 bytes */

struct npy {
	struct file_span span; /* offset from the begin of the header */
	int ndim;
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
};

/* Bytes of the whole header, from its first NPY_PREFIX; -errno. `f` is for messages. */
int64_t npy_header_length(struct file *f, const unsigned char *prefix);
/* Reads the whole header. */
int npy_parse(struct file *f, const unsigned char *header, int64_t length, struct npy *npy);
/* The tensor on a storage of its data, which is consumed. NULL passes. */
tensor *npy_tensor(const struct npy *npy, struct tensor_storage *s);

/* A header for t, contiguous or in Fortran's order, of a length that is a multiple of 64: the
 * length, or -errno. buf has NPY_HEADER_ROOM. */
#define NPY_HEADER_ROOM 1024
int npy_format(const char *op, const tensor *t, bool fortran, char *buf);

#endif
