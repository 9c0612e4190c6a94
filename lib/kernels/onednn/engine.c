// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The oneDNN engine of the process, the translation of oneDNN's errors, a check of available
 * memory, and the number of OpenMP threads that oneDNN uses.
 */
#include "kernels/onednn/onednn.h"

#include "base/memory_left.h"

#include <pthread.h>

dnnl_engine_t onednn_engine;
static bool forked;

int onednn_check(const char *op, dnnl_status_t status)
{
	const dnnl_version_t *v = dnnl_version();

	switch (status) {
	case dnnl_success:
		return 0;
	case dnnl_out_of_memory:
		return tensor_fail(ENOMEM, "%s: oneDNN has no memory", op);
	case dnnl_unimplemented:
		return tensor_fail(EOPNOTSUPP,
				   "%s: oneDNN %d.%d.%d does not do this on this processor "
				   "(bf16 needs AVX-512)",
				   op, v->major, v->minor, v->patch);
	default:
		return tensor_fail(EINVAL, "%s: oneDNN refused the arguments (%d)", op, status);
	}
}

int onednn_memory_for(const char *op, size_t n)
{
	if (!memory_is_left(n))
		return tensor_fail(ENOMEM,
				   "%s: no memory for oneDNN, which ends the program without", op);
	return 0;
}

/* A forked child has none of OpenMP's threads: a parallel region there would wait forever. */
int onednn_threads(void)
{
	return forked ? 1 : tensor_get_num_threads();
}

static void mark_child(void)
{
	forked = true;
}

dnnl_status_t onednn_engine_open(void)
{
	dnnl_status_t status = dnnl_engine_create(&onednn_engine, dnnl_cpu, 0);

	if (status == dnnl_success)
		pthread_atfork(NULL, NULL, mark_child);
	return status;
}
