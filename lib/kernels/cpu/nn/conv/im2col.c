// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * im2col: a row for each plane and tap, with the element that the tap reads for each place. col2im:
 * its gradient, which adds the rows to the elements.
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/spatial.h"

#include "iter/parallel.h"

struct columns {
	const struct columns_params *p;
	int64_t size[2], places[2], taps;
	void *to;
	const void *from;
};

/*
 * One tap of one plane. It reads the image for places from[d] to until[d] along dimension d:
 * element first + y * line of the image for place (y, from[1]).
 */
struct tap {
	int64_t from[2], until[2], first, line;
};

/* Tap i % taps of plane i / taps. */
static struct tap tap_of(const struct columns *c, int64_t i)
{
	const struct columns_params *p = c->p;
	const int64_t k[2] = { i % c->taps / p->kernel[1], i % p->kernel[1] };
	struct tap t = { .line = p->stride[0] * c->size[1] };

	for (int d = 0; d < 2; d++) {
		int64_t shift = p->padding[d] - k[d] * p->dilation[d], s = p->stride[d];

		t.from[d] = shift > 0 ? (shift + s - 1) / s : 0;
		t.until[d] = c->size[d] + shift > 0 ? (c->size[d] + shift + s - 1) / s : 0;
		t.until[d] = t.until[d] < c->places[d] ? t.until[d] : c->places[d];
		t.from[d] = t.from[d] < t.until[d] ? t.from[d] : t.until[d];
	}
	t.first = i / c->taps * c->size[0] * c->size[1] +
		  (k[0] * p->dilation[0] - p->padding[0]) * c->size[1] + t.from[1] * p->stride[1] +
		  k[1] * p->dilation[1] - p->padding[1];
	return t;
}

#define T      uint8_t
#define SUFFIX 8
#include "kernels/cpu/nn/conv/im2col_loops.h"
#undef T
#undef SUFFIX
#define T      uint16_t
#define SUFFIX 16
#include "kernels/cpu/nn/conv/im2col_loops.h"
#undef T
#undef SUFFIX
#define T      uint32_t
#define SUFFIX 32
#include "kernels/cpu/nn/conv/im2col_loops.h"
#undef T
#undef SUFFIX
#define T      uint64_t
#define SUFFIX 64
#include "kernels/cpu/nn/conv/im2col_loops.h"
#undef T
#undef SUFFIX
#define T      double complex
#define SUFFIX 128
#include "kernels/cpu/nn/conv/im2col_loops.h"
#undef T
#undef SUFFIX

#define LOOPS_FILE "kernels/cpu/nn/conv/col2im_loops.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_complex.h"

static void for_planes(tensor *image, struct columns *c, parallel_fn fn)
{
	int64_t work;

	c->taps = c->p->kernel[0] * c->p->kernel[1];
	for (int d = 0; d < 2; d++) {
		c->size[d] = image->sizes[2 + d];
		c->places[d] = (c->size[d] + 2 * c->p->padding[d] -
				c->p->dilation[d] * (c->p->kernel[d] - 1) - 1) /
				       c->p->stride[d] +
			       1;
	}
	work = c->taps * c->places[0] * c->places[1] + 1;
	parallel_for(0, image->sizes[0] * image->sizes[1],
		     work < ITER_GRAIN ? ITER_GRAIN / work : 1, fn, c);
}

static int cpu_im2col(tensor *out, const tensor *self, const struct columns_params *params)
{
	struct columns c = { .p = params, .to = out->data, .from = self->data };
	size_t size = itemsize(self);

	for_planes((tensor *)self, &c,
		   size == 1 ? im2col_8 :
		   size == 2 ? im2col_16 :
		   size == 4 ? im2col_32 :
		   size == 8 ? im2col_64 :
			       im2col_128);
	return 0;
}

static int cpu_col2im(tensor *out, const tensor *self, const struct columns_params *params)
{
	static const parallel_fn loops[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = col2im_##d,
		DTYPES_FLOAT(ENTRY) DTYPES_COMPLEX(ENTRY)
#undef ENTRY
	};
	struct columns c = { .p = params, .to = out->data, .from = self->data };

	if (!loops[self->dtype])
		return tensor_kernel_no_dtype("col2im", self->dtype, "cpu");
	for_planes(out, &c, loops[self->dtype]);
	return 0;
}

CPU_KERNELS(KERNEL(im2col), KERNEL(col2im))
