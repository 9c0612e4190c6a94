/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The binary interface of DLPack 1.3 on 64-bit machines: sizes and offsets of all structures, and all
 * numbers. It is compiled with <tensor/dlpack.h>, and with PyTorch's header by
 * tests/shell/dlpack-header.sh.
 */
#ifndef TESTS_DLPACK_LAYOUT_H
#define TESTS_DLPACK_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define DL_ASSERT(condition) static_assert(condition, #condition)
#define DL_SAME(a, b)	     static_assert(std::is_same<a, b>::value, #a)
#include <type_traits>
#else
#define DL_ASSERT(condition) _Static_assert(condition, #condition)
#define DL_SAME(a, b)	     _Static_assert(__builtin_types_compatible_p(a, b), #a)
#endif
#define DL_SIZE(type, size) DL_ASSERT(sizeof(type) == (size))
#define DL_MEMBER(type, member, offset, size) \
	DL_ASSERT(offsetof(type, member) == (offset) && sizeof(((type *)0)->member) == (size))

DL_ASSERT(DLPACK_MAJOR_VERSION == 1);
DL_ASSERT(DLPACK_MINOR_VERSION >= 3);

DL_SIZE(DLPackVersion, 8);
DL_MEMBER(DLPackVersion, major, 0, 4);
DL_MEMBER(DLPackVersion, minor, 4, 4);

DL_SIZE(DLDevice, 8);
DL_MEMBER(DLDevice, device_type, 0, 4);
DL_MEMBER(DLDevice, device_id, 4, 4);

DL_SIZE(DLDataType, 4);
DL_MEMBER(DLDataType, code, 0, 1);
DL_MEMBER(DLDataType, bits, 1, 1);
DL_MEMBER(DLDataType, lanes, 2, 2);

DL_SIZE(DLTensor, 48);
DL_MEMBER(DLTensor, data, 0, 8);
DL_MEMBER(DLTensor, device, 8, 8);
DL_MEMBER(DLTensor, ndim, 16, 4);
DL_MEMBER(DLTensor, dtype, 20, 4);
DL_MEMBER(DLTensor, shape, 24, 8);
DL_MEMBER(DLTensor, strides, 32, 8);
DL_MEMBER(DLTensor, byte_offset, 40, 8);

DL_SIZE(DLManagedTensor, 64);
DL_MEMBER(DLManagedTensor, dl_tensor, 0, 48);
DL_MEMBER(DLManagedTensor, manager_ctx, 48, 8);
DL_MEMBER(DLManagedTensor, deleter, 56, 8);

DL_SIZE(DLManagedTensorVersioned, 80);
DL_MEMBER(DLManagedTensorVersioned, version, 0, 8);
DL_MEMBER(DLManagedTensorVersioned, manager_ctx, 8, 8);
DL_MEMBER(DLManagedTensorVersioned, deleter, 16, 8);
DL_MEMBER(DLManagedTensorVersioned, flags, 24, 8);
DL_MEMBER(DLManagedTensorVersioned, dl_tensor, 32, 48);

DL_SIZE(DLPackExchangeAPIHeader, 16);
DL_MEMBER(DLPackExchangeAPIHeader, version, 0, 8);
DL_MEMBER(DLPackExchangeAPIHeader, prev_api, 8, 8);

DL_SIZE(DLPackExchangeAPI, 56);
DL_MEMBER(DLPackExchangeAPI, header, 0, 16);
DL_MEMBER(DLPackExchangeAPI, managed_tensor_allocator, 16, 8);
DL_MEMBER(DLPackExchangeAPI, managed_tensor_from_py_object_no_sync, 24, 8);
DL_MEMBER(DLPackExchangeAPI, managed_tensor_to_py_object_no_sync, 32, 8);
DL_MEMBER(DLPackExchangeAPI, dltensor_from_py_object_no_sync, 40, 8);
DL_MEMBER(DLPackExchangeAPI, current_work_stream, 48, 8);

typedef void (*dl_set_error)(void *error_ctx, const char *kind, const char *message);
typedef int (*dl_allocator)(DLTensor *, DLManagedTensorVersioned **, void *, dl_set_error);
typedef int (*dl_from_object)(void *, DLManagedTensorVersioned **);
typedef int (*dl_to_object)(DLManagedTensorVersioned *, void **);
typedef int (*dl_describe_object)(void *, DLTensor *);
typedef int (*dl_stream)(DLDeviceType, int32_t, void **);
DL_SAME(DLPackManagedTensorAllocator, dl_allocator);
DL_SAME(DLPackManagedTensorFromPyObjectNoSync, dl_from_object);
DL_SAME(DLPackManagedTensorToPyObjectNoSync, dl_to_object);
DL_SAME(DLPackDLTensorFromPyObjectNoSync, dl_describe_object);
DL_SAME(DLPackCurrentWorkStream, dl_stream);

DL_ASSERT(DLPACK_FLAG_BITMASK_READ_ONLY == 1);
DL_ASSERT(DLPACK_FLAG_BITMASK_IS_COPIED == 2);
DL_ASSERT(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED == 4);

DL_SIZE(DLDeviceType, 4);
DL_ASSERT(kDLCPU == 1);
DL_ASSERT(kDLCUDA == 2);
DL_ASSERT(kDLCUDAHost == 3);
DL_ASSERT(kDLOpenCL == 4);
DL_ASSERT(kDLVulkan == 7);
DL_ASSERT(kDLMetal == 8);
DL_ASSERT(kDLVPI == 9);
DL_ASSERT(kDLROCM == 10);
DL_ASSERT(kDLROCMHost == 11);
DL_ASSERT(kDLExtDev == 12);
DL_ASSERT(kDLCUDAManaged == 13);
DL_ASSERT(kDLOneAPI == 14);
DL_ASSERT(kDLWebGPU == 15);
DL_ASSERT(kDLHexagon == 16);
DL_ASSERT(kDLMAIA == 17);
DL_ASSERT(kDLTrn == 18);

DL_ASSERT(kDLInt == 0);
DL_ASSERT(kDLUInt == 1);
DL_ASSERT(kDLFloat == 2);
DL_ASSERT(kDLOpaqueHandle == 3);
DL_ASSERT(kDLBfloat == 4);
DL_ASSERT(kDLComplex == 5);
DL_ASSERT(kDLBool == 6);
DL_ASSERT(kDLFloat8_e3m4 == 7);
DL_ASSERT(kDLFloat8_e4m3 == 8);
DL_ASSERT(kDLFloat8_e4m3b11fnuz == 9);
DL_ASSERT(kDLFloat8_e4m3fn == 10);
DL_ASSERT(kDLFloat8_e4m3fnuz == 11);
DL_ASSERT(kDLFloat8_e5m2 == 12);
DL_ASSERT(kDLFloat8_e5m2fnuz == 13);
DL_ASSERT(kDLFloat8_e8m0fnu == 14);
DL_ASSERT(kDLFloat6_e2m3fn == 15);
DL_ASSERT(kDLFloat6_e3m2fn == 16);
DL_ASSERT(kDLFloat4_e2m1fn == 17);

#endif
