/* SPDX-License-Identifier: GPL-2.0-only */
/* PIN: import of memory that the calling process has mapped. */
#ifndef TENSOR_IMPORT_USERPTR_H
#define TENSOR_IMPORT_USERPTR_H

struct tensor_call;

int tensor_pin(struct tensor_call *call);

#endif /* TENSOR_IMPORT_USERPTR_H */
