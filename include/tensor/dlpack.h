/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * DLPack: exchange of strided tensors in host memory with other libraries, without a copy.
 *
 * The structures are those of DLPack 1.0, and of the older form without a version. A program that
 * uses <dlpack/dlpack.h> includes it first, and its definitions are used. <tensor/tensor.h> does
 * not include this header.
 */
#ifndef TENSOR_DLPACK_H
#define TENSOR_DLPACK_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_ /* include guard of <dlpack/dlpack.h> */
#define DLPACK_FLAG_BITMASK_READ_ONLY 1ul
#define DLPACK_FLAG_BITMASK_IS_COPIED 2ul

typedef enum {
	kDLCPU = 1,
	kDLCUDA = 2,
	kDLCUDAHost = 3,
	kDLROCMHost = 11,
} DLDeviceType;

typedef enum {
	kDLInt = 0,
	kDLUInt = 1,
	kDLFloat = 2,
	kDLBfloat = 4,
	kDLComplex = 5,
	kDLBool = 6,
	kDLFloat8_e4m3fn = 10,
	kDLFloat8_e5m2 = 12,
} DLDataTypeCode;

typedef struct DLPackVersion {
	uint32_t major, minor;
} DLPackVersion;

typedef struct DLDevice {
	DLDeviceType device_type;
	int32_t device_id;
} DLDevice;

typedef struct DLDataType {
	uint8_t code; /* DLDataTypeCode */
	uint8_t bits; /* of one lane; for a complex number, of both parts */
	uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape;
	int64_t *strides;     /* in elements; NULL: row-major without gaps */
	uint64_t byte_offset; /* of the first element, from data */
} DLTensor;

typedef struct DLManagedTensor {
	DLTensor dl_tensor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
	DLPackVersion version;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags; /* DLPACK_FLAG_BITMASK_* */
	DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

#define TENSOR_DLPACK_COPIED 1u /* t is a copy made for the receiver */

/**
 * tensor_to_dlpack() - export a tensor to another library
 * @t: a strided tensor in host memory, not quantized, that requires no gradient
 * @flags: 0 or TENSOR_DLPACK_COPIED
 *
 * Nothing is copied: both libraries use the same memory, which lives until the deleter is called
 * (in any thread), even if @t is released before. Changing the shape of @t in place does not affect
 * the export. The program must synchronize writes; writes by the receiver are not counted as
 * changes of a tensor saved by autograd. Read-only memory has DLPACK_FLAG_BITMASK_READ_ONLY. See
 * tensor_share_memory() for pointers to a small tensor that becomes shareable.
 *
 * Return: a structure whose deleter the receiver calls once, or NULL. EOPNOTSUPP: sparse, quantized
 *   or blocked, or on another device. EINVAL: requires a gradient (use tensor_detach()), unknown
 *   flags.
 */
struct DLManagedTensorVersioned *tensor_to_dlpack(tensor *t, unsigned flags);

/* The form without a version, for receivers that support no other. It has no flags: read-only
 * memory is EACCES, and TENSOR_DLPACK_COPIED is not passed on. */
struct DLManagedTensor *tensor_to_dlpack_unversioned(tensor *t, unsigned flags);

/**
 * tensor_from_dlpack() - import a tensor from another library
 * @managed: the other library's structure
 *
 * Returns a tensor on that library's memory. The tensor owns @managed, and calls its deleter in the
 * thread that releases the last reference to the memory, including views and saved tensors. Memory
 * marked read-only is never written.
 *
 * Return: a tensor, owned like an operator's result, or NULL; then @managed still belongs to the
 *   caller. EOPNOTSUPP: another version than 1.x, another device than host memory, a data type that
 *   the library does not have, vectors (lanes), more dimensions than TENSOR_MAX_DIMS. EINVAL:
 *   invalid contents: negative sizes, no data, no shape, data that is not aligned to its type, a
 *   bool that is neither 0 nor 1. EOVERFLOW: sizes or strides beyond 64 bits.
 */
tensor *tensor_from_dlpack(struct DLManagedTensorVersioned *managed);
tensor *tensor_from_dlpack_unversioned(struct DLManagedTensor *managed);

#ifdef __cplusplus
}
#endif
#endif
