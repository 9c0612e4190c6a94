/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Copies of a source by phases, with zeros around it; see conv_source.h and struct conv_copy. */
#ifndef TENSOR_CONV_COPY_H
#define TENSOR_CONV_COPY_H

#define COPY_GRAIN 32768 /* elements in a chunk of parallel work */

/* With COPY_BY_ELEMENTS, there are no vectors of T. */

/* Every second element, n of them. */
#ifdef COPY_SECOND
#define copy_second COPY_SECOND
#else
static void copy_second(T *to, const T *in, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = in[i * 2];
}
#endif

/* Elements from..until of phase f are within the tensor. */
static void axis_range(const struct conv_axis *a, int64_t f, int64_t *from, int64_t *until)
{
	conv_positions(a->first + a->phase[f], a->stride, a->size, a->extent, from, until);
	*from = min64(*from, a->extent);
	*until = *until < *from ? *from : *until;
}

/* A row along an axis: elements from..until are `in`, stride apart, the others up to extent zero. */
static inline void copy_row(T *to, const T *in, int64_t stride, int64_t from, int64_t until,
			    int64_t extent)
{
	for (int64_t i = 0; i < from; i++)
		to[i] = 0;
	if (stride == 1)
		memcpy(to + from, in, (until - from) * sizeof(T));
	else if (stride == 2)
		copy_second(to + from, in, until - from);
	else
		for (int64_t i = from; i < until; i++)
			to[i] = in[(i - from) * stride];
	for (int64_t i = until; i < extent; i++)
		to[i] = 0;
}

/* The index of element i of phase f along the axis, or -1 if it is not within the tensor. */
static int64_t axis_at(const struct conv_axis *a, int64_t f, int64_t i)
{
	int64_t at = a->first + a->phase[f] + a->stride * i;

	return at >= 0 && at < a->size ? at : -1;
}

#ifndef COPY_BY_ELEMENTS
#define EVEN_LANE(s, j) (2 * (j))
#define ODD_LANE(s, j)	(2 * (j) + 1)

/*
 * Sorts the elements of n contiguous vectors, 1, 2 or 4, by index modulo n: a vector for each
 * residue.
 */
static inline __attribute__((always_inline)) void split_residues(VEC *x, const int n)
{
	for (int k = n / 2; k > 0; k /= 2) {
		VEC y[4];

		for (int i = 0; i < n / 2; i++) {
			y[i] = __builtin_shuffle(x[2 * i], x[2 * i + 1],
						 (MASK){ EACH_LANE(EVEN_LANE, 0) });
			y[i + n / 2] = __builtin_shuffle(x[2 * i], x[2 * i + 1],
							 (MASK){ EACH_LANE(ODD_LANE, 0) });
		}
		memcpy(x, y, n * sizeof(*x));
	}
}

/*
 * The lines of a plane for phase f of y, each as a row for each phase of x, `block` apart. The phases of x are all
 * residues of the stride in order. The lanes of a vector are the same in all lines.
 */
static inline __attribute__((always_inline)) void copy_phases(T *to, int64_t block, const T *in,
							      const struct conv_axis *y, int64_t f,
							      const struct conv_axis *x,
							      const int stride)
{
	for (int64_t i = 0; i < x->extent; i += LANES) {
		int64_t first = x->first + i * stride;
		vec_part part[4], lanes = PART(min64(x->extent - i, LANES));
		bool inside[4];

		for (int k = 0; k < stride; k++) {
			int64_t at = first + k * LANES, from = at < 0 ? min64(-at, LANES) : 0;
			int64_t until = at < x->size ? min64(x->size - at, LANES) : 0;

			inside[k] = in && from < until;
			part[k] = PART_OF((int)from, (int)(inside[k] ? until : from));
		}
		for (int64_t l = 0; l < y->extent; l++) {
			int64_t line = axis_at(y, f, l);
			T *at = to + l * x->extent + i;
			VEC v[4];

#pragma GCC unroll 4
			for (int k = 0; k < stride; k++)
				v[k] = line >= 0 && inside[k] ?
					       LOAD(in + line * x->size + first + k * LANES,
						    part[k]) :
					       (VEC){ 0 };
			split_residues(v, stride);
#pragma GCC unroll 4
			for (int k = 0; k < stride; k++)
				STORE(at + k * block, lanes, v[k]);
		}
	}
}

#endif

/* The lines of a plane for phase f of y; in is NULL outside of the tensor. */
static void copy_lines(T *to, int64_t block, const T *in, const struct conv_axis *y, int64_t f,
		       const struct conv_axis *x)
{
#ifndef COPY_BY_ELEMENTS
	bool all = x->phases == x->stride;

	for (int64_t i = 0; i < x->phases && all; i++)
		all = x->phase[i] == i;
	if (all && x->stride == 1) {
		copy_phases(to, block, in, y, f, x, 1);
		return;
	}
	if (all && x->stride == 2) {
		copy_phases(to, block, in, y, f, x, 2);
		return;
	}
	if (all && x->stride == 4) {
		copy_phases(to, block, in, y, f, x, 4);
		return;
	}
#endif
	for (int64_t i = 0; i < x->phases; i++) {
		int64_t from, until, first;

		axis_range(x, i, &from, &until);
		first = x->first + x->phase[i] + from * x->stride;
		for (int64_t l = 0; l < y->extent; l++) {
			int64_t line = axis_at(y, f, l);
			T *at = to + i * block + l * x->extent;

			if (in && line >= 0 && from < until)
				copy_row(at, in + line * x->size + first, x->stride, from, until,
					 x->extent);
			else
				memset(at, 0, x->extent * sizeof(T));
		}
	}
}

static void copy_plane(T *to, const T *in, const struct conv_axis *axis)
{
	const struct conv_axis *z = axis, *y = axis + 1, *x = axis + 2;
	int64_t block = z->extent * y->extent * x->extent;

	for (int64_t f = 0; f < z->phases * y->phases; f++, to += x->phases * block)
		for (int64_t i = 0; i < z->extent; i++) {
			int64_t at = axis_at(z, f / y->phases, i);

			copy_lines(to + i * y->extent * x->extent, block,
				   at >= 0 ? in + at * y->size * x->size : NULL, y, f % y->phases,
				   x);
		}
}

static void copy_planes(int64_t begin, int64_t end, void *ctx)
{
	const struct conv_copy *c = ctx;
	int64_t plane = c->axis[0].size * c->axis[1].size * c->axis[2].size;

	for (int64_t i = begin; i < end; i++)
		copy_plane((T *)c->out + i * c->pitch, (const T *)c->in + i * plane, c->axis);
}

void CONV(conv_copy)(const struct conv_copy *c)
{
	parallel_for(0, c->planes, c->pitch < COPY_GRAIN ? COPY_GRAIN / c->pitch : 1, copy_planes,
		     (void *)c);
}

#endif
