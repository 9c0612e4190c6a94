/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Plays sequences of the model on the module and compares. */
#ifndef TENSOR_LIFETIMES_PLAYER_H
#define TENSOR_LIFETIMES_PLAYER_H

#include "worker.h"

/**
 * struct player - two processes and the references that they should hold
 * @worker: the processes
 * @world: memory that is shared with the processes
 * @ends: ends of a socket between the processes
 * @model: the expected references
 * @wrong: the reason why the last sequence failed
 */
struct player {
	struct worker worker[PROCS];
	struct world *world;
	int ends[2];
	struct model model;
	char wrong[256];
};

bool player_start(struct player *p);
void player_stop(struct player *p);
void player_begin(struct player *p, const char *name, bool large);
bool player_steps(struct player *p, const struct step *steps, int n);
bool player_look(struct player *p);
bool player_end(struct player *p);

#endif
