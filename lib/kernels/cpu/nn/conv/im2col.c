// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* im2col: each tap's view of a plane as a row; col2im: the sum of what each element gave away. */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/spatial.h"

#include "iter/parallel.h"

struct columns {
	const struct columns_params *p;
	int64_t size[2], places[2], taps;
	void *to;
	const void *from;
};

/* Of the places along a dimension, those where tap k lies within the image. */
static void served(const struct columns *c, int d, int64_t k, int64_t *from, int64_t *until)
{
	int64_t shift = c->p->padding[d] - k * c->p->dilation[d], s = c->p->stride[d];

	*from = shift > 0 ? (shift + s - 1) / s : 0;
	*until = c->size[d] + shift > 0 ? (c->size[d] + shift + s - 1) / s : 0;
	*until = *until < c->places[d] ? *until : c->places[d];
	*from = *from < *until ? *from : *until;
}

/* A chunk of planes; each has `taps` rows of places. */
#define EACH_TAP(T, BODY)                                                              \
	const struct columns *c = ctx;                                                 \
	const struct columns_params *p = c->p;                                         \
	int64_t places = c->places[0] * c->places[1], image = c->size[0] * c->size[1]; \
                                                                                       \
	for (int64_t i = begin * c->taps; i < end * c->taps; i++) {                    \
		int64_t ky = i % c->taps / p->kernel[1], kx = i % p->kernel[1];        \
		int64_t at = i / c->taps * image, y0, y1, x0, x1;                      \
                                                                                       \
		served(c, 0, ky, &y0, &y1);                                            \
		served(c, 1, kx, &x0, &x1);                                            \
		BODY                                                                   \
	}

/* The image's row that place y sees through the tap, from where place x0 sees it. */
#define LINE(y)                                                                       \
	(at + ((y)*p->stride[0] - p->padding[0] + ky * p->dilation[0]) * c->size[1] + \
	 x0 * p->stride[1] - p->padding[1] + kx * p->dilation[1])

#define IM2COL(d, T)                                                          \
	static void im2col_##d(int64_t begin, int64_t end, void *ctx)         \
	{                                                                     \
		EACH_TAP(T, {                                                 \
			T *to = (T *)c->to + i * places;                      \
                                                                              \
			memset(to, 0, places * sizeof(T));                    \
			for (int64_t y = y0; y < y1; y++) {                   \
				T *row = to + y * c->places[1] + x0;          \
				const T *line = (const T *)c->from + LINE(y); \
                                                                              \
				for (int64_t x = 0; x < x1 - x0; x++)         \
					row[x] = line[x * p->stride[1]];      \
			}                                                     \
		})                                                            \
	}
IM2COL(8, uint8_t)
IM2COL(16, uint16_t)
IM2COL(32, uint32_t)
IM2COL(64, uint64_t)
IM2COL(128, double complex)

#define COL2IM(d, T, D)                                                      \
	static void col2im_##d(int64_t begin, int64_t end, void *ctx)        \
	{                                                                    \
		T *out = ((const struct columns *)ctx)->to;                  \
                                                                             \
		EACH_TAP(T, {                                                \
			const T *from = (const T *)c->from + i * places;     \
                                                                             \
			if (i % c->taps == 0)                                \
				memset(out + at, 0, image * sizeof(T));      \
			for (int64_t y = y0; y < y1; y++) {                  \
				const T *row = from + y * c->places[1] + x0; \
				T *line = out + LINE(y);                     \
                                                                             \
				IVDEP for (int64_t x = 0; x < x1 - x0; x++)  \
					line[x * p->stride[1]] += row[x];    \
			}                                                    \
		})                                                           \
	}
DTYPES_FLOAT(COL2IM)
DTYPES_COMPLEX(COL2IM)

static void run(tensor *image, struct columns *c, parallel_fn fn)
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

	run((tensor *)self, &c,
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
		return kernel_no_dtype("col2im", self->dtype, "cpu");
	run(out, &c, loops[self->dtype]);
	return 0;
}

CPU_KERNELS(K(im2col), K(col2im))
