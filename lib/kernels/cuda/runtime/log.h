/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The logs of refused values, one for each device (log.c). */
#ifndef TENSOR_CUDA_LOG_H
#define TENSOR_CUDA_LOG_H

#include "kernels/cuda/cuda.h"

struct log_refused {
	unsigned long long check; /* its number */
	struct cuda_refused refused;
};

/* The log in the device's address space; NULL before log_map(), which returns 0 or -errno. */
struct cuda_log *log_mapped(int device);
int log_map(const char *op, int device);
/* Takes all late checks that have refused values; stores the first, and returns their number. */
uint64_t log_take(int device, struct log_refused *first);
/* Empties the log, and takes what a check with LOG_WAITS has refused, if it has. */
bool log_take_own(int device, unsigned long long check, struct log_refused *found);
/* Writes the error's text and returns its code. */
int log_describe(const struct cuda_refused *r, char *to, size_t size);

#endif
