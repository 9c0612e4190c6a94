// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* One pass over all tensors of a list; the host waits for the result of a method that has one. */
#include "kernels/abi/list.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_list.h"

_Static_assert((int)CUDA_LIST_SCALE == LIST_SCALE && (int)CUDA_LIST_CLAMP == LIST_CLAMP &&
		       (int)CUDA_LIST_LERP == LIST_LERP && (int)CUDA_LIST_UNSCALE == LIST_UNSCALE &&
		       (int)CUDA_LIST_NORM_1 == LIST_NORM_1 &&
		       (int)CUDA_LIST_NORM_2 == LIST_NORM_2 &&
		       (int)CUDA_LIST_NORM_MAX == LIST_NORM_MAX &&
		       (int)CUDA_LIST_NORM_P == LIST_NORM_P,
	       "the methods of the launcher are those of the kernel's type");

/* Blocks for each item of a launch, by the largest one. */
static int blocks_for(int64_t n)
{
	const int64_t blocks = (n + 4095) / 4096;

	return (int)(blocks < 1 ? 1 : blocks < CUDA_LIST_BLOCKS ? blocks : CUDA_LIST_BLOCKS);
}

/* Launches for all items; *partial moves behind their results, unless it is NULL. */
static int pass(const struct cuda_call *c, enum list_method method, double value,
		const struct optimizer_item *items, int64_t nitems, double **partial)
{
	struct cuda_list l = { .method = (enum cuda_list_method)method, .value = value };
	int64_t most = 0;
	int err = 0;

	for (int64_t i = 0; i < nitems && !err; i++) {
		for (int k = 0; k < 2; k++)
			if (items[i].tensors[k])
				cuda_use(c, items[i].tensors[k]);
		l.item[l.n].n = items[i].n;
		l.item[l.n].x = items[i].param;
		l.item[l.n++].y = items[i].grad;
		most = items[i].n > most ? items[i].n : most;
		if (i + 1 < nitems && l.n < CUDA_LIST_ITEMS && items[i + 1].dtype == items[i].dtype)
			continue;
		l.blocks = blocks_for(most);
		l.partial = *partial;
		*partial += *partial ? l.n * l.blocks : 0;
		err = cuda_launched(c, cuda_launch_list(&l, items[i].dtype, c->stream),
				    items[i].dtype);
		l.n = 0;
		most = 0;
	}
	return err;
}

static int pass_with_result(const struct cuda_call *c, enum list_method method, double value,
			    double *result, const struct optimizer_item *items, int64_t nitems)
{
	double *first, *partial;
	void *data;
	int err = cuda_scratch(c, (size_t)(nitems * CUDA_LIST_BLOCKS + 1) * sizeof(double), &data);

	if (err)
		return err;
	first = partial = (double *)data + 1;
	err = pass(c, method, value, items, nitems, &partial);
	if (!err)
		err = cuda_check(c->op, cuda_launch_list_total((enum cuda_list_method)method, first,
							       partial - first, data, c->stream));
	if (!err)
		err = cuda_check(c->op, cudaMemcpyAsync(result, data, sizeof(*result),
							cudaMemcpyDeviceToHost, c->stream));
	if (!err)
		err = cuda_wait(c);
	cuda_scratch_free(c, data);
	return err;
}

int cuda_list(enum list_method method, double value, double *part,
	      const struct optimizer_item *items, int64_t nitems)
{
	double *none = NULL;
	struct cuda_call c;
	int err = cuda_begin(&c, "list", items[0].tensors[0]->device.index);

	if (err)
		return err;
	if (part && method >= LIST_UNSCALE)
		err = pass_with_result(&c, method, value, &part[0], items, nitems);
	else
		err = pass(&c, method, value, items, nitems, &none);
	return cuda_end(&c, err);
}
