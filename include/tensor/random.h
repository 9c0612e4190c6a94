/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Generators of random numbers: Philox 4x32-10, which has no state but a key (the seed) and a
 * position. Each operator takes as many positions as its result has elements and then knows every
 * number by its element's place in row-major order: the same seed gives the same numbers on any
 * number of threads, on any processor, and for any strides. They are not PyTorch's numbers.
 *
 * Wherever a generator is expected, NULL is the process's default generator, which begins with a
 * seed from the kernel. A generator may be used by several threads at once: no two of them get
 * the same positions, but which gets which is left to chance. A forked child begins with a copy:
 * parent and child then draw the same numbers until one of them is given another seed.
 */
#ifndef TENSOR_RANDOM_H
#define TENSOR_RANDOM_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What there is to know of a generator; may be kept in a file. */
struct tensor_generator_state {
	uint64_t seed;
	uint64_t offset; /* blocks of 128 bits taken so far */
};

/* A new generator, owned by the caller; NULL without memory. */
tensor_generator *tensor_generator_new(uint64_t seed);
tensor_generator *tensor_generator_retain(tensor_generator *g);
/* One reference less; frees at zero. NULL is ignored. */
void tensor_generator_release(tensor_generator *g);
/* The process's own, borrowed. */
tensor_generator *tensor_default_generator(void);

/* Begins anew with this seed. */
void tensor_generator_manual_seed(tensor_generator *g, uint64_t seed);
/* Begins anew with a seed from the kernel; returns it. */
uint64_t tensor_generator_seed(tensor_generator *g);
uint64_t tensor_generator_initial_seed(const tensor_generator *g);
void tensor_generator_get_state(const tensor_generator *g, struct tensor_generator_state *state);
void tensor_generator_set_state(tensor_generator *g, const struct tensor_generator_state *state);

/* The default generator begins anew with this seed. */
void tensor_manual_seed(uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
