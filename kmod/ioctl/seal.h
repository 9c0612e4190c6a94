/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SEAL and REVOKE.
 */
#ifndef TENSOR_SEAL_H
#define TENSOR_SEAL_H

struct tensor_call;

int tensor_seal(struct tensor_call *call);
int tensor_revoke(struct tensor_call *call);

#endif /* TENSOR_SEAL_H */
