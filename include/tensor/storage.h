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

/* Bytes held by the caching allocator: in use by tensors, and kept for reuse. */
struct tensor_cache_stats {
	uint64_t used, cached;
	uint64_t buffers; /* made by the provider so far */
	uint64_t hits, misses; /* of requests for a buffer of their own */
};
void tensor_cache_stats(struct tensor_cache_stats *stats);
/* Gives cached buffers back to the provider. */
void tensor_cache_trim(void);

/* Names the tensor's buffer for tensorstat, and stores its shape there. The tensor must have a
 * buffer to itself (made shareable, or 1 MiB and larger): EINVAL otherwise. */
int tensor_set_label(tensor *t, const char *label);

/* ---- between processes ---------------------------------------------------------------- */

/*
 * One end of a connected unix stream or seqpacket socket over which tensors travel. A tensor
 * is a message of fixed size with its geometry; the first time the peer sees a buffer, the
 * buffer's fd goes along. Nothing else crosses the socket. The channel does not own the socket.
 */
typedef struct tensor_channel tensor_channel;

#define TENSOR_SEND_READONLY 1u /* the peer can map it read-only and cannot undo that */

tensor_channel *tensor_channel_open(int socket);
void tensor_channel_close(tensor_channel *channel);
/* 0 or -errno. A tensor that has no buffer to itself is copied once into one that has, unless
 * it must be shared to make sense: see docs/sharing.md. */
int tensor_send(tensor_channel *channel, tensor *t, unsigned flags);
/* A tensor on the sender's memory, or NULL: EPIPE when the peer is gone, EBADMSG for a message
 * that does not fit the buffer that came with it, EPROTO for a foreign message. */
tensor *tensor_recv(tensor_channel *channel);

/* ---- backends from outside -------------------------------------------------------------- */

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
	void *ctx; /* the backend's own */
};

#ifdef __cplusplus
}
#endif
#endif
