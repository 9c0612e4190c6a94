// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The state of the thread while a function of the program runs: the same in a worker and in the thread that
 * calls tensor_loader_next(), so that both compute the same.
 */
#include "train/data/loader.h"

struct thread_modes enter_program(tensor_generator *g)
{
	struct thread_modes before = thread_enter_plain();

	thread()->modes.generator = g;
	return before;
}
