/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Memory that a channel shares with its peer: a memfd whose size neither side can change. */
#ifndef TENSOR_SHM_H
#define TENSOR_SHM_H

#include <stddef.h>
#include <stdint.h>

/* A new memfd of this size, zeroed, whose pages are reserved: a store never finds memory missing. 0 or -errno. */
int shm_make(const char *name, size_t bytes, int *fd);
/* The size of a memfd that shm_make() of a peer made; -EBADMSG if the file can shrink or is no memfd. */
int64_t shm_size(int fd);
/* Maps all of it, writable. 0 or -errno. */
int shm_map(int fd, size_t bytes, void **to);

#endif
