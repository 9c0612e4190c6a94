// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A generator is a seed and a position. Reserving positions is one atomic addition, so threads
 * share a generator without a lock and a fork needs no handler.
 */
#include "base/generator.h"

#include "base/error.h"
#include "base/refcount.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct tensor_generator {
	atomic_int refs;
	_Atomic uint64_t seed, offset;
};

static tensor_generator default_generator = { .refs = 1 };
static pthread_once_t default_once = PTHREAD_ONCE_INIT;

/* Never fails: uses the clock if the kernel has no random numbers yet, early in the boot. */
static uint64_t fresh_seed(void)
{
	struct timespec t;
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
		return seed;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000007u ^ (uint64_t)t.tv_nsec << 20 ^ (uint64_t)getpid();
}

static void seed_default(void)
{
	default_generator.seed = fresh_seed();
}

TENSOR_EXPORT tensor_generator *tensor_default_generator(void)
{
	tensor_generator *own = thread()->modes.generator;

	if (own)
		return own;
	pthread_once(&default_once, seed_default);
	return &default_generator;
}

static tensor_generator *or_default(const tensor_generator *g)
{
	return g ? (tensor_generator *)g : tensor_default_generator();
}

TENSOR_EXPORT tensor_generator *tensor_generator_new(uint64_t seed)
{
	tensor_generator *g = malloc(sizeof(*g));

	if (!g) {
		tensor_fail(ENOMEM, "generator_new: no memory");
		return NULL;
	}
	g->refs = 1;
	g->seed = seed;
	g->offset = 0;
	return g;
}

TENSOR_EXPORT tensor_generator *tensor_generator_retain(tensor_generator *g)
{
	if (g)
		ref_get(&g->refs);
	return g;
}

TENSOR_EXPORT void tensor_generator_release(tensor_generator *g)
{
	if (g && g != &default_generator && ref_put(&g->refs))
		free(g);
}

TENSOR_EXPORT void tensor_generator_manual_seed(tensor_generator *g, uint64_t seed)
{
	tensor_generator_set_state(g, &(struct tensor_generator_state){ .seed = seed });
}

TENSOR_EXPORT uint64_t tensor_generator_seed(tensor_generator *g)
{
	uint64_t seed = fresh_seed();

	tensor_generator_manual_seed(g, seed);
	return seed;
}

TENSOR_EXPORT uint64_t tensor_generator_initial_seed(const tensor_generator *g)
{
	return or_default(g)->seed;
}

TENSOR_EXPORT void tensor_generator_get_state(const tensor_generator *g,
					      struct tensor_generator_state *state)
{
	const tensor_generator *from = or_default(g);

	state->seed = from->seed;
	state->offset = from->offset;
}

TENSOR_EXPORT void tensor_generator_set_state(tensor_generator *g,
					      const struct tensor_generator_state *state)
{
	tensor_generator *to = or_default(g);

	to->seed = state->seed;
	to->offset = state->offset;
}

TENSOR_EXPORT void tensor_manual_seed(uint64_t seed)
{
	tensor_generator_manual_seed(NULL, seed);
}

struct tensor_generator_state generator_take(tensor_generator *g, uint64_t n)
{
	tensor_generator *from = or_default(g);

	return (struct tensor_generator_state){
		.seed = from->seed,
		.offset = atomic_fetch_add_explicit(&from->offset, n, memory_order_relaxed),
	};
}
