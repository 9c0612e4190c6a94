// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * libtensor_onednn.so: registers its table when it is opened, or says why it cannot. Also here:
 * the engine, errors, and how many threads oneDNN uses, which are OpenMP's.
 */
#include "kernels/onednn/onednn.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <tensor/dispatch.h>

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
	/* Not malloc(): what that has left is no use for generated code. */
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return tensor_fail(ENOMEM,
				   "%s: no memory for oneDNN, which ends the program without", op);
	munmap(p, n);
	return 0;
}

/* OpenMP's threads do not survive a fork; a child that asked for them would wait forever. */
int onednn_threads(void)
{
	return forked ? 1 : tensor_get_num_threads();
}

static void mark_child(void)
{
	forked = true;
}

static const struct onednn_plugin plugin = {
	.from_dense = onednn_from_dense,
	.to_dense = onednn_to_dense,
	.empty = onednn_empty,
	.is_plain = onednn_is_plain,
	.clone = onednn_clone,
	.reshape = onednn_reshape,
	.permute = onednn_permute,
	.as_order = onednn_as_order,
	.zero_padding = onednn_zero_padding,
	.convolution = onednn_convolution,
	.linear = onednn_linear,
	.convolution_weight = onednn_convolution_weight,
	.linear_weight = onednn_linear_weight,
	.pool = onednn_pool,
	.softmax = onednn_softmax,
	.batch_norm = onednn_batch_norm,
};

__attribute__((constructor)) static void load(void)
{
	const dnnl_version_t *v = dnnl_version();
	char why[TENSOR_ERROR_TEXT];
	dnnl_status_t status;

	/* Descriptors are structs of the library's own: another major version has others. */
	if (v->major != DNNL_VERSION_MAJOR || v->minor < DNNL_VERSION_MINOR) {
		snprintf(why, sizeof(why), "built for version %d.%d, found %d.%d",
			 DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, v->major, v->minor);
		tensor_register_onednn(NULL, why);
		return;
	}
	if (onednn_memory_for("to_mkldnn", MEMORY_TO_MAKE) < 0) {
		tensor_register_onednn(NULL, "no memory for oneDNN");
		return;
	}
	status = dnnl_engine_create(&onednn_engine, dnnl_cpu, 0);
	if (status != dnnl_success) {
		snprintf(why, sizeof(why), "no engine for the CPU (%d)", status);
		tensor_register_onednn(NULL, why);
		return;
	}
	pthread_atfork(NULL, NULL, mark_child);
	tensor_register_onednn(&plugin, NULL);
}
