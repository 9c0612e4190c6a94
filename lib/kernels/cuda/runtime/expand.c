// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The blocks of a range cover all of its addresses: live ones, free ones, and gaps, which have no memory. No two free blocks
 * and no two gaps are neighbours; gaps begin and end at granules. A granule is one allocation of the driver, whose handle is
 * released at once: the mapping keeps the memory.
 */
#include "kernels/cuda/runtime/expand.h"

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/driver.h"

#include <stdio.h>
#include <stdlib.h>

struct range {
	struct range *next;
	struct block *first;
	CUdeviceptr base;
	size_t size, granule;
};

/* ---- which devices ---- */

static bool wanted(void)
{
	static atomic_int known; /* 1: yes, -1: no; the locks of devices are different ones */
	int state = atomic_load_explicit(&known, memory_order_relaxed);
	const char *text;

	if (!state) {
		text = secure_getenv("TENSOR_CUDA_SEGMENTS");
		state = text && !strcmp(text, "expandable") ? 1 : -1;
		atomic_store_explicit(&known, state, memory_order_relaxed);
	}
	return state > 0;
}

bool expand_possible(int device)
{
	static const CUdevice_attribute needed =
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
	static signed char state[CUDA_DEVICES];
	enum cudaStreamCaptureMode mode;
	size_t lacks = 0;

	if (!wanted())
		return false;
	if (!state[device]) {
		mode = cuda_relax();
		state[device] = !cuda_driver_open() &&
						cuda_driver_lacks(device, &needed, 1, &lacks) ==
							CUDA_SUCCESS &&
						lacks ?
					1 :
					-1;
		cuda_unrelax(mode);
		if (state[device] < 0)
			fprintf(stderr,
				"libtensor: TENSOR_CUDA_SEGMENTS=expandable has no effect: cuda:%d "
				"has no virtual memory management\n",
				device);
	}
	return state[device] > 0;
}

/* ---- gaps ---- */

static void gap_in(struct block *b)
{
	struct block **at = &b->pool->gaps, *before = NULL;

	while (*at && (*at)->data < b->data) {
		before = *at;
		at = &before->next;
	}
	b->prev = before;
	b->next = *at;
	if (b->next)
		b->next->prev = b;
	*at = b;
}

static void gap_out(struct block *b)
{
	if (b->next)
		b->next->prev = b->prev;
	if (b->prev)
		b->prev->next = b->next;
	else
		b->pool->gaps = b->next;
}

/* Makes b, which is in no list, a gap, and joins it with those beside it. */
static void make_gap(struct block *b)
{
	b->unmapped = true;
	if (b->after && b->after->unmapped) {
		gap_out(b->after);
		block_join_after(b);
	}
	if (b->before && b->before->unmapped) {
		b = b->before;
		gap_out(b);
		block_join_after(b);
	}
	gap_in(b);
}

/* ---- memory ---- */

static void unmap(const struct range *r, CUdeviceptr at, size_t size)
{
	for (size_t i = 0; i < size; i += r->granule)
		cuda_driver.unmap(at + i, r->granule);
}

static CUresult map_granule(const struct range *r, CUdeviceptr at,
			    const CUmemAllocationProp *properties)
{
	CUmemGenericAllocationHandle handle;
	CUresult err = cuda_driver.create(&handle, r->granule, properties, 0);

	if (err != CUDA_SUCCESS)
		return err;
	err = cuda_driver.map(at, r->granule, 0, handle, 0);
	cuda_driver.release(handle);
	return err;
}

/* All of it or nothing. Numbers of errors are the same in both APIs. */
static cudaError_t map(const struct pool *p, const struct range *r, char *data, size_t size)
{
	const enum cudaStreamCaptureMode mode = cuda_relax(); /* memory is no part of a capture */
	const CUmemAllocationProp properties = cuda_driver_properties(p->device, false);
	const CUdeviceptr at = (CUdeviceptr)data;
	CUresult err = CUDA_SUCCESS;
	size_t done = 0;

	for (; done < size && err == CUDA_SUCCESS; done += err == CUDA_SUCCESS ? r->granule : 0)
		err = map_granule(r, at + done, &properties);
	if (err == CUDA_SUCCESS)
		err = cuda_driver_permit(p->device, at, size);
	if (err != CUDA_SUCCESS)
		unmap(r, at, done);
	cuda_unrelax(mode);
	return (cudaError_t)err;
}

static size_t up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Gives the begin of a gap memory, at least `size` bytes. False with *err. */
static bool fill(struct block *gap, size_t size, cudaError_t *err)
{
	struct pool *p = gap->pool;
	struct tensor_cuda_stats *n = &pool_stats[p->device];
	struct block *rest = NULL;

	size = up(size, gap->range->granule);
	if (size < gap->size) {
		rest = block_cut(gap, size);
		*err = cudaSuccess;
		if (!rest)
			return false;
	}
	gap_out(gap);
	*err = map(p, gap->range, gap->data, size);
	if (*err != cudaSuccess) {
		if (rest)
			block_join_after(gap);
		gap_in(gap);
		return false;
	}
	gap->unmapped = false;
	if (rest)
		gap_in(rest);
	n->num_device_alloc += size / gap->range->granule;
	pool_count_more(&n->reserved_bytes, p, size);
	if (!p->owner)
		cuda_host_block_free(p->device, gap->data, size, p->stream);
	return true;
}

/* ---- ranges ---- */

/* The granule of the pool's ranges, or 0: the driver does not say how large it must be. */
static size_t granule_of(const struct pool *p)
{
	const CUmemAllocationProp properties = cuda_driver_properties(p->device, false);
	size_t unit;

	if (cuda_driver.granularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
	    CUDA_SUCCESS)
		return 0;
	return up(p->small ? SMALL_SEGMENT : LARGE_SEGMENT, unit);
}

/* A reserved range of at least `size` bytes: the device's memory, and an eighth for what lies between blocks. 0: none. */
static CUdeviceptr reserve(const struct pool *p, struct range *r, size_t size)
{
	const enum cudaStreamCaptureMode mode = cuda_relax();
	size_t unused, all = 0;
	CUdeviceptr base = 0;

	r->granule = granule_of(p);
	if (r->granule && cudaMemGetInfo(&unused, &all) == cudaSuccess) {
		r->size = up(all + all / 8 > size ? all + all / 8 : size, r->granule);
		if (cuda_driver.reserve(&base, r->size, 0, 0, 0) != CUDA_SUCCESS)
			base = 0;
	}
	cudaGetLastError();
	cuda_unrelax(mode);
	return base;
}

/* False if the driver has no addresses, or the host no memory. */
static bool new_range(struct pool *p, size_t size)
{
	struct range *r = calloc(1, sizeof(*r));
	struct block *b = calloc(1, sizeof(*b));

	if (!r || !b)
		goto free_range;
	r->base = reserve(p, r, size);
	if (!r->base)
		goto free_range;
	*b = (struct block){ .data = (char *)r->base, .size = r->size, .pool = p, .range = r };
	make_gap(b);
	r->first = b;
	r->next = p->ranges;
	p->ranges = r;
	p->segments++;
	pool_count_more(&pool_stats[p->device].segment, p, 1);
	return true;
free_range:
	free(b);
	free(r);
	return false;
}

static void free_range(struct pool *p, struct range *r)
{
	cuda_driver.unreserve(r->base, r->size);
	gap_out(r->first);
	p->segments--;
	pool_count_less(&pool_stats[p->device].segment, p, 1);
	free(r->first);
	free(r);
}

/* ---- growing ---- */

/* Whether `size` bytes from b on are gaps or free. */
static bool has_room(const struct block *b, size_t size)
{
	size_t n = 0;

	for (; b && n < size && (b->unmapped || block_is_free(b)); b = b->after)
		n += b->size;
	return n >= size;
}

/* The first block of such a part of a range, which has a gap. */
static struct block *find_room(const struct pool *p, size_t size)
{
	for (struct block *gap = p->gaps, *b; gap; gap = gap->next) {
		b = block_is_free(gap->before) ? gap->before : gap;
		if (has_room(b, size))
			return b;
	}
	return NULL;
}

bool expand_has_room(struct pool *p, size_t size)
{
	return find_room(p, size) || new_range(p, size);
}

struct block *expand_take(struct pool *p, size_t size, cudaError_t *err)
{
	struct block *b = find_room(p, size);

	if (!b->unmapped)
		pool_take_out(b);
	else if (!fill(b, size < b->size ? size : b->size, err))
		return NULL;
	while (b->size < size) {
		struct block *next = b->after;
		const size_t missing = size - b->size;

		if (!next->unmapped) {
			pool_take_out(next);
		} else if (!fill(next, missing < next->size ? missing : next->size, err)) {
			pool_insert(b);
			return NULL;
		}
		block_join_after(b);
	}
	/* The block after it may be free, too, and the last granule is larger than what was missing. */
	if (block_is_free(b->after)) {
		pool_take_out(b->after);
		block_join_after(b);
	}
	return b;
}

/* ---- shrinking ---- */

/* The whole granules of a block: *from and *to are offsets in its range. */
static bool granules(const struct block *b, size_t *from, size_t *to)
{
	const size_t begin = (size_t)((CUdeviceptr)b->data - b->range->base);
	const size_t unit = b->range->granule;

	*from = up(begin, unit);
	*to = (begin + b->size) / unit * unit;
	return *from < *to;
}

/* A block of the whole granules of a free one, which is in no list; what is beside them stays free. NULL: it has none. */
static struct block *take_granules(struct block *b)
{
	const size_t begin = (size_t)((CUdeviceptr)b->data - b->range->base);
	const size_t end = begin + b->size;
	struct block *middle = b, *last = NULL;
	size_t from, to;

	if (!granules(b, &from, &to))
		return NULL;
	pool_take_out(b);
	if (to < end)
		last = block_cut(b, to - begin);
	if (from > begin && (last || to == end))
		middle = block_cut(b, from - begin);
	/* Without memory for the descriptions it stays as it was. */
	if ((to < end && !last) || !middle) {
		if (last)
			block_join_after(b);
		pool_insert(b);
		return NULL;
	}
	if (middle != b)
		pool_insert(b);
	if (last)
		pool_insert(last);
	return middle;
}

void expand_take_unused(struct pool *p, struct block **list)
{
	struct block *taken;

	for (struct range *r = p->ranges; r; r = r->next)
		for (struct block *b = r->first; b; b = b->after) {
			taken = block_is_free(b) ? take_granules(b) : NULL;
			if (!taken)
				continue;
			taken->leaving = true;
			taken->next = *list;
			*list = taken;
			b = taken;
		}
}

bool expand_settle(const struct pool *p)
{
	/* Blocks of a graph are freed without a wait for the streams that used them; its stream may be gone. */
	const cudaError_t err = p->owner ? cuda_try_wait_device(p->device) :
					   cudaStreamSynchronize(p->stream);

	if (err != cudaSuccess)
		cudaGetLastError();
	return err == cudaSuccess;
}

void expand_unmap(const struct block *b)
{
	unmap(b->range, (CUdeviceptr)b->data, b->size);
}

void expand_returned(struct block *b)
{
	struct tensor_cuda_stats *n = &pool_stats[b->pool->device];

	b->leaving = false;
	if (!b->returned) {
		pool_give(b);
		return;
	}
	b->returned = false;
	n->num_device_free += b->size / b->range->granule;
	pool_count_less(&n->reserved_bytes, b->pool, b->size);
	make_gap(b);
}

void expand_free_ranges(struct pool *p)
{
	struct range *r;

	for (struct range **at = &p->ranges; (r = *at);) {
		if (r->first->unmapped && r->first->size == r->size) {
			*at = r->next;
			free_range(p, r);
		} else {
			at = &r->next;
		}
	}
}
