// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The state of the thread while a function of the program runs: the same in a worker and in the thread that
 * calls tensor_loader_next(), so that both compute the same.
 */
#include "train/loader.h"

struct program_state enter_program(tensor_generator *g)
{
	struct tensor_thread *th = thread();
	struct program_state before = { { th->include, th->exclude },
					th->grad_enabled,
					th->generator };

	th->include = THREAD_FIRST_INCLUDE;
	th->exclude = 0;
	th->grad_enabled = false;
	th->generator = g;
	return before;
}

void leave_program(const struct program_state *before)
{
	struct tensor_thread *th = thread();

	th->include = before->keys.include;
	th->exclude = before->keys.exclude;
	th->grad_enabled = before->grad;
	th->generator = before->generator;
}
