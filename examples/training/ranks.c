// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Training by several ranks, started by tensorrun or mpirun; alone a program is a group of one. */
#include "common.h"

#include <tensor/group.h>
#include <tensor/parallel.h>

static tensor_group *group;
static tensor_data_parallel *parallel;

bool ranks_begin(void)
{
	group = tensor_group_open(NULL, NULL);
	return group;
}

int ranks_rank(void)
{
	return tensor_group_rank(group);
}

int ranks_count(void)
{
	return tensor_group_size(group);
}

void ranks_part(int64_t *at, int64_t *n)
{
	int size = tensor_group_size(group), rank = ranks_rank();
	int64_t begin = *n * rank / size, end = *n * (rank + 1) / size;

	*at += begin;
	*n = end - begin;
}

bool ranks_prepare(tensor_module *model)
{
	/* The models are small: a bucket is a layer or two. */
	parallel = tensor_data_parallel_new(model, group,
					    TENSOR_DATA_PARALLEL_OPTIONS(.bucket_bytes = 32768));
	return parallel;
}

bool ranks_backward(tensor *loss, double *mean)
{
	tensor *value = tensor_to(tensor_detach(loss), TENSOR_OPTIONS(.dtype = TENSOR_F64));

	return tensor_data_parallel_backward(parallel, loss) == 0 &&
	       tensor_group_all_reduce(group, value, value, TENSOR_GROUP_MEAN, NULL) == 0 &&
	       tensor_item(value, mean) == 0;
}

bool ranks_save(const struct training *t, bool is_last)
{
	bool due = is_last || (t->every && t->step % t->every == 0);

	return !due || !t->file || !t->optim || ranks_rank() ||
	       tensor_training_save(t->model, t->optim, t->file) == 0;
}

void ranks_end(void)
{
	tensor_data_parallel_free(parallel);
	tensor_group_close(group);
}
