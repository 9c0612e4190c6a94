// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Loads cuDNN (cudnn.h). */
#include "kernels/cuda/dnn/cudnn.h"

#include "base/library.h"
#include "kernels/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>

static struct cudnn functions;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define FUNCTION(member, name) LIBRARY_FUNCTION(struct cudnn, member, name)

static const struct library_function names[] = {
	FUNCTION(create, "cudnnCreate"),
	FUNCTION(set_stream, "cudnnSetStream"),
	FUNCTION(create_descriptor, "cudnnBackendCreateDescriptor"),
	FUNCTION(destroy_descriptor, "cudnnBackendDestroyDescriptor"),
	FUNCTION(set_attribute, "cudnnBackendSetAttribute"),
	FUNCTION(get_attribute, "cudnnBackendGetAttribute"),
	FUNCTION(finalize, "cudnnBackendFinalize"),
	FUNCTION(execute, "cudnnBackendExecute"),
	FUNCTION(error_string, "cudnnGetErrorString"),
};

static void load(void)
{
	const char *name = secure_getenv("TENSOR_CUDNN");

	is_loaded = !library_load(name && *name ? name : "libcudnn.so.9", names, ARRAY_SIZE(names),
				  &functions);
}

const struct cudnn *cudnn(void)
{
	pthread_once(&once, load);
	return is_loaded ? &functions : NULL;
}
