/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Interface between the actions of one process.
 *
 * All mappings are made at fixed addresses in windows that nothing else uses: an access to a
 * mapping that another thread has unmapped faults and never reaches other memory.
 */
#ifndef TENSOR_TRANSITIONS_ACTOR_H
#define TENSOR_TRANSITIONS_ACTOR_H

#include <setjmp.h>

#include "../../kselftest/include/dmabuf.h"
#include "round.h"

#define WINDOWS	  3
#define WINDOW(i) ((char *)0x100000000000 + (i)*64 * MIB)

/**
 * struct actor - a thread
 * @round: the round
 * @index: number among all actors
 * @state: state of its random numbers
 */
struct actor {
	struct round *round;
	unsigned int index;
	uint64_t state;
};

extern int actor_dev, actor_vgem;

unsigned int actor_random_below(struct actor *a, unsigned int n);
uint64_t actor_word(struct actor *a);
volatile uint64_t *actor_place(struct actor *a);
int actor_prot(struct actor *a);
int word_read(volatile uint64_t *at, uint64_t *value);
int word_write(volatile uint64_t *at, uint64_t value);
void actor_check_word(struct actor *a, uint64_t word, const char *what);

/* Actions: each returns whether it succeeded in what it tried. */
bool act_read(struct actor *a);
bool act_write(struct actor *a);
bool act_map(struct actor *a);
bool act_unmap(struct actor *a);
bool act_protect(struct actor *a);
bool act_move(struct actor *a);
bool act_drop(struct actor *a);
bool act_fork(struct actor *a);
bool act_proc_mem(struct actor *a);
bool act_vm_write(struct actor *a);
bool act_pread(struct actor *a);
bool act_splice(struct actor *a);
bool act_export(struct actor *a);
bool act_import(struct actor *a);
bool act_attach(struct actor *a);
bool act_advise(struct actor *a);
bool act_info(struct actor *a);

#endif
