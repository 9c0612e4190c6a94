/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Random number generators: Philox 4x32-10, whose state is a key (the seed) and a position. Each
 * operator takes as many positions as its result has elements, and computes each number from the
 * element's index in row-major order. The same seed gives the same numbers with any number of
 * threads, on any processor, and for any strides. They differ from PyTorch's numbers.
 *
 * Wherever a generator is an argument, NULL is the process's default generator, which starts with a
 * seed from the kernel. Threads may share a generator: they never get the same positions, but the
 * order in which they get them is unspecified. A forked child starts with a copy: parent and child
 * draw the same numbers until one of them sets another seed.
 */
#ifndef TENSOR_RANDOM_H
#define TENSOR_RANDOM_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Complete state of a generator; may be stored in a file. */
struct tensor_generator_state {
	uint64_t seed;
	uint64_t offset; /* blocks of 128 bits used so far */
};

/* New generator, owned by the caller. NULL with ENOMEM. */
tensor_generator *tensor_generator_new(uint64_t seed);
/* Add a reference. Returns g. */
tensor_generator *tensor_generator_retain(tensor_generator *g);
/* Drop a reference; the last one frees the generator. NULL is ignored. */
void tensor_generator_release(tensor_generator *g);
/* The process's default generator, borrowed. */
tensor_generator *tensor_default_generator(void);

/* Set the seed and the position 0. */
void tensor_generator_manual_seed(tensor_generator *g, uint64_t seed);
/* Set a seed from the kernel and the position 0. Returns the seed. */
uint64_t tensor_generator_seed(tensor_generator *g);
/* The seed set last. */
uint64_t tensor_generator_initial_seed(const tensor_generator *g);
/* Read or set the whole state: draws after set_state() repeat those after get_state(). */
void tensor_generator_get_state(const tensor_generator *g, struct tensor_generator_state *state);
void tensor_generator_set_state(tensor_generator *g, const struct tensor_generator_state *state);

/* tensor_generator_manual_seed() for the default generator. */
void tensor_manual_seed(uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
