// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The state of a thread: allocated at its first call and freed at its exit. The pointer is in
 * initial-exec TLS (one load); the state is on the heap, because the static TLS block of a library
 * that is loaded late has only a few hundred bytes.
 */
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>

__thread struct tensor_thread *tensor_thread_ptr;

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static void (*exit_stages[THREAD_EXIT_STAGES])(struct tensor_thread *th);

void thread_on_exit(enum thread_exit_stage stage, void (*fn)(struct tensor_thread *th))
{
	exit_stages[stage] = fn;
}

static void thread_exit(void *arg)
{
	struct tensor_thread *th = arg;

	for (int i = 0; i < THREAD_EXIT_STAGES; i++)
		if (exit_stages[i])
			exit_stages[i](th);
	tensor_thread_ptr = NULL;
	free(th);
}

static void make_exit_key(void)
{
	pthread_key_create(&exit_key, thread_exit);
}

struct tensor_thread *tensor_thread_init(void)
{
	/*
	 * Shared by threads whose state cannot be allocated: counts are wrong, but nothing crashes.
	 */
	static struct tensor_thread last_resort = { .modes = { .include = THREAD_FIRST_INCLUDE,
							       .grad_enabled = true } };
	struct tensor_thread *th = calloc(1, sizeof(*th));

	if (!th)
		return &last_resort;
	th->modes.grad_enabled = true;
	th->modes.include = THREAD_FIRST_INCLUDE;
	pthread_once(&exit_once, make_exit_key);
	pthread_setspecific(exit_key, th);
	tensor_thread_ptr = th;
	return th;
}

TENSOR_EXPORT struct tensor_key_sets tensor_set_key_sets(struct tensor_key_sets sets)
{
	struct tensor_thread *th = thread();
	struct tensor_key_sets before = { th->modes.include, th->modes.exclude };

	th->modes.include = sets.include | THREAD_FIRST_INCLUDE;
	th->modes.exclude = sets.exclude;
	return before;
}
