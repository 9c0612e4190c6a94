/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Where a tensor's bytes live: the provider of host memory, the caching allocator on top of
 * it, memory of other devices, and sharing between processes.
 */
#ifndef TENSOR_STORAGE_H
#define TENSOR_STORAGE_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "device" (/dev/tensor) or "memfd". TENSOR_PROVIDER=device|memfd in the environment decides;
 * without it the device is taken when it can be opened. */
const char *tensor_provider_name(void);

/*
 * Host memory. A tensor that was not made shareable has private memory of the process, whatever its size
 * and the provider: fork() copies it on write, and it needs no descriptor. Up to 1 MiB it is a block of an
 * arena, above a mapping of its own. A shareable tensor has a buffer of the provider to itself.
 *
 * What is freed is kept for reuse: private memory for some ten seconds, buffers until the limit
 * TENSOR_CACHE_LIMIT (bytes; a quarter of the machine's memory) or tensor_cache_trim(). All of it is
 * given back before an allocation fails.
 */
struct tensor_cache_stats {
	uint64_t used, cached;	 /* bytes of buffers and mappings: of tensors, and kept for reuse */
	uint64_t buffers;	 /* made by the provider so far */
	uint64_t hits, misses;	 /* of requests for a buffer or mapping of their own */
	uint64_t arenas, blocks; /* bytes of arenas, and of the blocks in them that are taken */
};
void tensor_cache_stats(struct tensor_cache_stats *stats);
/* How many tensors and storages there are. For tests that look for leaks: it goes through all descriptions. Other
 * threads may make and free some meanwhile. */
struct tensor_live_counts {
	uint64_t tensors, storages;
};
void tensor_live_counts(struct tensor_live_counts *counts);
/* Gives what is kept for reuse back to the kernel, but for blocks that other threads keep for
 * themselves: at most 256 KiB, or two blocks, of each size. */
void tensor_cache_trim(void);

/**
 * tensor_share_memory() - give the tensor's storage a buffer that other processes can share
 * @t: a strided tensor of plain numbers in host memory
 *
 * Moves a private storage into a buffer of the provider; does nothing if it is in one. All tensors on the
 * storage, views and others, go on working with their values. A storage of 4096 bytes and more keeps its
 * address: pointers from tensor_data() stay good. A smaller one gets another address; pointers to the old one
 * can be used until the storage ends, but see and change only what was there before.
 *
 * The bytes are copied once. No other thread may use a tensor on the storage meanwhile: what it writes
 * could be lost. A child of fork() has its own copy of what was private when it was forked, and from then on
 * neither sees what the other does; what was shareable by then is shared by both.
 *
 * tensor_send() does the same to a private storage.
 *
 * Return: 0, or -errno. ENOTSUP: a tensor of another layout or device, or memory that is not the library's own
 * (of a file, of another library). ENOMEM: no memory, or the limit of the module. EMFILE: RLIMIT_NOFILE.
 */
int tensor_share_memory(tensor *t);

/* Names the tensor's buffer for tensorstat, and stores its shape there. EINVAL: it has none
 * (see tensor_share_memory()). */
int tensor_set_label(tensor *t, const char *label);

/* ---- between processes ---- */

/*
 * One end of a connected unix stream or seqpacket socket over which tensors travel. A tensor
 * is a message of fixed size with its geometry; the first time the peer sees a buffer, the
 * buffer's fd goes along. Nothing else crosses the socket. The channel does not own the socket.
 */
typedef struct tensor_channel tensor_channel;

#define TENSOR_SEND_READONLY 1u /* the peer can map it read-only and cannot undo that */

tensor_channel *tensor_channel_open(int socket);
void tensor_channel_close(tensor_channel *channel);
/* 0 or -errno. A tensor in private memory is moved into a buffer first, as by tensor_share_memory(). What
 * is not the library's own memory is copied: see docs/sharing.md. */
int tensor_send(tensor_channel *channel, tensor *t, unsigned flags);
/* A tensor on the sender's memory, or NULL: EPIPE when the peer is gone, EBADMSG for a message
 * that does not fit the buffer that came with it, EPROTO for a foreign message. */
tensor *tensor_recv(tensor_channel *channel);

/* ---- backends from outside ---- */

/*
 * Memory of a device: what a backend registers, see tensor_register_device(). Both functions
 * may be called from any thread.
 */
struct tensor_allocator {
	const char *name;
	/* nbytes >= 1, aligned to 64; 0 or -errno */
	int (*alloc)(const struct tensor_allocator *self, tensor_device device, size_t nbytes,
		     void **data);
	void (*free)(const struct tensor_allocator *self, tensor_device device, void *data,
		     size_t nbytes);
	bool host_accessible; /* tensor_data() may hand the pointer out */
	void *ctx;	      /* the backend's own */
};

#ifdef __cplusplus
}
#endif
#endif
