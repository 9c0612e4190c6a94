/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A convolution as conv.c passes it to the functions of one dtype. There are always three spatial
 * dimensions. Output positions form a grid; the element that a tap reads for a position is found by
 * one offset for each tap, which accounts for stride, padding and dilation.
 */
#ifndef TENSOR_CONV_H
#define TENSOR_CONV_H

#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/spatial.h"

#define AXES 3

static inline int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The range *from .. *to of positions o < n with 0 <= o * stride + at < size. */
static inline void conv_positions(int64_t at, int64_t stride, int64_t size, int64_t n,
				  int64_t *from, int64_t *to)
{
	*from = at < 0 ? (-at + stride - 1) / stride : 0;
	*to = at < size ? (size - at + stride - 1) / stride : 0;
	if (*to > n)
		*to = n;
}

/*
 * One spatial dimension of a copied source: element i of phase f is element first + phase[f] +
 * stride * i of the tensor, or zero if that is not within its `size`.
 */
struct conv_axis {
	int64_t size, first, stride, extent, phases;
	const int64_t *phase;
};

/*
 * Copies `planes` channels, contiguous at `in` and `pitch` apart at `out`. Each becomes phases[0] *
 * phases[1] * phases[2] blocks of extent[0] * extent[1] * extent[2] elements.
 */
struct conv_copy {
	int64_t planes, pitch;
	const struct conv_axis *axis;
	const void *in;
	void *out;
};

/* The elements that taps read. Strides and offsets are in elements; step[2] is 1. */
struct conv_source {
	const void *data;
	int64_t image, group, step[AXES];
	const int64_t *offset; /* [depth]: from a position to the element of a channel and tap */
	const struct conv_copy
		*copy; /* NULL, or each plane is still to be copied, for depthwise ones */
};

/*
 * out[image, row, position] = bias[row] + sum over depth of weight[row, d] source[position, d],
 * for each group.
 */
struct conv_gemm {
	int64_t batch, groups, rows, depth, grid[AXES];
	struct conv_source src;
	const void *weight;
	int64_t weight_group, weight_row;
	const int64_t *weight_offset; /* [depth]; NULL: 0, 1, ... */
	const void *bias;	      /* [groups * rows], NULL: 0 */
	void *out;
	int64_t out_image, out_group, out_row, out_step[AXES];
};

/*
 * The gradient of the weights: out[column, out_offset[d]] = sum over images and positions of
 * grad[image, column, position] source[position, d], for each group; grad and out are contiguous.
 * Other elements of out are zero.
 */
struct conv_wgrad {
	int64_t batch, groups, columns, depth, grid[AXES];
	struct conv_source src;
	const void *grad;
	void *out;
	int64_t out_row;
	const int64_t *out_offset; /* [depth], ascending; NULL: 0, 1, ... */
};

/*
 * A convolution of 3 by 3 taps by tiles[0] by tiles[1] tiles of 2 by 2 positions. src.offset has an
 * entry for each element that a tile reads, row by row: 4 by 4, or 5 by 5 for stride 2. size is
 * that of the output; other members as in struct conv_gemm.
 */
struct conv_winograd {
	int64_t batch, groups, rows, channels, stride, size[2], tiles[2];
	struct conv_source src;
	int64_t src_channel;
	const void *weight;
	int64_t weight_group, weight_row, weight_channel, tap[9]; /* tap: offsets of taps */
	const void *bias;
	void *out;
	int64_t out_image, out_group, out_row;
};

#define CLASS_TAPS   11 /* of an axis, at most */
#define AXIS_CLASSES 8
#define MOST_CLASSES 64 /* of three axes */

/* The taps that read the source, not its border: their numbers, and the elements, from that of the first tap on. */
struct conv_class {
	int taps;
	int64_t tap[CLASS_TAPS], at[CLASS_TAPS];
};

/* The positions of an axis, sorted by the taps that read the source. */
struct conv_class_axis {
	int64_t in, out, extent; /* of the source, the result and the weight */
	int64_t reads;		 /* taps of all positions that read the source */
	int64_t *of, *first;	 /* [out]: the class, and the element that the first tap reads */
	int classes;
	struct conv_class class[AXIS_CLASSES + 1];
};

/* out[image, row, position] = bias[row] + sum over channels and taps, for each group; out is contiguous. */
struct conv_channels {
	int64_t batch, groups, rows, channels, window; /* window: taps */
	const struct conv_class_axis *axis;
	const void *src, *weight, *bias; /* bias: [groups * rows], NULL: 0 */
	int64_t src_image, src_channel, weight_group, weight_row, weight_channel;
	void *out;
};

/* The gradient of the input of a depthwise convolution with stride 2 and taps * taps taps, of `planes` planes. */
struct conv_depth_gradient {
	int64_t planes, channels, taps, grad_size[2], out_size[2], padding[2];
	const void *grad, *weight, *bias; /* bias: [channels], NULL: 0 */
	void *out;
	_Atomic bool failed;
};

#define DEPTH_ROWS 2  /* the most channels in a group of a depthwise convolution */
#define DEPTH_TAPS 64 /* the most taps */

/* Whether groups have too few channels for a matrix product; see conv_depth.h. */
static inline bool conv_is_depthwise(int64_t rows, int64_t depth, int64_t groups)
{
	return groups > 1 && rows <= DEPTH_ROWS && depth <= DEPTH_TAPS && depth > 0;
}

/* The tensor that is computed from the other two: y of y = x * w, or a gradient. */
enum conv_result { CONV_OUTPUT, CONV_INPUT, CONV_WEIGHT };

/* Convolutions of bf16, whose result is f32, by units of two channels: conv_pairs.c. */
int CPU_NAME(conv_as_units)(convolution_kernel compute, tensor *out, const tensor *a,
			    const tensor *weight, const tensor *bias, const struct conv_params *p,
			    bool transposed);

/* Any shape, for integers and complex numbers (conv_plain.c); contiguous tensors. */
int CPU_NAME(conv_plain)(enum conv_result kind, const tensor *y, const tensor *x, const tensor *w,
			 const tensor *bias, const struct conv_params *p);

/* Return 0, or -errno with the error recorded; conv_winograd 1 if a result is not finite. */
int CPU_NAME(conv_implicit_gemm_f32)(const struct conv_gemm *c);
int CPU_NAME(conv_implicit_gemm_f64)(const struct conv_gemm *c);
int CPU_NAME(conv_implicit_gemm_pairs)(const struct conv_gemm *c); /* of units, see conv_pairs.c */
int CPU_NAME(conv_channels_f32)(const struct conv_channels *c);
int CPU_NAME(conv_channels_f64)(const struct conv_channels *c);
int CPU_NAME(conv_channels_pairs)(const struct conv_channels *c);
int CPU_NAME(conv_winograd_f32)(const struct conv_winograd *c);
int CPU_NAME(conv_winograd_f64)(const struct conv_winograd *c);
int CPU_NAME(conv_wgrad_f32)(const struct conv_wgrad *c);
int CPU_NAME(conv_wgrad_f64)(const struct conv_wgrad *c);
int CPU_NAME(conv_wgrad_pairs)(const struct conv_wgrad *c); /* of bf16, see conv_pairs.c */
int CPU_NAME(conv_depth_gradient_f32)(
	struct conv_depth_gradient *g); /* 1: not with vectors of this level */
int CPU_NAME(conv_depth_gradient_f64)(struct conv_depth_gradient *g);
void CPU_NAME(conv_copy_f32)(const struct conv_copy *c);
void CPU_NAME(conv_copy_f64)(const struct conv_copy *c);
void CPU_NAME(conv_copy_bf16)(const struct conv_copy *c);

/* Merges adjacent dimensions of the grid that are contiguous in both source and output. */
static inline void conv_fold(int64_t *grid, int64_t *src, int64_t *out)
{
	for (int d = AXES - 2; d >= 0; d--)
		if (grid[d] == 1 || (src[d] == src[AXES - 1] * grid[AXES - 1] &&
				     out[d] == out[AXES - 1] * grid[AXES - 1])) {
			grid[AXES - 1] *= grid[d];
			grid[d] = 1;
		} else {
			break;
		}
}

/* An iteration over images and grid positions, by runs along the last dimension. */
struct conv_walk {
	const int64_t *grid;
	int64_t image, at[AXES];
};

static inline struct conv_walk conv_walk_from(const int64_t *grid, int64_t position)
{
	struct conv_walk w = { .grid = grid };

	for (int d = AXES - 1; d >= 0; d--) {
		w.at[d] = position % grid[d];
		position /= grid[d];
	}
	w.image = position;
	return w;
}

/* The number of positions left in the run, at most n. */
static inline int64_t conv_walk_run(const struct conv_walk *w, int64_t n)
{
	int64_t left = w->grid[AXES - 1] - w->at[AXES - 1];

	return left < n ? left : n;
}

static inline int64_t conv_walk_offset(const struct conv_walk *w, int64_t image,
				       const int64_t *step)
{
	return w->image * image + w->at[0] * step[0] + w->at[1] * step[1] + w->at[2] * step[2];
}

static inline void conv_walk_on(struct conv_walk *w, int64_t run)
{
	w->at[AXES - 1] += run;
	for (int d = AXES - 1; d > 0 && w->at[d] == w->grid[d]; d--) {
		w->at[d] = 0;
		w->at[d - 1]++;
	}
	if (w->at[0] == w->grid[0]) {
		w->at[0] = 0;
		w->image++;
	}
}

#endif
