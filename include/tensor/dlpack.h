/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * DLPack: strided tensors in host memory, given to other libraries and taken from them without a
 * copy.
 *
 * The structures are DLPack's (version 1.0, and the form without a version that came before). A
 * program that has <dlpack/dlpack.h> includes that first, and its structures are used.
 * <tensor/tensor.h> does not include this header.
 */
#ifndef TENSOR_DLPACK_H
#define TENSOR_DLPACK_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_ /* of <dlpack/dlpack.h> */
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
	uint8_t bits; /* of one lane; of a complex number, of both parts */
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

#define TENSOR_DLPACK_COPIED 1u /* t is a copy that was made for the receiver */

/**
 * tensor_to_dlpack() - give a tensor to another library
 * @t: a strided tensor of plain numbers in host memory that requires no gradient
 * @flags: 0 or TENSOR_DLPACK_COPIED
 *
 * Nothing is copied: both libraries see the same memory, which lives until the deleter is called,
 * in any thread, whatever becomes of @t meanwhile; what changes the shape of @t in place does not
 * change the result. Who may write when is for the program to arrange; what the receiver writes
 * does not count as a change of a tensor that autograd saved. Read-only memory has
 * DLPACK_FLAG_BITMASK_READ_ONLY. See tensor_share_memory() for what happens to a pointer when a
 * small tensor becomes shareable.
 *
 * Return: a structure whose deleter the receiver calls once, or NULL. EOPNOTSUPP: sparse, quantised
 * or blocked, or of another device. EINVAL: requires a gradient (use tensor_detach()), unknown
 * flags.
 */
struct DLManagedTensorVersioned *tensor_to_dlpack(tensor *t, unsigned flags);

/* The form without a version, for receivers that know no other. It has no flags, so that read-only
 * memory is EACCES, and TENSOR_DLPACK_COPIED is not told. */
struct DLManagedTensor *tensor_to_dlpack_unversioned(tensor *t, unsigned flags);

/**
 * tensor_from_dlpack() - take a tensor from another library
 * @managed: what that library made
 *
 * A tensor on that library's memory. It has taken over @managed, and calls its deleter in whatever
 * thread lets go of the memory, views and saved tensors included. Memory that is marked read-only
 * is not written to.
 *
 * Return: owned like any operator's result, or NULL; then @managed still belongs to the caller.
 * EOPNOTSUPP: another version than 1.x, another device than host memory, a data type that the
 * library does not have, vectors (lanes), more dimensions than TENSOR_MAX_DIMS. EINVAL: what is no
 * tensor: negative sizes, no data, no shape, data that is not aligned to its type, a bool that is
 * neither 0 nor 1. EOVERFLOW: sizes or strides beyond 64 bits.
 */
tensor *tensor_from_dlpack(struct DLManagedTensorVersioned *managed);
tensor *tensor_from_dlpack_unversioned(struct DLManagedTensor *managed);

#ifdef __cplusplus
}
#endif
#endif
