// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions of integers and complex numbers, and their gradients: a loop over all pairs of an
 * element of the input and one of the output that a tap connects, row by row. The three results
 * differ in which of the three tensors is added to. Simple, not fast: these dtypes are rarely
 * convolved.
 */
#include "kernels/cpu/nn/conv/conv.h"

#include "iter/parallel.h"

struct plain {
	enum conv_result kind;
	int64_t batch, groups, in, out; /* in, out: channels of a group */
	int64_t x[AXES], y[AXES], taps[AXES], x_plane, y_plane, w_plane;
	const struct conv_params *p;
	char *x_data, *y_data, *w_data;
	const void *bias;
};

#define LOOPS_FILE "kernels/cpu/nn/conv/conv_plain_loops.h"
#include "kernels/cpu/simd/each_wrapping.h"
#include "kernels/cpu/simd/each_complex.h"

static int64_t sizes_of(const tensor *t, int64_t *size)
{
	int64_t n = 1;

	for (int d = 0; d < AXES; d++) {
		int from = t->ndim - AXES + d;

		size[d] = from < 2 ? 1 : t->sizes[from];
		n *= size[d];
	}
	return n;
}

int CPU_NAME(conv_plain)(enum conv_result kind, const tensor *y, const tensor *x, const tensor *w,
			 const tensor *bias, const struct conv_params *p)
{
#define ENTRY(d, T, D) [D] = plain_##d,
	static const parallel_fn fn[TENSOR_DTYPE_COUNT] = { DTYPES_WRAPPING(ENTRY) AT_WRAPPED(plain)
								    DTYPES_COMPLEX(ENTRY) };
	struct plain c = { .kind = kind,
			   .batch = x->sizes[0],
			   .groups = p->groups,
			   .in = x->sizes[1] / p->groups,
			   .out = y->sizes[1] / p->groups,
			   .p = p,
			   .x_data = x->data,
			   .y_data = y->data,
			   .w_data = w->data,
			   .bias = bias ? bias->data : NULL };
	int64_t units = kind == CONV_OUTPUT ? c.batch * y->sizes[1] :
			kind == CONV_INPUT  ? c.batch * x->sizes[1] :
					      y->sizes[1] * c.in;
	int64_t work;

	if (!fn[x->dtype])
		return tensor_kernel_no_dtype("convolution", x->dtype, "cpu");
	c.x_plane = sizes_of(x, c.x);
	c.y_plane = sizes_of(y, c.y);
	c.w_plane = sizes_of(w, c.taps);
	work = 1 + c.y_plane * c.w_plane *
			   (kind == CONV_OUTPUT ? c.in :
			    kind == CONV_INPUT	? c.out :
						  c.batch);
	parallel_for(0, units, work < ITER_GRAIN ? ITER_GRAIN / work : 1, fn[x->dtype], &c);
	return 0;
}
