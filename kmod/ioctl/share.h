/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * EXPORT and IMPORT.
 */
#ifndef TENSOR_SHARE_H
#define TENSOR_SHARE_H

struct tensor_call;

int tensor_export(struct tensor_call *call);
int tensor_import(struct tensor_call *call);

#endif /* TENSOR_SHARE_H */
