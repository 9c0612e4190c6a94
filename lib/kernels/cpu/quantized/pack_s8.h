/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The order of packed weights (product_s8). The sums of the output channels, i32, come first, up to a multiple of 64 bytes. Then
 * follow panels of up to PANEL output channels of a group: of each tap, units of four input channels, and of a unit the four bytes of each
 * column. A panel has a multiple of DEPTH_STEP units, for tiles (product_s8_amx.h); the bytes beyond its weights are zero.
 *
 * A product is depthwise if its groups have one channel and there are many: a panel is DOT_BYTES channels, of which each four taps are
 * four vectors (product_s8_tile.h).
 */
#ifndef TENSOR_PACK_S8_H
#define TENSOR_PACK_S8_H

#include "kernels/cpu/simd/vec_i8.h"

#define PANEL	   64
#define DEPTH_STEP 16

struct packing {
	bool depthwise;
	int64_t groups, n;     /* depthwise: one group of all channels */
	int64_t width;	       /* columns of a panel */
	int64_t taps, units;   /* units of four channels of a tap */
	int64_t panels, bytes; /* panels of a group, and bytes of each */
	int64_t start;	       /* of the first panel */
};

static inline struct packing packing_of(int64_t groups, int64_t n, int64_t channels, int64_t taps)
{
	struct packing p = { .depthwise = channels == 1 && n == 1 && groups >= 8, .taps = taps };

	p.groups = p.depthwise ? 1 : groups;
	p.n = p.depthwise ? groups : n;
	p.width = p.depthwise	   ? DOT_BYTES :
		  p.n > PANEL - 16 ? PANEL :
		  p.n > 16	   ? (p.n + 15) / 16 * 16 :
				     16;
	p.units = (channels + 3) / 4;
	p.panels = (p.n + p.width - 1) / p.width;
	p.bytes = p.depthwise ?
			  (taps + 3) / 4 * 4 * DOT_BYTES :
			  (taps * p.units + DEPTH_STEP - 1) / DEPTH_STEP * DEPTH_STEP * 4 * p.width;
	p.start = (groups * n * (int64_t)sizeof(int32_t) + 63) / 64 * 64;
	return p;
}

#endif
