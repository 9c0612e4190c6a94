/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The arguments of the kernel of connectionist temporal classification. */
#ifndef TENSOR_CTC_H
#define TENSOR_CTC_H

#include "core/tensor_impl.h"

/* Tensors are contiguous, of dtype f32 or f64. The op has checked all lengths and labels, which are on
 * the host; the others are in the memory of the device. */
struct ctc {
	tensor_device device;
	enum tensor_dtype dtype;
	int64_t steps, batch, classes, blank;
	int64_t width;		       /* of a row of alpha: 2 * the longest target + 1 */
	const int64_t *labels, *first; /* labels of all targets; the first of each sequence */
	const int64_t *input_lengths, *target_lengths;
	const void *log_probs; /* [steps, batch, classes] */
	void *alpha;	       /* [batch, steps, width]; read by the backward */
	void *loss;	       /* [batch]; read by the backward */
	/* For the backward; NULL in the forward. */
	const void *grad; /* [batch] */
	void *out;	  /* the gradient, [steps, batch, classes] */
	void *beta;	  /* [batch, 2, width], scratch memory */
	bool zero_infinity;
};

typedef int (*ctc_kernel)(const struct ctc *c);
extern ctc_kernel type_of_ctc_loss;

#endif
