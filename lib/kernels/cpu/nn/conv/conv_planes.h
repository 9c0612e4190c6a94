/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Convolutions whose first axis has a border: the planes of the output at the border are summed
 * without the taps that read only zeros there, a twelfth of all for 3 taps and 8 planes. Included by
 * conv.c only.
 */
#ifndef TENSOR_CONV_PLANES_H
#define TENSOR_CONV_PLANES_H

#define PLANES_COLUMNS 384 /* positions of a part from which it is worth packing weights for it */

/* The planes of the grid, from..until, for which a tap of the first axis reads the source. */
struct tap_planes {
	int64_t from, until;
};

/* The taps, a contiguous range, that read the source for plane z; all if none do. */
static void taps_of_plane(const struct tap_planes *tap, int64_t taps, int64_t z, int64_t *from,
			  int64_t *until)
{
	*from = *until = 0;
	for (int64_t r = 0; r < taps; r++)
		if (tap[r].from <= z && z < tap[r].until) {
			if (*until == *from)
				*from = r;
			*until = r + 1;
		}
	if (*until == *from)
		*until = taps;
}

/* The end of the planes from z on that have the same taps. */
static int64_t planes_alike(const struct conv_gemm *c, const struct tap_planes *tap, int64_t taps,
			    int64_t z)
{
	int64_t from, until, f, u;

	taps_of_plane(tap, taps, z, &from, &until);
	for (z++; z < c->grid[0]; z++) {
		taps_of_plane(tap, taps, z, &f, &u);
		if (f != from || u != until)
			break;
	}
	return z;
}

/* Whether leaving out taps saves more than packing the weights for each part costs. */
static bool planes_differ(const struct conv_gemm *c, const struct tap_planes *tap, int64_t taps)
{
	int64_t plane = c->batch * c->grid[1] * c->grid[2], end = 0, parts = 0;

	if (taps < 2)
		return false;
	for (int64_t z = 0; z < c->grid[0]; z = end, parts++) {
		end = planes_alike(c, tap, taps, z);
		if ((end - z) * plane < PLANES_COLUMNS)
			return false;
	}
	return parts > 1;
}

/*
 * Sums c, in parts if some planes have fewer taps. The depth of c is `channels` times `taps` taps
 * of the first axis, each with as many of the others. `scratch` has 2 * c->depth numbers.
 */
static int sum_planes(const struct shape *s, const struct conv_gemm *c, int64_t channels,
		      const struct tap_planes *tap, int64_t taps, int64_t *scratch)
{
	int64_t size = dtype_sizes[s->dtype], end;
	int err = 0;

	if (c->src.copy || !planes_differ(c, tap, taps))
		return implicit_gemm(s, c);
	for (int64_t z = 0; !err && z < c->grid[0]; z = end) {
		int64_t from, until, inner = c->depth / channels / taps;
		int64_t *weight = scratch + c->depth;
		struct conv_gemm part = *c;

		end = planes_alike(c, tap, taps, z);
		taps_of_plane(tap, taps, z, &from, &until);
		part.depth = 0;
		for (int64_t k = 0; k < channels; k++)
			for (int64_t i = from * inner; i < until * inner; i++) {
				int64_t at = k * taps * inner + i;

				scratch[part.depth] = c->src.offset[at];
				weight[part.depth++] = c->weight_offset ? c->weight_offset[at] : at;
			}
		part.src.offset = scratch;
		part.weight_offset = weight;
		part.grid[0] = end - z;
		part.src.data = (const char *)c->src.data + z * c->src.step[0] * size;
		part.out = (char *)c->out + z * c->out_step[0] * size;
		err = implicit_gemm(s, &part);
	}
	return err;
}

#endif
