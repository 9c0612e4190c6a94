/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SYNC.
 */
#ifndef TENSOR_SYNC_H
#define TENSOR_SYNC_H

struct tensor_call;

int tensor_sync(struct tensor_call *call);

#endif /* TENSOR_SYNC_H */
