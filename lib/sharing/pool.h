/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Loans of pools (pool.c), for sending. */
#ifndef TENSOR_POOL_H
#define TENSOR_POOL_H

#include "core/tensor_impl.h"
#include "sharing/lease.h"

extern const struct storage_ops loan_ops;

static inline bool is_loan(const struct tensor_storage *s)
{
	return storage_ops_of(s) == &loan_ops;
}

/* Wakes the threads that wait with a pool: what another one read from a table may be for them. */
void pools_wake(void);
/* The storage of the pool below the storage of a loan. */
struct tensor_storage *loan_base(const struct tensor_storage *s);
/*
 * Makes the loans among n tensors owners of the lease: their buffers are not free before it is over. 0, or -ENOMEM with
 * the error set: some of them may be.
 */
int loans_lease(tensor *const *tensors, int n, struct lease *lease);

#endif
