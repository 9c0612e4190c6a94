/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The modes of grid_sampler_2d (spatial.h), also for C++. */
#ifndef TENSOR_KERNELS_GRID_H
#define TENSOR_KERNELS_GRID_H

#include <stdbool.h>

enum grid_mode { GRID_BILINEAR, GRID_NEAREST, GRID_BICUBIC };
enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };
struct grid_params {
	enum grid_mode mode;
	enum grid_padding padding;
	bool align_corners;
};

#endif
