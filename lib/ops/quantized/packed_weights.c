// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Weights of quantized products in the order of the CPU's kernel. Packing takes longer than the product of a few rows, so the quantizer of
 * the weights keeps them. They are set once and read without a lock; a second tensor with the quantizer, another number of groups, a change
 * in place and a program that has the address to write to all pack again, for one product.
 */
#include "ops/quantized/quantized.h"

#include "family/quantized.h"

#include <stdlib.h>

static bool is_packed(const struct packed_weights *p, const tensor *weight, int64_t groups)
{
	const tensor *w = p->plain;

	return w->storage == weight->storage && w->data == weight->data &&
	       w->ndim == weight->ndim && p->groups == groups &&
	       !memcmp(w->sizes, weight->sizes, w->ndim * sizeof(*w->sizes)) &&
	       !memcmp(w->strides, weight->strides, w->ndim * sizeof(*w->strides)) &&
	       p->version == storage_version(weight->storage);
}

/* Keep what was packed, unless another thread was first. Without memory for it nothing is kept. */
static void keep(struct quantizer *q, tensor *plain, uint32_t version, int64_t groups,
		 tensor *bytes)
{
	struct packed_weights *p = malloc(sizeof(*p)), *none = NULL;

	if (!p)
		return;
	*p = (struct packed_weights){ tensor_get(plain), version, groups, tensor_get(bytes) };
	if (!atomic_compare_exchange_strong_explicit(&q->packed, &none, p, memory_order_release,
						     memory_order_relaxed))
		packed_weights_free(p);
}

tensor *quantized_pack(tensor *weight, int64_t groups, int64_t n, int64_t channels, int64_t taps)
{
	struct quantizer *q = (struct quantizer *)weight->ext;
	struct packed_weights *kept = atomic_load_explicit(&q->packed, memory_order_acquire);
	bool exposed = atomic_load_explicit(&q->exposed, memory_order_relaxed);
	uint32_t version = storage_version(weight->storage);
	tensor *plain, *full, *bytes = NULL;

	if (kept && !exposed && is_packed(kept, weight, groups))
		return tensor_get(kept->bytes);
	plain = quantized_plain(weight);
	full = plain ? operand_contiguous(plain) : NULL;
	if (full)
		bytes = ((pack_s8_kernel)kernels_pack_s8.fn[backend_key(full)])(full->data, groups,
										n, channels, taps);
	if (bytes && !kept && !exposed)
		keep(q, plain, version, groups, bytes);
	tensor_put(plain);
	tensor_put(full);
	return bytes;
}
