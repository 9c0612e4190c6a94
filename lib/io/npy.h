/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The header of a .npy file, format versions 1 to 3 of NumPy's documentation. */
#ifndef TENSOR_IO_NPY_H
#define TENSOR_IO_NPY_H

#include "io/file.h"

#define NPY_PREFIX 12 /* bytes that give the length of the header; version 1 uses 10 of them */
/* accepted when reading; written headers have about 400 bytes at most */
#define NPY_HEADER_MAX 65536

struct npy {
	struct file_span span; /* offset relative to the start of the header */
	int ndim;
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
};

/* Length of the whole header in bytes from its first NPY_PREFIX bytes, or -errno. `f` gives the
 * prefix of messages. */
int64_t npy_header_length(struct file *f, const unsigned char *prefix);
/* Parse the whole header. */
int npy_parse(struct file *f, const unsigned char *header, int64_t length, struct npy *npy);
/* Tensor on a storage of its data; takes ownership of s. Returns NULL if s is NULL. */
tensor *npy_tensor(const struct npy *npy, struct tensor_storage *s);

/* Write the header of t, contiguous or in column-major order, to buf of NPY_HEADER_ROOM bytes.
 * Returns its length, a multiple of 64, or -errno. */
#define NPY_HEADER_ROOM 1024
int npy_format(const char *op, const tensor *t, bool fortran, char *buf);

#endif
