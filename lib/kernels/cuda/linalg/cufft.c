// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Loads cuFFT (cufft.h). */
#include "kernels/cuda/linalg/cufft.h"

#include "base/library.h"
#include "dispatch/kernel_error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct cufft functions;
static bool is_loaded;
static char why_not[TENSOR_ERROR_TEXT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define FUNCTION(member, name) LIBRARY_FUNCTION(struct cufft, member, name)

static const struct library_function names[] = {
	FUNCTION(create, "cufftCreate"),
	FUNCTION(set_auto_allocation, "cufftSetAutoAllocation"),
	FUNCTION(make_plan_many64, "cufftMakePlanMany64"),
	FUNCTION(set_stream, "cufftSetStream"),
	FUNCTION(set_work_area, "cufftSetWorkArea"),
	FUNCTION(exec_c2c, "cufftExecC2C"),
	FUNCTION(exec_z2z, "cufftExecZ2Z"),
	FUNCTION(exec_r2c, "cufftExecR2C"),
	FUNCTION(exec_d2z, "cufftExecD2Z"),
	FUNCTION(exec_c2r, "cufftExecC2R"),
	FUNCTION(exec_z2d, "cufftExecZ2D"),
	FUNCTION(destroy, "cufftDestroy"),
};

/* That of the runtime's CUDA, 13 or 12; each has a number of its own. */
static const char *file_of_library(void)
{
	const char *name = secure_getenv("TENSOR_CUFFT");
	int version = 0;

	if (name && *name)
		return name;
	if (cudaRuntimeGetVersion(&version) != cudaSuccess)
		cudaGetLastError();
	return version >= 13000 ? "libcufft.so.12" :
	       version >= 12000 ? "libcufft.so.11" :
				  "libcufft.so.10";
}

static void load(void)
{
	const char *reason = library_load(file_of_library(), names, ARRAY_SIZE(names), &functions);

	is_loaded = !reason;
	if (reason)
		snprintf(why_not, sizeof(why_not), "%.400s", reason);
}

const struct cufft *cufft(const char *op)
{
	pthread_once(&once, load);
	if (is_loaded)
		return &functions;
	tensor_kernel_missing(op, why_not);
	return NULL;
}
