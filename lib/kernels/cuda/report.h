/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Reports of kernels that check values (runtime/check.c). The log of a device is host memory that its kernels write to, and only
 * when they refuse a value: a check that passes costs neither a copy nor an event. An entry is a check, with the refused value
 * of the lowest position; it has everything that the error's text needs, because the checked memory may be freed before the
 * host reads the log.
 */
#ifndef TENSOR_CUDA_REPORT_H
#define TENSOR_CUDA_REPORT_H

#include <stdint.h>

#define CUDA_LOG_ENTRIES 32
#define CUDA_LOG_RESERVED \
	8 /* entries that late checks do not take: one for each thread whose call waits for its check */
/* A bit of the number of a check: the call that made it waits, and alone reports it. */
#define LOG_WAITS 1ull

enum cuda_refusal {
	CUDA_BAD_INDEX,	      /* value: the index, limit: the size of its dimension */
	CUDA_BAD_ROW,	      /* the same of a table of `limit` rows */
	CUDA_BAD_OFFSET,      /* of a bag: value, at `position` - `limit`, of at most `limit` */
	CUDA_BAD_BAG,	      /* value: the bag of the index at `position`, of `limit` */
	CUDA_BAD_CLASS,	      /* value: the target of the row `position`, of `limit` classes */
	CUDA_BAD_PROBABILITY, /* the others: the value is not known */
	CUDA_BAD_WEIGHT,
	CUDA_BAD_SUM,
	CUDA_TOO_FEW, /* weights above 0 for `limit` draws */
	CUDA_BAD_DIVISOR
};

struct cuda_refused {
	const char *op; /* never read on the device */
	int64_t kind, position, value, limit;
};

struct cuda_log_entry {
	unsigned long long version; /* odd while it is written */
	unsigned long long check;
	struct cuda_refused refused;
};

struct cuda_log {
	unsigned int lock;	       /* of the device: the host takes none */
	unsigned long long head, tail; /* entries that were written, and that the host has read */
	unsigned long long lost;       /* checks that found no free entry */
	unsigned long long last_lost;
	struct cuda_log_entry entry[CUDA_LOG_ENTRIES];
};

/* An argument of a kernel that checks values. Without flag and log it reports nothing. */
struct cuda_report {
	unsigned long long *
		flag; /* on the device, UINT64_MAX before: the lowest position that is refused; or NULL */
	struct cuda_log *log;	  /* NULL in a capture */
	unsigned long long check; /* its number, not 0 */
	const char *op;
};

#endif
