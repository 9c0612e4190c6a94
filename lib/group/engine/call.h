/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The part of a call that ranks must agree on, and that an error shows of each. */
#ifndef TENSOR_GROUP_CALL_H
#define TENSOR_GROUP_CALL_H

#include <stdint.h>
#include <tensor/types.h>

/* The shape is that of the tensor that all ranks have. */
struct group_call {
	int32_t kind, op, root;
	int32_t dtype, ndim;
	int32_t device; /* enum tensor_device_type: where the engine finds the tensors */
	int64_t sizes[TENSOR_MAX_DIMS];
};

#endif
