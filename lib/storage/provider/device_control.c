// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Buffers of /dev/tensor: properties, seals, revocation, purgeable memory. */
#include "storage/provider/device_file.h"

#include <sys/mman.h>

_Static_assert(TENSOR_BUFFER_STATE_RDONLY == TENSOR_STATE_RDONLY &&
		       TENSOR_BUFFER_STATE_META == TENSOR_STATE_META &&
		       TENSOR_BUFFER_STATE_RANGE == TENSOR_STATE_RANGE &&
		       TENSOR_BUFFER_STATE_REVOKED == TENSOR_STATE_REVOKED &&
		       TENSOR_BUFFER_STATE_PURGEABLE == TENSOR_STATE_PURGEABLE &&
		       TENSOR_BUFFER_STATE_PURGED == TENSOR_STATE_PURGED,
	       "the states of the library are the kernel's");
_Static_assert(TENSOR_BUFFER_SEALED_WRITE == TENSOR_SEAL_WRITE &&
		       TENSOR_BUFFER_SEALED_META == TENSOR_SEAL_META &&
		       TENSOR_BUFFER_SEALED_SEAL == TENSOR_SEAL_SEAL,
	       "the seals of the library are the kernel's");
_Static_assert(TENSOR_BUFFER_SYNC_READ == TENSOR_SYNC_READ &&
		       TENSOR_BUFFER_SYNC_WRITE == TENSOR_SYNC_WRITE &&
		       TENSOR_BUFFER_SYNC_END == TENSOR_SYNC_END,
	       "the flags of sync are the kernel's");

int device_buffer_info(const struct tensor_buffer *b, struct tensor_buffer_info *info)
{
	struct tensor_info in;
	uint32_t handle;
	int err, fd = device_target(b, &handle);

	if (fd < 0)
		return fd;
	err = device_info(fd, handle, &in);
	if (err < 0)
		return err;
	*info = (struct tensor_buffer_info){
		.kind = in.kind,
		.state = in.state,
		.seals = in.seals,
		.rights = in.rights,
		.node = in.node,
		.bytes = in.bytes,
		.offset = in.offset,
		.huge_bytes = in.huge_bytes,
		.pinned_bytes = in.pinned_bytes,
		.dma_bytes = in.dma_bytes,
		.dev = in.dev,
		.ino = in.ino,
		.generation = in.generation,
		.age_ns = in.age_ns,
		.refs = in.refs,
		.handles = in.handles,
		.files = in.files,
		.mappings = in.mappings,
		.dmabufs = in.dmabufs,
		.attachments = in.attachments,
		.pid = in.pid,
		.uid = in.uid,
	};
	return 0;
}

/* ---- versions ---- */

int device_generation(const struct tensor_buffer *b, uint64_t *n)
{
	struct tensor_info in;
	uint32_t handle;
	int fd = device_target(b, &handle), err = fd < 0 ? fd : device_info(fd, handle, &in);

	if (!err)
		*n = in.generation;
	return err;
}

/* The end of a write, without its begin: the processor has written already, and no device was waited for. */
int device_wrote(struct tensor_buffer *b)
{
	uint32_t handle;
	int fd = device_target(b, &handle);

	/* The end of an access to another driver's memory needs a begin. */
	if (b->kind == TENSOR_BUFFER_KIND_DMABUF)
		return -EOPNOTSUPP;
	return fd < 0 ? fd : device_sync_handle(fd, handle, TENSOR_SYNC_WRITE | TENSOR_SYNC_END, 0);
}

/* ---- seals ---- */

/*
 * Replaces our mapping atomically (MAP_FIXED). A private mapping does not count as a writer,
 * because mprotect() cannot make it write to the buffer.
 */
static int remap(struct tensor_buffer *b, int fd, bool readonly)
{
	int prot = readonly ? PROT_READ : PROT_READ | PROT_WRITE;
	int flags = MAP_FIXED | MAP_POPULATE | (readonly ? MAP_PRIVATE : MAP_SHARED);
	void *p = mmap(b->map, b->map_size, prot, flags, fd, (off_t)b->mmap_offset);

	return p == MAP_FAILED ? -errno : 0;
}

static int add_seals(int fd, uint32_t handle, uint32_t *seals)
{
	struct tensor_seal arg = { .size = sizeof(arg), .handle = handle, .seals = *seals };
	int err = device_call(fd, TENSOR_IOC_SEAL, &arg);

	*seals = arg.seals;
	return err;
}

/* SEAL fails while a writable mapping exists, so our own mapping becomes read-only. */
static int seal_mapped(struct tensor_buffer *b, int fd, uint32_t handle)
{
	uint32_t seals = TENSOR_SEAL_WRITE;
	int err = remap(b, fd, true);

	if (err < 0)
		return err;
	err = add_seals(fd, handle, &seals);
	b->readonly = err == 0 || remap(b, fd, false) < 0;
	return err;
}

int device_seal(struct tensor_buffer *b)
{
	uint32_t handle, seals = 0;
	int err, fd = device_target(b, &handle);

	if (fd < 0)
		return fd;
	err = add_seals(fd, handle, &seals); /* queries only */
	if (err < 0 || seals & TENSOR_SEAL_WRITE)
		return err;
	/* without the right SEAL fails, and our mapping is unchanged */
	if (b->rights & TENSOR_RIGHT_SEAL && !b->readonly)
		return seal_mapped(b, fd, handle);
	seals = TENSOR_SEAL_WRITE;
	return add_seals(fd, handle, &seals);
}

/* ---- other functions ---- */

int device_revoke(struct tensor_buffer *b)
{
	struct tensor_revoke arg = { .size = sizeof(arg), .handle = b->handle };
	int fd = device_holder(b);

	return fd < 0 ? fd : device_call(fd, TENSOR_IOC_REVOKE, &arg);
}

int device_purgeable(struct tensor_buffer *b, bool purgeable)
{
	struct tensor_advise arg = { .size = sizeof(arg),
				     .handle = b->handle,
				     .advice = purgeable ? TENSOR_ADVISE_PURGEABLE :
							   TENSOR_ADVISE_WILLNEED };
	int err, fd = device_holder(b);

	if (fd < 0)
		return fd;
	err = device_call(fd, TENSOR_IOC_ADVISE, &arg);
	return err < 0 ? err : (int)arg.purged;
}

int device_sync(struct tensor_buffer *b, unsigned flags, int64_t timeout_ns)
{
	uint32_t handle;
	int fd = device_target(b, &handle);

	return fd < 0 ? fd : device_sync_handle(fd, handle, flags, timeout_ns);
}
