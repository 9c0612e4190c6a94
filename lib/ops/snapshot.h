/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Private copies of arguments in memory that other processes can write to. An operator that checks
 * a position and then uses it, or counts and then fills, must read the same values both times.
 * `reads:` in the declarations (lib/schema/gen/schema.py) names such arguments, and the generated
 * functions copy them.
 */
#ifndef TENSOR_SNAPSHOT_H
#define TENSOR_SNAPSHOT_H

#include "core/tensor_impl.h"

/* True if another process can write to t's memory: a shared buffer or a mapped file. */
static inline bool changes_meanwhile(const tensor *t)
{
	return t->storage->ops->shared;
}

/* t's elements in private memory: a copy, or another reference to t if its memory is private.
 * Owned; NULL with the error set. An expanded dimension keeps stride 0. */
tensor *operand_snapshot(tensor *t);

#endif
