/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Detection of memory misuse: TENSOR_DEBUG=1, or on by default under AddressSanitizer and valgrind.
 * Each storage is a separate allocation with red zones, memory is not reused soon, and an error
 * ends the program with the name of the operator that made the tensor.
 */
#ifndef TENSOR_DEBUG_H
#define TENSOR_DEBUG_H

#include "storage/storage.h"

extern bool debug_memory;
/* Called at load, before the first allocation. */
void debug_init(void);

/* Allocates nbytes for s, whose ops are set; false if there is no memory. */
bool debug_alloc(struct tensor_storage *s, size_t nbytes);
/* Frees a struct: delays its reuse instead of adding it to a magazine. */
void debug_keep(unsigned class, void *p);
/* Prints the message and ends the program. */
void debug_die(const char *fmt, ...) __attribute__((noreturn, cold, format(printf, 1, 2)));

/* Functions for blocks of CLASS_TENSOR; set by core/debug.c. */
extern struct debug_tensor_hooks {
	void (*taken)(void *block); /* records the function that allocates it */
	void (*kept)(
		void *block); /* clears its pointers and records the function that releases it */
} debug_tensor_hooks;

#endif
