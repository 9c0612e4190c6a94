/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ADVISE, and the shrinker behind it.
 */
#ifndef TENSOR_PURGE_H
#define TENSOR_PURGE_H

struct tensor_call;

int tensor_purge_init(void);
void tensor_purge_exit(void);
int tensor_advise(struct tensor_call *call);

#endif /* TENSOR_PURGE_H */
