// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * libtensor_cuda.so: its constructor registers the kernels and the table of functions, or the
 * reason why CUDA cannot be used.
 */
#include "kernels/cuda/cuda.h"
#include "ops/host_fallback.h"

#include <stdio.h>

/* ---- the table ---- */

static bool usable(void)
{
	return !cuda_forked;
}

static int synchronize(int device)
{
	int err = cuda_quiesce("cuda_synchronize", device);

	return err ? err : cuda_checks_report("cuda_synchronize", device);
}

static int memory_trim(int device)
{
	int err = cuda_memory_trim(device);

	if (err)
		return err;
	cuda_shared_reap();
	return cuda_checks_report("cuda_memory_trim", device);
}

static const struct cuda_plugin plugin = {
	.allocator = &cuda_memory,
	.usable = usable,
	.device_count = cuda_device_count,
	.set_stream = cuda_set_stream,
	.current_stream = cuda_current_stream,
	.synchronize = synchronize,
	.set_nonblocking = cuda_set_nonblocking,
	.memory = cuda_memory_counts,
	.memory_trim = memory_trim,
	.memory_stats = cuda_memory_stats,
	.memory_reset = cuda_memory_reset,
	.streams = &cuda_backward_streams,
	.graphs = &cuda_graphs,
	.stream_calls = &cuda_stream_functions,
	.share_calls = &cuda_shared_memory,
};

/* ---- loading ---- */

/* Returns the name of a kernel that this libtensor does not have, or NULL. */
static const char *register_kernels(const struct cuda_kernel *k, size_t n)
{
	const char *unknown = NULL;

	for (size_t i = 0; i < n; i++)
		if (tensor_kernel_table_set(k[i].name, TENSOR_KEY_CUDA, k[i].fn) < 0)
			unknown = k[i].name;
	return unknown;
}

__attribute__((constructor)) static void load(void)
{
	struct tensor_error before = *tensor_last_error();
	const char *unknown = register_kernels(cuda_formulas, cuda_formulas_count);
	char why[TENSOR_ERROR_TEXT];
	cudaError_t err;

	if (!unknown)
		unknown = register_kernels(cuda_kernels, cuda_kernels_count);
	if (unknown) {
		snprintf(why, sizeof(why),
			 "libtensor_cuda.so is of another build: libtensor has "
			 "no kernel named %s",
			 unknown);
		tensor_fail(before.code, "%s", before.text);
		tensor_register_cuda(NULL, why);
		return;
	}
	err = cuda_open_devices();
	if (err != cudaSuccess) {
		snprintf(why, sizeof(why), "no device: %s (%s)", cudaGetErrorString(err),
			 cudaGetErrorName(err));
		tensor_register_cuda(NULL, why);
		return;
	}
	if (tensor_register_cuda_fallback() < 0) {
		tensor_register_cuda(NULL, "no memory to register the fallback");
		return;
	}
	tensor_register_cuda(&plugin, NULL);
}
