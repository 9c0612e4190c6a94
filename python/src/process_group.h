/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Process groups, below devtensor.distributed: process_group.c has the group and its requests, data_parallel.c training. */
#ifndef DEVTENSOR_PROCESS_GROUP_H
#define DEVTENSOR_PROCESS_GROUP_H

#include "internal.h"
#include "waiting.h"

#include <tensor/group.h>
#include <tensor/parallel.h>

struct PyParallel;

typedef struct {
	PyObject_HEAD tensor_group *group; /* NULL: closed */
	int users;			   /* calls that run: close() waits for none, it refuses */
	tensor_request *
		*dropped; /* requests without an object, which are freed when they have ended */
	int ndropped, cap;
	struct PyParallel *parallel; /* those that use the group: its end is theirs */
} PyProcessGroup;

/* The group for a call, which ends with users--; NULL with an exception if it is none, or was closed. */
PyProcessGroup *process_group_use(PyObject *o);
/* The object uses the group in calls that may begin after the group's end. */
void parallel_end_all(PyProcessGroup *group);

/* True if a wait has ended without the end of the operation: the request remains. */
static inline bool request_remains(int err)
{
	return err < 0 && !strncmp(tensor_last_error()->text, "request_wait:", 13);
}

int add_data_parallel(PyObject *module);

#endif
