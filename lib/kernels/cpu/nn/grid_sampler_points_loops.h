/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The forward loops of grid_sampler.c for the element type T (no include guard; see each_float.h),
 * for planes of at most INT32_MAX elements: F(sample_planes), one channel at a time, and
 * F(sample_blocks), vectors of channels. Positions are computed for the points of a chunk together,
 * along each axis, in vectors.
 */
#define F(name) CPU_PASTE(name, SUFFIX)
#define V	CPU_PASTE(vec, SUFFIX)
#define LANES	((int)(VEC_BYTES / sizeof(T)))

/* Tap k of point i: an element of the plane and its weight, and whether it is inside, as bits. */
struct F(points) {
	int32_t at[TAPS][CHUNK];
	T w[TAPS][CHUNK];
	F(grid_bits) keep[TAPS][CHUNK];
	bool inside[CHUNK / LANES]; /* all taps of a vector of points */
};

/* The same along one axis: a row or a column. */
struct F(axis) {
	int32_t at[AXIS_TAPS][CHUNK];
	T w[AXIS_TAPS][CHUNK];
};

/* int32_t for each lane */
typedef int32_t F(grid_ints) __attribute__((vector_size(VEC_BYTES / sizeof(T) * 4), aligned(4)));

/* Finite positions; those far outside and NaN become -FAR. */
static inline V F(near)(V x)
{
	return (V)VEC_PICK((x > -(T)FAR) & (x < (T)FAR), x, (V){ 0 } - (T)FAR);
}

/* F(pad)() for an axis of elements 0 to last; positions are reflected at low and low + span. */
static inline __attribute__((always_inline)) V F(padded)(V x, T last, T low, T span,
							 enum grid_padding padding)
{
	const V zero = { 0 };

	if (padding == GRID_REFLECTION) {
		V a = x - low, flips, extra, odd;

		a = VEC_PICK(a < 0, -a, a);
		flips = F(grid_floor)(a / span);
		extra = a - flips * span;
		odd = flips - 2 * F(grid_floor)(flips / 2);
		x = VEC_PICK(odd != 0, span - extra, extra) + low;
		x = span > 0 ? x : zero;
	}
	if (padding != GRID_ZEROS) {
		x = VEC_PICK(x > 0, x, zero);
		x = VEC_PICK(x < last, x, zero + last);
	}
	return F(near)(x);
}

static inline __attribute__((always_inline)) void F(set_axis)(struct F(axis) * to, int tap, int i,
							      V at, V w, T size)
{
	at = VEC_PICK((at >= 0) & (at < size), at, (V){ 0 } - 1);
	*(F(grid_ints) *)&to->at[tap][i] = __builtin_convertvector(at, F(grid_ints));
	*(V *)&to->w[tap][i] = w;
}

/* Fills the taps of all CHUNK coordinates x of an axis of n elements. mode and padding are constants. */
static inline __attribute__((always_inline)) void F(axis_taps)(struct F(axis) * to, const T *x,
							       int64_t n, bool align,
							       enum grid_mode mode,
							       enum grid_padding padding)
{
	T size = (T)n, last = (T)(n - 1), low = align ? 0 : (T)-0.5, span = align ? last : size;
	T scale = align ? last / 2 : size / 2, shift = align ? 0 : (T)0.5;
	const V one = (V){ 0 } + 1;

	for (int i = 0; i < CHUNK; i += LANES) {
		V at = (*(const V *)(x + i) + 1) * scale - shift, first, w[4];

		if (mode == GRID_BICUBIC) {
			at = F(near)(at);
			first = F(grid_floor)(at);
			F(cubic_vectors)(at - first, w);
			for (int k = 0; k < 4; k++)
				F(set_axis)
			(to, k, i, F(padded)(first + (T)(k - 1), last, low, span, padding), w[k],
			 size);
			continue;
		}
		at = F(padded)(at, last, low, span, padding);
		if (mode == GRID_NEAREST) {
			F(set_axis)(to, 0, i, F(grid_round)(at), one, size);
			continue;
		}
		first = F(grid_floor)(at);
		F(set_axis)(to, 0, i, first, 1 - (at - first), size);
		F(set_axis)(to, 1, i, first + 1, at - first, size);
	}
}

static inline __attribute__((always_inline)) void F(axis_padded)(struct F(axis) * to, const T *x,
								 int64_t n, bool align,
								 enum grid_mode mode,
								 enum grid_padding padding)
{
	switch (padding) {
	case GRID_ZEROS:
		F(axis_taps)(to, x, n, align, mode, GRID_ZEROS);
		break;
	case GRID_BORDER:
		F(axis_taps)(to, x, n, align, mode, GRID_BORDER);
		break;
	default:
		F(axis_taps)(to, x, n, align, mode, GRID_REFLECTION);
	}
}

static void F(axis_of)(struct F(axis) * to, const T *x, int64_t n, const struct grid_params *p)
{
	switch (p->mode) {
	case GRID_BILINEAR:
		F(axis_padded)(to, x, n, p->align_corners, GRID_BILINEAR, p->padding);
		break;
	case GRID_NEAREST:
		F(axis_padded)(to, x, n, p->align_corners, GRID_NEAREST, p->padding);
		break;
	default:
		F(axis_padded)(to, x, n, p->align_corners, GRID_BICUBIC, p->padding);
	}
}

/*
 * The points of a chunk of an image; returns their number. The other points are those at 0, 0. Taps
 * outside of the plane are set to element `outside`.
 */
static int64_t F(points_of)(const struct grid *g, struct F(points) * t, int64_t image,
			    int64_t chunk, int32_t outside)
{
	int64_t from = chunk * CHUNK, n = g->places - from < CHUNK ? g->places - from : CHUNK;
	const T *at = (const T *)g->grid + (image * g->places + from) * 2;
	int side = g->taps == 16 ? 4 : g->taps == 4 ? 2 : 1;
	_Alignas(64) T both[2 * CHUNK], x[CHUNK], y[CHUNK];
	struct F(axis) rows, cols;
	int32_t w = (int32_t)g->w, any[CHUNK] = { 0 };

	memcpy(both, at, (size_t)(2 * n) * sizeof(T));
	memset(both + 2 * n, 0, (size_t)(CHUNK - n) * 2 * sizeof(T));
	for (int i = 0; i < CHUNK; i++) {
		x[i] = both[2 * i];
		y[i] = both[2 * i + 1];
	}
	F(axis_of)(&cols, x, g->w, g->p);
	F(axis_of)(&rows, y, g->h, g->p);
	for (int k = 0; k < g->taps; k++) {
		const int32_t *r = rows.at[k / side], *c = cols.at[k % side];
		const T *wr = rows.w[k / side], *wc = cols.w[k % side];

		for (int i = 0; i < CHUNK; i++) {
			int32_t out = (r[i] | c[i]) >> 31, to = r[i] * w + c[i];

			t->at[k][i] = (to & ~out) | (outside & out);
			t->keep[k][i] = ~(F(grid_bits))out;
			any[i] |= out;
		}
		for (int i = 0; i < CHUNK; i++)
			t->w[k][i] = wr[i] * wc[i];
	}
	for (int i = 0; i < CHUNK; i += LANES) {
		int32_t out = 0;

		for (int k = 0; k < LANES; k++)
			out |= any[i + k];
		t->inside[i / LANES] = !out;
	}
	return n;
}

/* out[i] = the sum of `taps` taps of point i of a plane of rows of w elements; taps is a constant. */
static inline __attribute__((always_inline)) void F(sum_taps)(T *restrict out, const T *restrict in,
							      const struct F(points) * t, int64_t n,
							      int64_t w, int taps)
{
	for (int64_t i = 0; i < n; i += LANES) {
		V v[TAPS], sum = { 0 };

		if (sizeof(T) == sizeof(float) && taps == 4 && t->inside[i / LANES]) {
			const float *p = (const float *)in;

			take_pairs(p, &t->at[0][i], (vec_f32 *)&v[0], (vec_f32 *)&v[1]);
			take_pairs(p + w, &t->at[0][i], (vec_f32 *)&v[2], (vec_f32 *)&v[3]);
		} else {
			for (int k = 0; k < taps; k++)
				v[k] = (V)((F(grid_lanes))F(take)(in, &t->at[k][i]) &
					   *(const F(grid_lanes) *)&t->keep[k][i]);
		}
		for (int k = 0; k < taps; k++)
			sum += *(const V *)&t->w[k][i] * v[k];
		*(V *)(out + i) = taps > 1 ? sum : v[0];
	}
}

/* Tasks are chunks of points, each for all channels. */
static void F(sample_planes)(int64_t begin, int64_t end, void *ctx)
{
	const struct grid *g = ctx;
	struct F(points) t;
	_Alignas(64) T sum[CHUNK];

	for (int64_t b = begin; b < end; b++) {
		int64_t image = b / g->chunks, chunk = b % g->chunks;
		int64_t n = F(points_of)(g, &t, image, chunk, 0);

		for (int64_t c = image * g->channels; c < (image + 1) * g->channels; c++) {
			const T *in = (const T *)g->input + c * g->h * g->w;

			if (g->taps == 1)
				F(sum_taps)(sum, in, &t, n, g->w, 1);
			else if (g->taps == 4)
				F(sum_taps)(sum, in, &t, n, g->w, 4);
			else
				F(sum_taps)(sum, in, &t, n, g->w, 16);
			memcpy((T *)g->out + c * g->places + chunk * CHUNK, sum,
			       (size_t)n * sizeof(T));
		}
	}
}

/* tile[i] = the sums of point i for a vector of channels; taps is a constant. */
static inline __attribute__((always_inline)) void
F(sum_vectors)(T *tile, const T *block, const struct F(points) * t, int64_t n, int taps)
{
	for (int64_t i = 0; i < n; i++) {
		V sum = { 0 };

#pragma GCC unroll 4
		for (int k = 0; k < taps; k++) {
			int64_t at = t->at[k][i];

			sum += t->w[k][i] * *(const V *)(block + at * LANES);
		}
		*(V *)(tile + i * LANES) = sum;
	}
}

/*
 * Tasks are vectors of channels of an image. The plane is transposed to `block`, a vector for each
 * element and one of zeros.
 */
static void F(sample_block)(const struct grid *g, T *block, int64_t image, int64_t first)
{
	int64_t plane = g->h * g->w, size = sizeof(T), c = image * g->channels + first;
	int64_t channels = g->channels - first < LANES ? g->channels - first : LANES;
	char *data[] = { (char *)block, (char *)g->input + c * plane * size };
	_Alignas(64) T tile[CHUNK * LANES];
	struct F(points) t;

	memset(block, 0, (channels < LANES ? (size_t)plane * LANES : 0) * sizeof(T));
	memset(block + plane * LANES, 0, LANES * sizeof(T));
	CPU_NAME(transpose)(data, plane * size, LANES * size, channels, plane, size);
	for (int64_t chunk = 0; chunk < g->chunks; chunk++) {
		int64_t n = F(points_of)(g, &t, image, chunk, (int32_t)plane);
		char *out[] = { (char *)g->out + (c * g->places + chunk * CHUNK) * size,
				(char *)tile };

		if (g->taps == 4)
			F(sum_vectors)(tile, block, &t, n, 4);
		else
			F(sum_vectors)(tile, block, &t, n, 16);
		CPU_NAME(transpose)(out, LANES * size, g->places * size, n, channels, size);
	}
}

static void F(sample_blocks)(int64_t begin, int64_t end, void *ctx)
{
	struct grid *g = ctx;
	int64_t blocks = (g->channels + LANES - 1) / LANES;
	int64_t bytes = (g->h * g->w + 1) * VEC_BYTES;
	tensor *block = tensor_new(TENSOR_DEVICE_CPU, TENSOR_U8, &bytes, 1);

	if (!block) {
		atomic_store(&g->failed, 1);
		return;
	}
	for (int64_t b = begin; b < end; b++)
		F(sample_block)(g, block->data, b / blocks, b % blocks * LANES);
	tensor_put(block);
}

#undef F
#undef V
#undef LANES
