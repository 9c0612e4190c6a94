/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Finding misuse of memory (TENSOR_DEBUG=1, or by itself under AddressSanitizer and valgrind): each
 * storage is an allocation of its own with red zones, nothing is reused soon, and what is wrong ends
 * the program with the name of the operator that made the tensor.
 */
#ifndef TENSOR_DEBUG_H
#define TENSOR_DEBUG_H

#include "storage/storage.h"

extern bool debug_memory;
/* At load, before anything is allocated. */
void debug_init(void);

/* nbytes of memory for s, whose ops are set; false: there is none. */
bool debug_alloc(struct tensor_storage *s, size_t nbytes);
/* Instead of a magazine, for descriptions: kept for a while before the heap gets it back. */
void debug_keep(unsigned class, void *p);
/* Prints the message and ends the program. */
void debug_die(const char *fmt, ...) __attribute__((noreturn, cold, format(printf, 1, 2)));

/* For blocks of CLASS_TENSOR with debug_memory; set by core/debug.c. */
extern struct debug_tensor_hooks {
	void (*taken)(void *block); /* records who asked for it */
	void (*kept)(void *block);  /* clears its pointers, and records who released it */
} debug_tensor_hooks;

#endif
