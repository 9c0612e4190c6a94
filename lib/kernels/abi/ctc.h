/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Arguments of the kernel of connectionist temporal classification. */
#ifndef TENSOR_CTC_H
#define TENSOR_CTC_H

#include "core/tensor_impl.h"

/* Tensors are contiguous and of this dtype, f32 or f64. All lengths and labels were checked. */
struct ctc {
	enum tensor_dtype dtype;
	int64_t steps, batch, classes, blank;
	int64_t width;		       /* of a row of alpha: twice the longest target and one */
	const int64_t *labels, *first; /* of all targets, and where those of each sequence begin */
	const int64_t *input_lengths, *target_lengths;
	const void *log_probs; /* [steps, batch, classes] */
	void *alpha;	       /* [batch, steps, width]; the backward reads it */
	void *loss;	       /* [batch]; the same */
	/* The backward's; NULL in the forward. */
	const void *grad; /* [batch] */
	void *out;	  /* as log_probs */
	void *beta;	  /* [batch, 2, width], for the kernel's own use */
	bool zero_infinity;
};

typedef int (*ctc_kernel)(const struct ctc *c);

#endif
