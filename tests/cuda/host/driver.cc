// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Virtual memory of the driver's API. An allocation is a memfd, whose name is that of its device, and a descriptor that is
 * exported is one of the memfd: processes that have mapped it share its bytes. Like the driver, a handle, an exported
 * descriptor and a mapping each keep the memory; a reserved range belongs to the device that is current, which CUDA does
 * not ask for. A dma-buf is one of /dev/udmabuf. Where only vgem makes dma-bufs, an allocation is one of its instead of a
 * memfd (dmabuf.cc), and without both a dma-buf is a descriptor of the memfd.
 */
#include "cuda.h"
#include "host.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum : size_t { GRANULE = 2 << 20 };
enum { GARBAGE = 0xf7, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static const char name[] = "cuda-host-";

struct allocation {
	int fd, device;
	size_t size;
	unsigned users; /* handles and mappings */
	bool exported, rdma;
};

struct mapping {
	size_t size;
	CUmemGenericAllocationHandle handle;
};

static std::map<CUmemGenericAllocationHandle, allocation> &allocations =
	*new std::map<CUmemGenericAllocationHandle, allocation>();
/* By address. */
static std::map<CUdeviceptr, mapping> &mapped = *new std::map<CUdeviceptr, mapping>();
static CUmemGenericAllocationHandle handles;

/* Begins a function of the driver's API. All are potentially unsafe in a capture: the documentation classifies none. */
#define DRIVER_API()                             \
	host_call call(__func__);                \
	if (call.injected)                       \
		return (CUresult)call.injected;  \
	if (host_may_be_unsafe() != cudaSuccess) \
	return CUDA_ERROR_NOT_PERMITTED

static bool is_set(const char *variable)
{
	const char *text = getenv(variable);

	return text && *text;
}

static bool enabled(void)
{
	return !is_set("CUDA_HOST_NO_VMM");
}

static bool is_device(int device)
{
	return device >= 0 && device < host_device_count();
}

static bool properties_fit(const CUmemAllocationProp *p)
{
	return p && p->type == CU_MEM_ALLOCATION_TYPE_PINNED && !p->win32HandleMetaData &&
	       p->location.type == CU_MEM_LOCATION_TYPE_DEVICE && is_device(p->location.id);
}

static void drop(CUmemGenericAllocationHandle handle)
{
	auto at = allocations.find(handle);

	if (--at->second.users)
		return;
	host_give(at->second.device, at->second.size);
	close(at->second.fd);
	allocations.erase(at);
}

/* ---- devices ---- */

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	DRIVER_API();
	*device = ordinal;
	return is_device(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	DRIVER_API();
	if (!is_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
		*value = enabled() && !is_set("CUDA_HOST_NO_DMABUF");
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
		*value = enabled();
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* ---- memory ---- */

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
				       CUmemAllocationGranularity_flags option)
{
	DRIVER_API();
	if (!properties_fit(properties) || option != CU_MEM_ALLOC_GRANULARITY_MINIMUM)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = GRANULE;
	return CUDA_SUCCESS;
}

/* New memory has garbage. -1 if the machine has no more. */
static int new_memory(int device, size_t size)
{
	char text[32];
	void *p = MAP_FAILED;
	int fd;
	bool sized = true;

	snprintf(text, sizeof(text), "%s%d", name, device);
	fd = host_vgem(size, text);
	if (fd < 0) {
		fd = memfd_create(text, MFD_CLOEXEC | MFD_ALLOW_SEALING);
		sized = fd >= 0 && !ftruncate(fd, (off_t)size) && !fcntl(fd, F_ADD_SEALS, SEALS);
	}
	if (sized)
		p = mmap(nullptr, size, PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	memset(p, GARBAGE, size);
	munmap(p, size);
	return fd;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *properties, unsigned long long flags)
{
	DRIVER_API();
	if (!properties_fit(properties) || !size || size % GRANULE || flags)
		return CUDA_ERROR_INVALID_VALUE;
	const int device = properties->location.id;
	if (!host_take(device, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	int fd = new_memory(device, size);
	if (fd < 0) {
		host_give(device, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = ++handles;
	allocations[*handle] = { fd,
				 device,
				 size,
				 1,
				 properties->requestedHandleTypes ==
					 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				 properties->allocFlags.gpuDirectRDMACapable == 1 };
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	DRIVER_API();
	if (!allocations.count(handle))
		host_fatal("cuMemRelease(%llu): no handle, or released twice", handle);
	drop(handle);
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
						CUmemGenericAllocationHandle handle)
{
	DRIVER_API();
	auto at = allocations.find(handle);

	if (at == allocations.end())
		return CUDA_ERROR_INVALID_VALUE;
	*properties = {};
	properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
	properties->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	properties->location = { CU_MEM_LOCATION_TYPE_DEVICE, at->second.device };
	return CUDA_SUCCESS;
}

/* ---- descriptors ---- */

CUresult cuMemExportToShareableHandle(void *to, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	DRIVER_API();
	auto at = allocations.find(handle);

	if (at == allocations.end() || !at->second.exported || flags ||
	    type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)to = fcntl(at->second.fd, F_DUPFD_CLOEXEC, 0);
	return *(int *)to < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Whether the file is a memfd of this library. */
static bool is_sealed(int fd)
{
	return fcntl(fd, F_GET_SEALS) == SEALS;
}

/* The device whose memory the file is, or -1. */
static int device_of_file(int fd)
{
	static const std::string begins[] = { "/dmabuf:", "/memfd:" };
	char path[64], text[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = 0;
	const std::string target = text, begin = begins[is_sealed(fd)] + name;

	return target.compare(0, begin.size(), begin) ? -1 : atoi(text + begin.size());
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
					CUmemAllocationHandleType type)
{
	DRIVER_API();
	int fd = (int)(intptr_t)from, device = device_of_file(fd);
	struct stat st;

	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !is_device(device) ||
	    fstat(fd, &st) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || !host_take(device, (size_t)st.st_size)) {
		if (fd >= 0)
			close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = ++handles;
	allocations[*handle] = { fd, device, (size_t)st.st_size, 1, false, true };
	return CUDA_SUCCESS;
}

/* ---- addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *data, size_t size, size_t alignment, CUdeviceptr address,
			     unsigned long long flags)
{
	DRIVER_API();
	if (!size || size % GRANULE || alignment & (alignment - 1) || address || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*data = (CUdeviceptr)host_reserve(host_current_device(), size,
					  alignment ? alignment : (size_t)GRANULE);
	return *data ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The first mapping that has a byte of the range, or the end. */
static std::map<CUdeviceptr, mapping>::iterator first_mapped(CUdeviceptr data, size_t size)
{
	auto at = mapped.upper_bound(data);

	if (at != mapped.begin()) {
		auto former = std::prev(at);

		if (former->first + former->second.size > data)
			return former;
	}
	return at != mapped.end() && at->first < data + size ? at : mapped.end();
}

/* Whether mappings cover the range. */
static bool covered(CUdeviceptr data, size_t size)
{
	CUdeviceptr end = data + size;

	for (auto at = mapped.find(data); at != mapped.end() && at->first == data; ++at) {
		data += at->second.size;
		if (data >= end)
			return data == end;
	}
	return false;
}

CUresult cuMemAddressFree(CUdeviceptr data, size_t size)
{
	DRIVER_API();
	if (first_mapped(data, size) != mapped.end() || !host_unreserve((void *)data, size))
		host_fatal("cuMemAddressFree(%p): not a range, or mapped", (void *)data);
	return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr data, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	DRIVER_API();
	auto at = allocations.find(handle);

	if (at == allocations.end() || offset || flags || !size || (data | size) % GRANULE ||
	    size > at->second.size || !host_reserved((void *)data, size) ||
	    first_mapped(data, size) != mapped.end() ||
	    host_device_of((void *)data) != at->second.device)
		return CUDA_ERROR_INVALID_VALUE;
	host_map((void *)data, size, at->second.fd);
	at->second.users++;
	mapped[data] = { size, handle };
	return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr data, size_t size, const CUmemAccessDesc *access, size_t count)
{
	DRIVER_API();
	if (!covered(data, size) || count != 1 ||
	    access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    access->location.id != host_device_of((void *)data) ||
	    access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	host_permit((void *)data, size);
	return CUDA_SUCCESS;
}

/* Queued work that still uses the memory finds it gone, as on a device. */
CUresult cuMemUnmap(CUdeviceptr data, size_t size)
{
	host_before_free();
	DRIVER_API();
	auto at = mapped.find(data);

	if (at == mapped.end() || at->second.size != size)
		host_fatal("cuMemUnmap(%p): nothing is mapped, or a part of it", (void *)data);
	host_unmap((void *)data, size);
	drop(at->second.handle);
	mapped.erase(at);
	return CUDA_SUCCESS;
}

/* ---- dma-bufs ---- */

/* The file that is the memory is the dma-buf if it is vgem's, and stands for one if the kernel makes none. */
static int dmabuf_of(const allocation &a, size_t offset, size_t size)
{
	int fd = is_sealed(a.fd) ? host_udmabuf(a.fd, offset, size) : -1;

	return fd == -1 ? fcntl(a.fd, F_DUPFD_CLOEXEC, 0) : fd;
}

CUresult cuMemGetHandleForAddressRange(void *to, CUdeviceptr data, size_t size,
				       CUmemRangeHandleType type, unsigned long long flags)
{
	DRIVER_API();
	auto at = first_mapped(data, size);
	const size_t page = (size_t)getpagesize();

	if (type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags || !size || (data | size) % page ||
	    at == mapped.end() || data < at->first || data + size > at->first + at->second.size)
		return CUDA_ERROR_INVALID_VALUE;
	const allocation &a = allocations[at->second.handle];
	if (is_set("CUDA_HOST_NO_DMABUF") || !a.rdma || (!is_sealed(a.fd) && size != a.size))
		return CUDA_ERROR_NOT_SUPPORTED;
	int fd = dmabuf_of(a, data - at->first, size);
	*(int *)to = fd;
	return fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* ---- the functions by name ---- */

#define FUNCTION(name)              \
	{                           \
#name, (void *)name \
	}

static const std::map<std::string, void *> functions = {
	FUNCTION(cuDeviceGet),
	FUNCTION(cuDeviceGetAttribute),
	FUNCTION(cuMemGetAllocationGranularity),
	FUNCTION(cuMemCreate),
	FUNCTION(cuMemRelease),
	FUNCTION(cuMemAddressReserve),
	FUNCTION(cuMemAddressFree),
	FUNCTION(cuMemMap),
	FUNCTION(cuMemUnmap),
	FUNCTION(cuMemSetAccess),
	FUNCTION(cuMemExportToShareableHandle),
	FUNCTION(cuMemImportFromShareableHandle),
	FUNCTION(cuMemGetAllocationPropertiesFromHandle),
	FUNCTION(cuMemGetHandleForAddressRange),
};

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
					     unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *result)
{
	API();
	auto at = functions.find(symbol);

	if (flags != cudaEnableDefault || version < 10020)
		return host_result(cudaErrorInvalidValue);
	*function = at == functions.end() ? nullptr : at->second;
	if (result)
		*result = *function ? cudaDriverEntryPointSuccess :
				      cudaDriverEntryPointSymbolNotFound;
	return cudaSuccess;
}
