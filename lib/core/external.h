/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tensors on memory that the library did not allocate. Its description comes from the program or from
 * another library and may be wrong: each number is read once, into a struct external, and checked there.
 */
#ifndef TENSOR_EXTERNAL_H
#define TENSOR_EXTERNAL_H

#include "core/tensor_impl.h"

struct external {
	const char *op;	      /* for error texts */
	tensor_device device; /* without a type: the CPU */
	enum tensor_dtype dtype;
	bool readonly;
	int ndim;
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	int64_t numel, low, high; /* lowest and highest offset of an element from the first one */
	uintptr_t first;	  /* address of the first element */
};

/*
 * Sets the geometry and checks that the offsets of all elements are within 64 bits; op and dtype are set.
 * strides NULL: row-major. A dimension of size 0 or 1 and all dimensions of a tensor without elements get the
 * strides of a contiguous tensor, because theirs have no meaning. ndim is at most TENSOR_MAX_DIMS. 0 or -errno.
 */
int external_set_geometry(struct external *x, int ndim, const int64_t *sizes,
			  const int64_t *strides);
/*
 * Sets the address of the first element, byte_offset bytes behind data, and checks that all elements are in the
 * address space, that it is aligned, that memory of a device is there, and that bools are 0 or 1; those of a device are
 * copied to the host for that. 0 or -errno.
 */
int external_set_data(struct external *x, const void *data, uint64_t byte_offset);
/*
 * A tensor, given to the open scope. ops->free is called for owner, in the thread that releases the last tensor on
 * the memory. On failure, NULL with the error set, it is not called.
 */
tensor *external_tensor(const struct external *x, const struct storage_ops *ops, void *owner);

/* Whether another library can use the memory of t: 0, or -errno with the error set. devices: also that of CUDA. */
int external_check_export(const char *op, const tensor *t, bool devices);

/* Whether n bytes are 0 or 1, as the library requires of the elements of bool. */
bool bytes_are_bools(const uint8_t *p, uint64_t n);

#endif
