// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Memory of the emulated devices: a reserved range of addresses each, without access except while
 * queued work runs. Freed memory is reused last, and new memory has garbage in it.
 *
 * Which bytes a kernel may access: without a sanitizer, the .cu files are compiled with
 * -fsanitize=kernel-address, and the functions that it calls for each access are here. With
 * AddressSanitizer its own shadow has the same information.
 */
#include "host.hpp"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

#ifdef CUDA_HOST_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum : size_t { PAGE = 4096, HUGE = 2 << 20, RESERVED = (size_t)8 << 30, GUARD = PAGE };
enum { GARBAGE = 0xf7 };

struct device_memory {
	char *base;
	size_t limit, used;
	size_t next;		       /* where the next allocation is tried */
	size_t high;		       /* nothing is allocated above it */
	std::map<size_t, size_t> live; /* size by offset */
#if !defined(CUDA_HOST_ASAN) && !defined(CUDA_HOST_TSAN)
	uint8_t *shadow; /* for 8 bytes each: how many of them may be accessed */
#endif
};

struct pinned_range {
	size_t size;
	unsigned flags;
};

static int count;
static device_memory devices[HOST_DEVICES];
static std::map<uintptr_t, pinned_range> pinned;
static std::set<void *> ranges; /* allocations that are reserved addresses */
static unsigned opened;
static struct sigaction before;

void host_fatal(const char *format, ...)
{
	char where[512];
	va_list list;

	fprintf(stderr, "cuda_host: ");
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	if (host_kernel_position(where, sizeof(where)))
		fprintf(stderr, ", in %s", where);
	fprintf(stderr, "\n");
	fflush(nullptr);
	signal(SIGABRT, SIG_DFL);
	abort();
}

static device_memory *memory_of(const void *data)
{
	for (int d = 0; d < count; d++)
		if ((uintptr_t)data - (uintptr_t)devices[d].base < RESERVED)
			return &devices[d];
	return nullptr;
}

int host_device_of(const void *data)
{
	device_memory *m = memory_of(data);

	return m ? (int)(m - devices) : -1;
}

/* ---- reports ---- */

/* Describes an address of a device: "cuda:0, 8 bytes past an allocation of 100 bytes". */
static void describe(const void *data, char *text, size_t size)
{
	device_memory *m = memory_of(data);
	size_t offset = (const char *)data - m->base;
	auto at = m->live.upper_bound(offset);
	int n = snprintf(text, size, "cuda:%d, ", (int)(m - devices));

	text += n;
	size -= n;
	if (at == m->live.begin()) {
		snprintf(text, size, "outside of all allocations, or freed");
		return;
	}
	--at;
	if (offset < at->first + at->second)
		snprintf(text, size, "byte %zu of an allocation of %zu bytes", offset - at->first,
			 at->second);
	else
		snprintf(text, size, "%zu bytes past an allocation of %zu bytes, or freed",
			 offset - at->first - at->second, at->second);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	char text[256];

	if (memory_of(info->si_addr)) {
		describe(info->si_addr, text, sizeof(text));
		if (!host_running())
			host_fatal("the host accessed device memory: %p, %s", info->si_addr, text);
		host_fatal("%s accessed memory that it may not: %p, %s", host_running()->name,
			   info->si_addr, text);
	}
	if (host_running())
		host_fatal("%s accessed no memory: %p", host_running()->name, info->si_addr);
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(signal, info, context);
	else
		sigaction(SIGSEGV, &before, nullptr); /* the access faults again */
}

/* Test programs install handlers of their own later, cmocka for each test. */
static void watch_faults(void)
{
	struct sigaction action = {}, found;

	if (!sigaction(SIGSEGV, nullptr, &found) && found.sa_flags & SA_SIGINFO &&
	    found.sa_sigaction == on_fault)
		return;
	before = found;
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGSEGV, &action, nullptr);
}

/* ---- set-up ---- */

static size_t number_of(const char *variable, size_t otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? strtoull(text, nullptr, 0) : otherwise;
}

static void *reserve(size_t size)
{
	void *p =
		mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		host_fatal("no address range of %zu bytes", size);
	return p;
}

/* Each kernel opens and closes the memory of its device, which takes 50 times as long with small pages. */
static char *reserve_huge(size_t size)
{
	char *p = (char *)reserve(size + HUGE);

	p += -(uintptr_t)p % HUGE;
	madvise(p, size, MADV_HUGEPAGE);
	return p;
}

static bool memory_init(void)
{
	count = (int)number_of("CUDA_HOST_DEVICES", 2);
	if (count > HOST_DEVICES)
		count = HOST_DEVICES;
	for (int d = 0; d < count; d++) {
		devices[d].base = reserve_huge(RESERVED);
		devices[d].next = GUARD;
		devices[d].limit = number_of("CUDA_HOST_MEMORY", (size_t)1 << 30);
#if !defined(CUDA_HOST_ASAN) && !defined(CUDA_HOST_TSAN)
		devices[d].shadow = (uint8_t *)reserve(RESERVED / 8);
		mprotect(devices[d].shadow, RESERVED / 8, PROT_READ | PROT_WRITE);
#endif
	}
	watch_faults();
	return true;
}

static const bool initialised = memory_init();

int host_device_count(void)
{
	return count;
}

/* ---- which bytes may be accessed ---- */

#if defined(CUDA_HOST_ASAN)

static void mark(device_memory *, const void *data, size_t size, bool allowed)
{
	if (allowed)
		__asan_unpoison_memory_region(data, size);
	else
		__asan_poison_memory_region(data, size);
}

static const char *first_forbidden(device_memory *, const void *data, size_t size)
{
	return (const char *)__asan_region_is_poisoned((void *)data, size);
}

#elif defined(CUDA_HOST_TSAN)

static void mark(device_memory *, const void *, size_t, bool)
{
}

static const char *first_forbidden(device_memory *, const void *, size_t)
{
	return nullptr;
}

#else

/* data is aligned to 8 bytes. */
static void mark(device_memory *m, const void *data, size_t size, bool allowed)
{
	size_t offset = (const char *)data - m->base;

	memset(m->shadow + offset / 8, allowed ? 8 : 0, size / 8);
	if (size % 8)
		m->shadow[(offset + size) / 8] = allowed ? size % 8 : 0;
}

static const char *first_forbidden(device_memory *m, const void *data, size_t size)
{
	size_t offset = (const char *)data - m->base;

	for (size_t end = offset + size; offset < end;) {
		size_t part = offset % 8 + (end - offset) > 8 ? 8 : offset % 8 + (end - offset);

		if (m->shadow[offset / 8] < part)
			return m->base + offset;
		offset = (offset | 7) + 1;
	}
	return nullptr;
}

#endif

void host_allow(void *data, size_t size)
{
	device_memory *m = memory_of(data);

	mark(m, data, size, true);
	memset(data, GARBAGE, size);
}

void host_forbid(void *data, size_t size)
{
	device_memory *m = memory_of(data);

	mark(m, data, size, true);
	memset(data, GARBAGE, size); /* for ThreadSanitizer, an access of the stream */
	mark(m, data, size, false);
}

void host_check(const void *data, size_t size, bool write, const char *what)
{
	device_memory *m = memory_of(data);
	const char *bad = (const char *)data;
	char text[256];

	if (!size)
		return;
	if (m) {
		size_t offset = (const char *)data - m->base;
		auto at = m->live.upper_bound(offset);
		/* The end of the allocation that has the first byte, if one has. */
		size_t end = at == m->live.begin() ? 0 : (--at, at->first + at->second);

		if (offset + size <= end) {
			bad = first_forbidden(m, data, size);
			if (!bad)
				return;
		} else if (offset < end) {
			bad = m->base + end;
		}
		describe(bad, text, sizeof(text));
	} else if (host_mapped(data, size)) {
		return;
	} else {
		snprintf(text, sizeof(text), "host memory");
	}
	host_fatal("%s %s memory that it may not access: %p, %s", what, write ? "writes" : "reads",
		   (const void *)bad, text);
}

/* ---- allocation ---- */

static size_t aligned(const device_memory *m, size_t at, size_t alignment)
{
	return at + (-((uintptr_t)m->base + at) & (alignment - 1));
}

/* The first gap of `room` bytes at or after `from`, or RESERVED. */
static size_t find_gap(device_memory *m, size_t from, size_t room, size_t alignment)
{
	from = aligned(m, from, alignment);
	for (auto &block : m->live) {
		if (block.first + block.second <= from)
			continue;
		if (block.first >= from + room)
			break;
		from = aligned(m, block.first + block.second + GUARD, alignment);
	}
	return from + room <= RESERVED ? from : (size_t)RESERVED;
}

/* A range of addresses that is in no other allocation; false if there is none. */
static bool take_range(device_memory *m, size_t size, size_t alignment, size_t *at)
{
	size_t room = ((size + PAGE - 1) & ~(PAGE - 1)) + GUARD;

	*at = find_gap(m, m->next, room, alignment);
	if (*at == RESERVED)
		*at = find_gap(m, GUARD, room, alignment);
	if (*at == RESERVED)
		return false;
	m->live[*at] = size;
	m->next = *at + room;
	if (m->next > m->high) {
#ifdef CUDA_HOST_ASAN
		__asan_poison_memory_region(m->base + m->high, m->next - m->high);
#endif
		m->high = m->next;
	}
	return true;
}

cudaError_t host_malloc(int device, size_t size, void **data)
{
	device_memory *m = &devices[device];
	size_t at;

	if (size > m->limit || m->used + size > m->limit || !take_range(m, size, PAGE, &at))
		return cudaErrorMemoryAllocation;
	m->used += size;
	host_open(1u << device);
	host_allow(m->base + at, size);
	host_close();
	*data = m->base + at;
	return cudaSuccess;
}

/* Gives the huge pages back that are between the allocations before and at `after`. */
static void give_back(device_memory *m, std::map<size_t, size_t>::iterator after)
{
	size_t end = after == m->live.end() ? m->high : after->first, begin = 0;

	if (after != m->live.begin()) {
		auto before = std::prev(after);

		begin = (before->first + before->second + HUGE - 1) & ~(HUGE - 1);
	}
	end &= ~(HUGE - 1);
	if (begin < end)
		madvise(m->base + begin, end - begin, MADV_DONTNEED);
}

bool host_free(void *data)
{
	device_memory *m = memory_of(data);
	size_t offset = m ? (char *)data - m->base : 0;
	auto at = m ? m->live.find(offset) : devices[0].live.end();

	if (!m || at == m->live.end() || ranges.count(data))
		return false;
	host_open(1u << (m - devices));
	host_forbid(data, at->second);
	host_close();
	m->used -= at->second;
	give_back(m, m->live.erase(at));
	return true;
}

/* ---- ranges that memory is mapped into (driver.cc) ---- */

void *host_reserve(int device, size_t size, size_t alignment)
{
	device_memory *m = &devices[device];
	size_t at;

	if (size > RESERVED ||
	    !take_range(m, size, alignment < PAGE ? (size_t)PAGE : alignment, &at))
		return nullptr;
	ranges.insert(m->base + at);
	return m->base + at;
}

bool host_unreserve(void *data, size_t size)
{
	device_memory *m = memory_of(data);

	if (!ranges.count(data))
		return false;
	auto at = m->live.find((char *)data - m->base);
	if (at->second != size)
		return false;
	ranges.erase(data);
	m->live.erase(at);
	return true;
}

bool host_reserved(void *data, size_t size)
{
	device_memory *m = memory_of(data);

	size_t offset = m ? (char *)data - m->base : 0;
	auto at = m ? m->live.upper_bound(offset) : devices[0].live.begin();

	if (!m || at == m->live.begin() || !ranges.count(m->base + (--at)->first))
		return false;
	return offset + size <= at->first + at->second;
}

void host_map(void *data, size_t size, int fd)
{
	if (mmap(data, size, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		host_fatal("%zu bytes cannot be mapped into a device's memory", size);
}

void host_permit(void *data, size_t size)
{
	mark(memory_of(data), data, size, true);
}

void host_unmap(void *data, size_t size)
{
	mark(memory_of(data), data, size, false);
	if (mmap(data, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		host_fatal("%zu bytes of a device's memory cannot be unmapped", size);
	madvise(data, size, MADV_HUGEPAGE);
}

bool host_take(int device, size_t size)
{
	device_memory *m = &devices[device];

	if (size > m->limit || m->used + size > m->limit)
		return false;
	m->used += size;
	return true;
}

void host_give(int device, size_t size)
{
	devices[device].used -= size;
}

void host_memory_info(int device, size_t *available, size_t *total)
{
	*available = devices[device].limit - devices[device].used;
	*total = devices[device].limit;
}

size_t host_memory_allocated(void)
{
	size_t sum = 0;

	for (int d = 0; d < count; d++)
		sum += devices[d].used;
	return sum;
}

static void protect(unsigned which, int access)
{
	for (int d = 0; d < count; d++)
		if (which & 1u << d && devices[d].high)
			mprotect(devices[d].base, (devices[d].high + HUGE - 1) & ~(HUGE - 1),
				 access);
}

void host_open(unsigned which)
{
	if (opened)
		host_fatal("device memory is opened twice");
	opened = which;
	protect(which, PROT_READ | PROT_WRITE);
}

void host_close(void)
{
	protect(opened, PROT_NONE);
	opened = 0;
	watch_faults();
}

/* ---- pinned memory ---- */

/* The range that has the first byte, or one that begins before `size` bytes are over. */
static std::map<uintptr_t, pinned_range>::iterator overlapping(const void *data, size_t size)
{
	auto at = pinned.upper_bound((uintptr_t)data);

	if (at != pinned.begin()) {
		auto former = std::prev(at);

		if ((uintptr_t)data < former->first + former->second.size)
			return former;
	}
	return at != pinned.end() && at->first < (uintptr_t)data + size ? at : pinned.end();
}

cudaError_t host_pin(void *data, size_t size, unsigned flags)
{
	if (!data || !size)
		return cudaErrorInvalidValue;
	if (overlapping(data, size) != pinned.end())
		return cudaErrorHostMemoryAlreadyRegistered;
	/* The pages must exist; a read-only mapping needs the flag. */
	char *first = (char *)((uintptr_t)data & ~(PAGE - 1));
	if (msync(first, (char *)data + size - first, MS_ASYNC) < 0)
		return cudaErrorInvalidValue;
	pinned[(uintptr_t)data] = { size, flags };
	return cudaSuccess;
}

cudaError_t host_unpin(void *data)
{
	return pinned.erase((uintptr_t)data) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}

bool host_mapped(const void *data, size_t size)
{
	return host_pinned(data, size) &&
	       overlapping(data, size)->second.flags & cudaHostRegisterMapped;
}

bool host_pinned(const void *data, size_t size)
{
	auto at = overlapping(data, size);

	return at != pinned.end() && at->first <= (uintptr_t)data &&
	       (uintptr_t)data + size <= at->first + at->second.size;
}
