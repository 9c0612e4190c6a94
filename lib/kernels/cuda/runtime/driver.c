// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Finds the driver's functions once, and has what their users share. */
#include "kernels/cuda/runtime/driver.h"

#include "base/compiler.h"
#include "base/error.h"
#include "storage/provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

struct cuda_driver cuda_driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *absent; /* a function that the driver has not */

static cudaError_t find(const char *name, void **to, unsigned version)
{
	enum cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
	cudaError_t err =
		cudaGetDriverEntryPointByVersion(name, to, version, cudaEnableDefault, &result);

	if (err == cudaSuccess && result == cudaDriverEntryPointSuccess)
		return cudaSuccess;
	cudaGetLastError();
	*to = NULL;
	return err != cudaSuccess ? err : cudaErrorInsufficientDriver;
}

static void find_all(void)
{
	const struct {
		const char *name;
		void *to;
	} all[] = {
		{ "cuDeviceGet", &cuda_driver.device_get },
		{ "cuDeviceGetAttribute", &cuda_driver.attribute },
		{ "cuMemGetAllocationGranularity", &cuda_driver.granularity },
		{ "cuMemCreate", &cuda_driver.create },
		{ "cuMemRelease", &cuda_driver.release },
		{ "cuMemAddressReserve", &cuda_driver.reserve },
		{ "cuMemAddressFree", &cuda_driver.unreserve },
		{ "cuMemMap", &cuda_driver.map },
		{ "cuMemUnmap", &cuda_driver.unmap },
		{ "cuMemSetAccess", &cuda_driver.set_access },
		{ "cuMemExportToShareableHandle", &cuda_driver.export },
		{ "cuMemImportFromShareableHandle", &cuda_driver.import },
		{ "cuMemGetAllocationPropertiesFromHandle", &cuda_driver.properties },
	};

	/* The first version with all of them, and with these arguments. */
	for (size_t i = 0; i < ARRAY_SIZE(all) && !absent; i++)
		if (find(all[i].name, all[i].to, 11020) != cudaSuccess)
			absent = all[i].name;
	find("cuMemGetHandleForAddressRange", (void **)&cuda_driver.range_handle, 11070);
}

const char *cuda_driver_open(void)
{
	pthread_once(&once, find_all);
	return absent;
}

CUresult cuda_driver_lacks(int device, const CUdevice_attribute *attributes, size_t n,
			   size_t *lacks)
{
	CUdevice number;
	CUresult err;
	int has = 1;

	/* The driver's functions need the context, which the runtime makes in its first call. */
	if (cudaFree(NULL) != cudaSuccess)
		cudaGetLastError();
	err = cuda_driver.device_get(&number, device);
	for (*lacks = 0; err == CUDA_SUCCESS && *lacks < n; ++*lacks) {
		err = cuda_driver.attribute(&has, attributes[*lacks], number);
		if (err == CUDA_SUCCESS && !has)
			break;
	}
	return err;
}

CUmemAllocationProp cuda_driver_properties(int device, bool shared)
{
	const CUdevice_attribute rdma = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
	CUmemAllocationProp p = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = shared ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR :
						 CU_MEM_HANDLE_TYPE_NONE,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
	};
	size_t lacks;

	/* Network cards reach memory of cudaMalloc() without asking. */
	if (cuda_driver_lacks(device, &rdma, 1, &lacks) == CUDA_SUCCESS && lacks == 1)
		p.allocFlags.gpuDirectRDMACapable = 1;
	return p;
}

CUresult cuda_driver_permit(int device, CUdeviceptr at, size_t size)
{
	const CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	return cuda_driver.set_access(at, size, &access, 1);
}

/* ---- errors ---- */

/* The driver may take one more for itself. */
static bool lacks_descriptors(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return errno == EMFILE;
	close(fds[0]);
	close(fds[1]);
	return false;
}

int cuda_driver_error(const char *op, const char *what, CUresult err)
{
	if (err == CUDA_ERROR_OUT_OF_MEMORY)
		return tensor_fail(ENOMEM, "%s: cuda: %s: out of memory", op, what);
	if (err == CUDA_ERROR_NOT_SUPPORTED)
		return tensor_fail(EOPNOTSUPP, "%s: cuda: %s: not supported", op, what);
	return tensor_fail(EIO, "%s: cuda: %s: error %d of the driver", op, what, (int)err);
}

int cuda_driver_no_descriptor(const char *op, const char *what, CUresult err)
{
	if (err == CUDA_ERROR_OUT_OF_MEMORY && lacks_descriptors())
		return tensor_fail(EMFILE,
				   "%s: cuda: %s: as many files are open as RLIMIT_NOFILE permits "
				   "(%llu)",
				   op, what, fd_limit());
	return cuda_driver_error(op, what, err);
}

bool cuda_driver_again(CUresult err)
{
	return err == CUDA_ERROR_OUT_OF_MEMORY && lacks_descriptors() && fd_limit_raise();
}
