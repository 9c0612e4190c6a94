/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * DLPack: exchange of strided tensors in host memory or that of CUDA devices with other libraries, without a copy.
 *
 * The definitions are those of DLPack 1.3. A program that uses <dlpack/dlpack.h> of any version since 1.0, or
 * PyTorch's <ATen/dlpack.h>, includes it first, and its definitions are used; included afterwards, it finds
 * that they are there. <tensor/tensor.h> does not include this header.
 */
#ifndef TENSOR_DLPACK_H
#define TENSOR_DLPACK_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_ /* include guard of <dlpack/dlpack.h> */
#define DLPACK_DLPACK_H_

#ifdef __cplusplus
#define DLPACK_EXTERN_C extern "C"
#else
#define DLPACK_EXTERN_C
#endif
#define DLPACK_DLL

/* Another major version has other structures, another minor version more enumerators or flags. */
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

typedef struct DLPackVersion {
	uint32_t major, minor;
} DLPackVersion;

/* ---- tensors ---- */

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
	kDLCPU = 1,
	kDLCUDA = 2,
	kDLCUDAHost = 3, /* host memory that CUDA has pinned */
	kDLOpenCL = 4,
	kDLVulkan = 7,
	kDLMetal = 8,
	kDLVPI = 9,
	kDLROCM = 10,
	kDLROCMHost = 11, /* host memory that HIP has pinned */
	kDLExtDev = 12,
	kDLCUDAManaged = 13,
	kDLOneAPI = 14,
	kDLWebGPU = 15,
	kDLHexagon = 16,
	kDLMAIA = 17,
	kDLTrn = 18,
} DLDeviceType;

typedef struct DLDevice {
	DLDeviceType device_type;
	int32_t device_id; /* 0 for host memory */
} DLDevice;

typedef enum {
	kDLInt = 0,
	kDLUInt = 1,
	kDLFloat = 2,
	kDLOpaqueHandle = 3,
	kDLBfloat = 4,
	kDLComplex = 5,
	kDLBool = 6,
	kDLFloat8_e3m4 = 7,
	kDLFloat8_e4m3 = 8,
	kDLFloat8_e4m3b11fnuz = 9,
	kDLFloat8_e4m3fn = 10,
	kDLFloat8_e4m3fnuz = 11,
	kDLFloat8_e5m2 = 12,
	kDLFloat8_e5m2fnuz = 13,
	kDLFloat8_e8m0fnu = 14,
	kDLFloat6_e2m3fn = 15,
	kDLFloat6_e3m2fn = 16,
	kDLFloat4_e2m1fn = 17,
} DLDataTypeCode;

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

/* The form without a version. The receiver calls the deleter, unless it is NULL, once. */
typedef struct DLManagedTensor {
	DLTensor dl_tensor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY		   1ul
#define DLPACK_FLAG_BITMASK_IS_COPIED		   2ul
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED 4ul /* elements below 8 bits have a byte each */

typedef struct DLManagedTensorVersioned {
	DLPackVersion version;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags; /* DLPACK_FLAG_BITMASK_*; the same offset in every major version */
	DLTensor dl_tensor;
} DLManagedTensorVersioned;

/*
 * ---- exchange between Python libraries ----
 *
 * The attribute __dlpack_c_exchange_api__ of an array type is a capsule named "dlpack_exchange_api" with a
 * pointer to a table of this form, which stays valid until the end of the process. py_object is a PyObject * of
 * that type. No function synchronizes streams. The functions return 0, or -1 with a Python exception set.
 */

/* Allocate a tensor of the prototype's dtype, shape and device. On failure set_error gets error_ctx, the name of
 * a Python exception and a text, and no exception is set. */
typedef int (*DLPackManagedTensorAllocator)(DLTensor *prototype, DLManagedTensorVersioned **out,
					    void *error_ctx,
					    void (*set_error)(void *error_ctx, const char *kind,
							      const char *message));
/* Export an object, which *out keeps alive. */
typedef int (*DLPackManagedTensorFromPyObjectNoSync)(void *py_object,
						     DLManagedTensorVersioned **out);
/* Describe an object in *out, which is valid until the caller gives control back to the object's library. */
typedef int (*DLPackDLTensorFromPyObjectNoSync)(void *py_object, DLTensor *out);
/* The library's current stream on a device; NULL on the CPU. */
typedef int (*DLPackCurrentWorkStream)(DLDeviceType device_type, int32_t device_id,
				       void **out_current_stream);
/* Create an object that owns the tensor. */
typedef int (*DLPackManagedTensorToPyObjectNoSync)(DLManagedTensorVersioned *tensor,
						   void **out_py_object);

typedef struct DLPackExchangeAPIHeader {
	DLPackVersion version;
	struct DLPackExchangeAPIHeader *prev_api; /* the table of an earlier major version, or NULL */
} DLPackExchangeAPIHeader;

typedef struct DLPackExchangeAPI {
	DLPackExchangeAPIHeader header;
	DLPackManagedTensorAllocator managed_tensor_allocator;
	DLPackManagedTensorFromPyObjectNoSync managed_tensor_from_py_object_no_sync;
	DLPackManagedTensorToPyObjectNoSync managed_tensor_to_py_object_no_sync;
	DLPackDLTensorFromPyObjectNoSync dltensor_from_py_object_no_sync; /* may be NULL */
	DLPackCurrentWorkStream current_work_stream;
} DLPackExchangeAPI;

#endif

/* ---- functions ---- */

#define TENSOR_DLPACK_COPIED 1u /* t is a copy made for the receiver */

/**
 * tensor_to_dlpack() - export a tensor to another library
 * @t: a strided tensor in host memory or on a CUDA device, not quantized, that requires no gradient
 * @flags: 0 or TENSOR_DLPACK_COPIED
 *
 * Nothing is copied: both libraries use the same memory, which lives until the deleter is called
 * (in any thread), even if @t is released before. Changing the shape of @t in place does not affect
 * the export. The program must synchronize writes; writes by the receiver are not counted as
 * changes of a tensor saved by autograd. Read-only memory has DLPACK_FLAG_BITMASK_READ_ONLY. See
 * tensor_share_memory() for pointers to a small tensor that becomes shareable.
 *
 * Work of streams is the program's matter: what is queued for memory of a device may not be done yet
 * (tensor_cuda_event_record(), tensor_cuda_record_stream()). An imported tensor of a device must be used in the stream
 * that is current when it is released, or in one that this stream waits for; the deleter is called when the work of
 * that stream is done, from a later call of the library.
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
 * tensor_to_dltensor() - describe a tensor without giving it away
 * @t: as for tensor_to_dlpack(), in memory that is not read-only
 * @description: is overwritten
 *
 * For calls that use the memory before they return: nothing is allocated. The memory and the arrays of sizes and strides
 * are those of @t, and valid while @t is alive and its shape does not change.
 *
 * Return: 0, or -errno as tensor_to_dlpack(); EACCES for read-only memory, which this form cannot mark.
 */
int tensor_to_dltensor(tensor *t, DLTensor *description);

/**
 * tensor_dlpack_allocate() - allocate a tensor for another library
 * @prototype: data type, shape and device; its other fields are ignored
 * @out: gets an uninitialized, contiguous tensor, whose deleter the receiver calls once
 * @error_ctx: for @set_error
 * @set_error: called on failure with "MemoryError" or "BufferError" and the text of the error record; may be NULL
 *
 * Has the type DLPackManagedTensorAllocator, for the table of a binding.
 *
 * Return: 0, or -1 with the error set.
 */
int tensor_dlpack_allocate(DLTensor *prototype, struct DLManagedTensorVersioned **out,
			   void *error_ctx,
			   void (*set_error)(void *error_ctx, const char *kind,
					     const char *message));

/**
 * tensor_from_dlpack() - import a tensor from another library
 * @managed: the other library's structure
 *
 * Returns a tensor on that library's memory. The tensor owns @managed, and calls its deleter in the
 * thread that releases the last reference to the memory, including views and saved tensors. Memory
 * marked read-only is never written.
 *
 * Every minor version of major version 1 is accepted, and flags that are not declared here are ignored:
 * a minor version adds only data types and devices, which are refused by their numbers, and flags without which
 * the other fields keep their meaning.
 *
 * Return: a tensor, owned like an operator's result, or NULL; then @managed still belongs to the
 *   caller. EOPNOTSUPP: another major version, another device than host memory or CUDA, a data type
 *   that the library does not have, vectors (lanes), elements below 8 bits, more dimensions than
 *   TENSOR_MAX_DIMS. EINVAL: invalid contents: negative sizes, no data, no shape, data that is not
 *   aligned to its type or not memory of the device, a bool that is neither 0 nor 1 (where elements overlap, also a byte between
 *   them). EOVERFLOW: sizes or strides beyond 64 bits. ENODEV: there is no such CUDA device.
 */
tensor *tensor_from_dlpack(struct DLManagedTensorVersioned *managed);
tensor *tensor_from_dlpack_unversioned(struct DLManagedTensor *managed);

#ifdef __cplusplus
}
#endif
#endif
