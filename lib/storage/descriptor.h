/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What a buffer is about, for tools. The device provider has it checked by the kernel; the memfd
 * provider keeps it in the last page of the file, where tensorstat reads it through
 * /proc/PID/fd. Whoever reads that page must not trust it.
 */
#ifndef TENSOR_DESCRIPTOR_H
#define TENSOR_DESCRIPTOR_H

#include <stdint.h>
#include <tensor/types.h>

#define TENSOR_LABEL_MAX 32 /* bytes, the final NUL included */

struct tensor_descriptor {
	uint32_t dtype, ndim;
	int64_t sizes[TENSOR_MAX_DIMS];
	int64_t strides[TENSOR_MAX_DIMS]; /* elements */
	int64_t offset; /* bytes */
	char label[TENSOR_LABEL_MAX];
};

#define DESCRIPTOR_PAGE	 4096 /* the last of a memfd */
#define DESCRIPTOR_MAGIC "tensor\0\1" /* its first 8 bytes; the last of them is the version */

struct descriptor_page {
	char magic[8];
	struct tensor_descriptor d;
};

#endif
