/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Private copies of arguments that other processes may write to. An operator that checks a position
 * and then uses it, or counts and then fills, must find the same values both times: `reads:` in the
 * declarations (lib/schema/gen/schema.py) names such arguments, and the generated functions copy them.
 */
#ifndef TENSOR_SNAPSHOT_H
#define TENSOR_SNAPSHOT_H

#include "core/tensor_impl.h"

/* True if another process can write to t's memory: it is a buffer, or a mapped file. */
static inline bool changes_meanwhile(const tensor *t)
{
	return t->storage->ops->shared;
}

/* t's elements in private memory, or t with one more reference where they are: owned. NULL with the
 * error set. A dimension of stride 0 stays without memory. */
tensor *snapshot(tensor *t);

#endif
