/* SPDX-License-Identifier: GPL-2.0-only */
/* Import of memfds. */
#ifndef TENSOR_IMPORT_MEMFD_H
#define TENSOR_IMPORT_MEMFD_H

#include "../buffer/buf.h"

int tensor_import_memfd(struct tensor_owner *hint, u64 client, struct file *file,
			struct tensor_hold *hold);

#endif /* TENSOR_IMPORT_MEMFD_H */
