// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The activation of blocks of a product, by the kernel of the elementwise operator. See matmul.h. */
#include "kernels/cpu/linalg/matmul.h"

void CPU_NAME(product_activate)(const struct product *p, int64_t i, int64_t j, int64_t m, int64_t n)
{
	struct product_activation *f = p->activation;
	int64_t size = itemsize(f->op[0]);
	bool across = p->csc <= p->rsc; /* whether the columns of c are the inner dimension */
	char *c = (char *)p->c + (i * p->rsc + j * p->csc) * size;
	struct tensor_iter it = { .ndim = 2,
				  .nops = 2,
				  .numel = m * n,
				  .dtype = f->op[0]->dtype,
				  .uniform = true,
				  .data = { c, c },
				  .op = f->op,
				  .shape = { across ? n : m, across ? m : n } };

	it.strides[0][0] = it.strides[1][0] = (across ? p->csc : p->rsc) * size;
	it.strides[0][1] = it.strides[1][1] = (across ? p->rsc : p->csc) * size;
	iter_settle(&it);
	if (f->fn(&it, NULL) < 0)
		f->failed = true;
}
