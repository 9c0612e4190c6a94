// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* libnccl, loaded when a first group is opened: the plugin can be installed where there is no NCCL. */
#include "group/nccl/nccl.h"

#include "base/library.h"

#include <stdio.h>
#include <stdlib.h>

#define LIBRARY "libnccl.so.2"
#define OLDEST	21400 /* communicators that do not block */

static struct nccl_library library;
static bool is_loaded;
static char why_not[TENSOR_ERROR_TEXT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define FUNCTION(member, name) LIBRARY_FUNCTION(struct nccl_library, member, name)

static const struct library_function functions[] = {
	FUNCTION(get_version, "ncclGetVersion"),
	FUNCTION(get_unique_id, "ncclGetUniqueId"),
	FUNCTION(comm_init, "ncclCommInitRankConfig"),
	FUNCTION(comm_state, "ncclCommGetAsyncError"),
	FUNCTION(comm_finalize, "ncclCommFinalize"),
	FUNCTION(comm_destroy, "ncclCommDestroy"),
	FUNCTION(comm_abort, "ncclCommAbort"),
	FUNCTION(error_string, "ncclGetErrorString"),
	FUNCTION(last_error, "ncclGetLastError"),
	FUNCTION(all_reduce, "ncclAllReduce"),
	FUNCTION(reduce, "ncclReduce"),
	FUNCTION(broadcast, "ncclBroadcast"),
	FUNCTION(reduce_scatter, "ncclReduceScatter"),
	FUNCTION(all_gather, "ncclAllGather"),
	FUNCTION(send, "ncclSend"),
	FUNCTION(recv, "ncclRecv"),
	FUNCTION(group_start, "ncclGroupStart"),
	FUNCTION(group_end, "ncclGroupEnd"),
};

static void load(void)
{
	const char *name = secure_getenv("TENSOR_NCCL"), *reason;
	int version = 0;

	if (!name || !*name)
		name = LIBRARY;
	reason = library_load(name, functions, ARRAY_SIZE(functions), &library);
	if (reason)
		snprintf(why_not, sizeof(why_not), "%.400s", reason);
	else if (library.get_version(&version) != ncclSuccess || version < OLDEST)
		snprintf(why_not, sizeof(why_not), "%.200s is version %d, older than 2.14", name,
			 version);
	else
		is_loaded = true;
}

const struct nccl_library *nccl_library(void)
{
	pthread_once(&once, load);
	if (is_loaded)
		return &library;
	tensor_fail(ENOTSUP, "%s", why_not);
	return NULL;
}
