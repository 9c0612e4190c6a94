/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions that the files of lib/sharing share. */
#ifndef TENSOR_SHARING_H
#define TENSOR_SHARING_H

#include "core/tensor_impl.h"
#include "storage/provider/provider.h"

/* ---- from private memory to a buffer (shareable.c) ---- */

/* True for private memory of the library, which storage_share() can move into a buffer. */
bool storage_is_private(const struct tensor_storage *s);
/*
 * Moves the private storage of t into a buffer. No other thread may use the storage. 0, or -errno
 * with the error set.
 */
int storage_share(tensor *t);
/* Whether no other tensor uses the storage of t. */
bool storage_alone(const tensor *t);
struct referrer;
/* Gives the storage of t and its tensors another address: t alone, or those of the list (referrers_find()). */
void storage_move(tensor *t, const struct referrer *others, void *to);

/* ---- memory of CUDA devices (device_memory.c) ---- */

/* Has a function to export alone: the descriptor of the memory's handle. */
extern const struct tensor_provider cuda_provider;
/* As channel_send_check(), for a tensor on a CUDA device; waits for the thread's stream. */
int device_send_check(tensor *t, unsigned flags);
/* What channels know a shared storage of a device by; NULL for others. */
struct tensor_buffer *device_buffer(const struct tensor_storage *s);
/* What a receiver needs besides the descriptor. */
struct device_note {
	uint8_t uuid[16];
	uint64_t size;
};
/* 0, or -errno with the error set. */
int device_describe(const struct tensor_buffer *b, struct device_note *n);
/* A storage on the memory of a descriptor, which the caller keeps. NULL with the error set. */
struct tensor_storage *device_import(int fd, const struct device_note *n);
/* A fork takes the locks of channels before those of plugins that have been loaded. */
void channels_before_plugin(void);

/* Gives s, a new storage with other functions, the memory of base; their owner keeps base. */
static inline void storage_on_memory_of(struct tensor_storage *s, const struct tensor_storage *base,
					const struct storage_ops *ops, void *owner)
{
	s->ops = ops;
	s->owner = owner;
	s->device = base->device;
	s->data = base->data;
	s->nbytes = base->nbytes;
	s->used = base->used;
	s->readonly = base->readonly;
	s->buffer_counts = base->buffer_counts;
}

/* ---- buffers of this process (share.c, label.c, buffer.c) ---- */

/* Whether a channel sends the buffer: a receiver takes no memory whose mappings another driver than the module makes. */
static inline bool buffer_is_sendable(const struct tensor_buffer *b)
{
	return b->kind != TENSOR_BUFFER_KIND_DMABUF;
}

/* Marks a buffer that another process has or will have mapped: it is not reused. */
void share_mark(struct tensor_buffer *b);
/* Writes t's geometry, and a label, into the descriptor of its buffer. */
int describe_tensor(struct tensor_buffer *b, const tensor *t, const char *label);
/* The same, unless the buffer has a descriptor or cannot have one. */
void describe_once(struct tensor_buffer *b, const tensor *t);
/* Checks the flags of tensor_buffer_sync(). 0, or -EINVAL with the error set. */
int sync_check(const char *function, unsigned flags);

/*
 * Sends a shareable tensor with the descriptor of its buffer, which neither end of the channel remembers: the storage
 * that the peer receives has no reference but that of the received tensor. 0, or -errno with the error set.
 */
int channel_send_once(tensor_channel *ch, tensor *t);

/* ---- buffers of other processes (import.c) ---- */

/*
 * A new storage on the buffer of an fd, which the caller keeps. A process maps a buffer once for
 * each set of rights. NULL with the error set; EBADMSG if the buffer is not id.
 */
struct tensor_storage *import_storage(int fd, struct tensor_identity id);
/* The same for an fd that the program passes: any identity, and memory of other drivers. */
struct tensor_storage *import_foreign(const char *function, int fd);
/* The same for a file of a peer that is trusted. */
struct tensor_storage *import_file(int fd, struct tensor_identity id);
/*
 * The buffer of file_provider for the storage of a file that this process has mapped, or NULL; set by lib/io. It is
 * valid as long as the storage.
 */
extern struct tensor_buffer *(*mapped_file)(struct tensor_storage *s);
/* The same also for a file that was received. */
struct tensor_buffer *storage_file(struct tensor_storage *s);
/* The buffer of an imported storage, NULL for others. */
struct tensor_buffer *import_buffer(struct tensor_storage *s);
/* Seals an imported buffer. -EBUSY if another storage of this process is on it. */
int import_seal(struct tensor_storage *s);

#endif
