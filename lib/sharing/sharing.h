/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Tensors in buffers of a provider: what the files of lib/sharing use of each other. */
#ifndef TENSOR_SHARING_H
#define TENSOR_SHARING_H

#include "core/tensor_impl.h"
#include "storage/provider/provider.h"

/* ---- from private memory to a buffer (shareable.c) ---- */

/* True for private memory of the library, which storage_share() can move into a buffer. */
bool storage_is_private(const struct tensor_storage *s);
/* Moves t's private storage into a buffer of its own. 0, or -errno with the error set. No other
 * thread uses a tensor on the storage meanwhile. */
int storage_share(tensor *t);

/* ---- buffers of this process (share.c, label.c, buffer.c) ---- */

/* Marks a buffer that another process can see, or will: it is not reused. */
void share_mark(struct tensor_buffer *b);
/* Writes t's geometry, and a label, into the descriptor of its buffer. */
int describe_tensor(struct tensor_buffer *b, const tensor *t, const char *label);
/* The same, unless the buffer has a descriptor or cannot have one. */
void describe_once(struct tensor_buffer *b, const tensor *t);
/* Checks the flags of tensor_buffer_sync(). 0, or -EINVAL with the error set. */
int sync_check(const char *function, unsigned flags);

/* ---- buffers of other processes (import.c) ---- */

/*
 * New storage on the buffer behind an fd, which stays the caller's. A process maps a buffer once
 * for each set of rights, however often it is received. NULL with the error set: EBADMSG unless the
 * buffer is `id`.
 */
struct tensor_storage *import_storage(int fd, struct tensor_identity id);
/* The same for an fd that the program passes: also memory that is not of a provider, whatever its
 * identity. */
struct tensor_storage *import_foreign(const char *function, int fd);
/* The buffer of an imported storage, NULL for others. */
struct tensor_buffer *import_buffer(struct tensor_storage *s);
/* Seals an imported buffer. -EBUSY if another storage of this process is on it. */
int import_seal(struct tensor_storage *s);

#endif
