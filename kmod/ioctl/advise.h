/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ADVISE.
 */
#ifndef TENSOR_ADVISE_H
#define TENSOR_ADVISE_H

struct tensor_call;

int tensor_advise(struct tensor_call *call);

#endif /* TENSOR_ADVISE_H */
