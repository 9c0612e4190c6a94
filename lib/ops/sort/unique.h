/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* unique on the memory of a device (unique_device.c). */
#ifndef TENSOR_OPS_UNIQUE_H
#define TENSOR_OPS_UNIQUE_H

#include "core/tensor_impl.h"

/* What is not wanted has no elements. */
struct unique_wanted {
	bool firsts, inverse, counts;
};

/* The first element of each run, its position, the run of each element, and the lengths of the runs. */
struct unique_results {
	tensor *values, *firsts, *inverse, *counts;
};

bool unique_is_on_device(const tensor *self);
/*
 * Of elements, or of slices along d unless it is negative. sort: of equal ones, in ascending order; else of equal neighbours.
 * Owned results; 0, or -errno with the error set.
 */
int unique_on_device(tensor *self, int d, bool sort, const struct unique_wanted *wanted,
		     struct unique_results *results);

#endif
