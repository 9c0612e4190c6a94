// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Errors of MPI, and operations that are given up. */
#include "group/mpi/mpi.h"

#include <time.h>

int64_t mpi_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int mpi_failed(tensor_group *g, int result, const char *function)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int n;

	if (result == MPI_SUCCESS)
		return 0;
	MPI_Error_string(result, text, &n);
	mpi_of(g)->is_over = true;
	return group_fail(g, -1, EIO, "%s: %.300s", function, text);
}

void mpi_keep_tensors(tensor_request *r)
{
	tensor *all[] = { r->out_tensor, r->in_tensor, r->out_packed, r->in_packed };

	for (int i = 0; i < 4; i++)
		if (all[i])
			tensor_get(all[i]);
}

bool mpi_abandon(MPI_Request *requests, int n)
{
	bool ended = true;

	for (int i = 0; i < n; i++) {
		int done = 1;

		if (requests[i] == MPI_REQUEST_NULL)
			continue;
		if (MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done)
			ended = false;
	}
	return ended;
}
