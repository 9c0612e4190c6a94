/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Functions of the driver's API for the virtual memory of devices: memory is made without an address (a handle), and mapped
 * into a reserved range of addresses. The plugin is linked with the runtime alone, which finds them.
 */
#ifndef TENSOR_CUDA_DRIVER_H
#define TENSOR_CUDA_DRIVER_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

struct cuda_driver {
	__typeof__(&cuDeviceGet) device_get;
	__typeof__(&cuDeviceGetAttribute) attribute;
	__typeof__(&cuMemGetAllocationGranularity) granularity;
	__typeof__(&cuMemCreate) create;
	__typeof__(&cuMemRelease) release;
	__typeof__(&cuMemAddressReserve) reserve;
	__typeof__(&cuMemAddressFree) unreserve;
	__typeof__(&cuMemMap) map;
	__typeof__(&cuMemUnmap) unmap;
	__typeof__(&cuMemSetAccess) set_access;
	__typeof__(&cuMemExportToShareableHandle) export;
	__typeof__(&cuMemImportFromShareableHandle) import;
	__typeof__(&cuMemGetAllocationPropertiesFromHandle) properties;
	/* CUDA 11.7; NULL if the driver has it not. */
	__typeof__(&cuMemGetHandleForAddressRange) range_handle;
};

/* Complete once cuda_driver_open() has returned NULL. */
extern struct cuda_driver cuda_driver;
/* NULL, or the name of a function that the driver has not. */
const char *cuda_driver_open(void);
/* Which of n attributes is the first that the device has not: *lacks, or n. The device is the current one. */
CUresult cuda_driver_lacks(int device, const CUdevice_attribute *attributes, size_t n,
			   size_t *lacks);
/* What memory of the device is. Descriptors of it can be exported if `shared`. */
CUmemAllocationProp cuda_driver_properties(int device, bool shared);
/* Sets the error of `op` from err; returns -errno. */
int cuda_driver_error(const char *op, const char *what, CUresult err) __attribute__((cold));
/* For functions that make a descriptor, of which the driver reports a lack as one of memory. */
int cuda_driver_no_descriptor(const char *op, const char *what, CUresult err) __attribute__((cold));
/* Whether to call such a function again: the limit of open files has been raised. */
bool cuda_driver_again(CUresult err);
/* The device reads and writes the range, which is mapped. */
CUresult cuda_driver_permit(int device, CUdeviceptr at, size_t size);

#endif
