/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Transforms of tensors of T or of complex numbers of T (no include guard; see each_float.h). */
#define F(name) CPU_PASTE(name, SUFFIX)
#define V	CPU_PASTE(fft_vec, SUFFIX)
#define V_ANY	CPU_PASTE(vec, SUFFIX) /* of any alignment */
#define U	CPU_PASTE(fft_index, SUFFIX)
#define LANES	((int)(VEC_BYTES / sizeof(T)))

/* Blocks of LANES lines of n elements in a chunk of parallel work. */
static int64_t F(grain)(int64_t n)
{
	int64_t work = 4 * n * LANES;

	return work < ITER_GRAIN ? ITER_GRAIN / work : 1;
}

#include "kernels/cpu/linalg/fft/radix_loops.h"

#include "kernels/cpu/linalg/fft/access_loops.h"

#include "kernels/cpu/linalg/fft/ends_loops.h"

#include "kernels/cpu/linalg/fft/line_loops.h"

#include "kernels/cpu/linalg/fft/filter_loops.h"

#include "kernels/cpu/linalg/fft/real_loops.h"

#include "kernels/cpu/linalg/fft/plan_loops.h"

/* Numbers of `line`, whose elements are t->inner apart, to or from contiguous memory. */
static void F(gather_line)(const struct fft *t, int64_t line, T *to)
{
	const T *x = (const T *)t->x + first_of_line(t, line, t->x_length) * t->x_parts;

	for (int64_t k = 0; k < t->x_length; k++)
		for (int i = 0; i < t->x_parts; i++)
			to[k * t->x_parts + i] = x[k * t->inner * t->x_parts + i];
}

static void F(scatter_line)(const struct fft *t, int64_t line, const T *from)
{
	T *y = (T *)t->out + first_of_line(t, line, t->out_length) * t->out_parts;

	for (int64_t k = 0; k < t->kept; k++)
		for (int i = 0; i < t->out_parts; i++)
			y[k * t->inner * t->out_parts + i] = from[k * t->out_parts + i];
}

/* ---- lines side by side ---- */

/* Lines first to first + lanes - 1, in memory one after another or gathered to `work`. */
static void F(load_block)(const struct fft *t, int64_t first, int lanes, T *buffer, T *work)
{
	int64_t n = t->n, inner = t->inner;
	bool pairs = t->kind != FFT_R2C || n % 2 == 0;
	const T *x = (const T *)t->x + first_of_line(t, first, t->x_length) * t->x_parts;

	if (t->side_by_side) {
		if (t->x_parts == 2)
			F(load_pairs)(buffer, x, 2 * inner, t->x_length, lanes);
		else
			F(load_columns)(buffer, x, inner, pairs ? n / 2 : n, lanes, pairs);
		return;
	}
	for (int l = 0; l < lanes && inner > 1; l++)
		F(gather_line)(t, first + l, work + l * t->x_length * t->x_parts);
	for (int64_t i = 0; i < n && !pairs; i++)
		*(V *)(buffer + (2 * i + 1) * LANES) = (V){ 0 };
	F(load_rows)
	(buffer, pairs ? LANES : 2 * LANES, inner > 1 ? work : x, t->x_length * t->x_parts,
	 t->x_length * t->x_parts, lanes);
}

static void F(store_block)(const struct fft *t, int64_t first, int lanes, const T *buffer, T *work)
{
	int64_t inner = t->inner, line = t->out_length * t->out_parts;
	bool pairs = t->kind != FFT_C2R || t->n % 2 == 0;
	const int32_t *at = t->plan->columns.at;
	T *y = (T *)t->out + first_of_line(t, first, t->out_length) * t->out_parts;

	if (t->side_by_side) {
		if (t->out_parts == 2)
			F(store_pairs)
		(y, 2 * inner, false, buffer, at, t->kept, lanes, (T)t->scale);
		else F(store_columns)(y, inner, buffer, at, pairs ? t->kept / 2 : t->kept, lanes,
				      pairs, (T)t->scale);
		return;
	}
	F(store_rows)
	(inner > 1 ? work : y, line, buffer, at, t->kept * t->out_parts, lanes, pairs, (T)t->scale);
	for (int l = 0; l < lanes && inner > 1; l++)
		F(scatter_line)(t, first + l, work + l * line);
}

/* Complex lines that are side by side in memory. */
static void F(transform_pairs)(const struct fft *t, int64_t first, int lanes, T *buffer)
{
	const struct fft_lanes *p = &t->plan->columns;
	struct F(lines) v = F(lines_at)(buffer, t->backward);
	const T *x = (const T *)t->x + 2 * first_of_line(t, first, t->n);
	T *y = (T *)t->out + 2 * first_of_line(t, first, t->n);
	bool end = F(ends_in_memory)(p, lanes);

	F(load_transform)(p, buffer, x, 2 * t->inner, lanes, t->backward, end);
	if (end)
		F(transform_store)(p, &v, y, 2 * t->inner, t->backward, (T)t->scale);
	else
		F(store_pairs)
	(y, 2 * t->inner, false, buffer, p->at, t->n, lanes, (T)t->scale);
}

static void F(transform_block)(const struct fft *t, int64_t first, int lanes, T *buffer, T *work)
{
	const struct fft_plan *p = t->plan;
	struct F(lines) plain = F(lines_at)(buffer, false), v = F(lines_at)(buffer, t->backward);

	F(load_block)(t, first, lanes, buffer, work);
	if (t->kind == FFT_C2R && p->fold)
		F(fold_lanes)(p, &plain, NULL);
	else if (t->kind == FFT_C2R)
		F(extend_lanes)(&plain, t->n);
	F(transform_lanes)(&p->columns, &v);
	if (t->kind == FFT_R2C && p->fold)
		F(fold_lanes)(p, &plain, p->columns.at);
	F(store_block)(t, first, lanes, buffer, work);
}

/* Blocks begin to end of lines. */
static void F(blocks)(int64_t begin, int64_t end, void *ctx)
{
	const struct fft *t = ctx;
	bool gathered = t->inner > 1 && !t->side_by_side;
	size_t buffer = F(lanes_bytes)(t->n);
	size_t work = gathered ? (size_t)(t->n + 2) * 2 * LANES * sizeof(T) : 0;
	struct tensor_storage *s = storage_alloc(TENSOR_DEVICE_CPU, buffer + work, false);
	int64_t row = t->side_by_side ? fft_vectors(t->inner, LANES) : 1;

	if (!s) {
		*t->failed = true;
		return;
	}
	for (int64_t b = begin; b < end; b++) {
		int64_t first = t->side_by_side ? b / row * t->inner + b % row * LANES : b * LANES;
		int64_t left = t->side_by_side ? t->inner - b % row * LANES : t->count - first;

		int lanes = (int)(left < LANES ? left : LANES);

		if (t->side_by_side && t->kind == FFT_C2C)
			F(transform_pairs)(t, first, lanes, s->data);
		else
			F(transform_block)
		(t, first, lanes, s->data, (T *)((char *)s->data + buffer));
	}
	storage_put(s);
}

/* ---- one line after another ---- */

/* Memory of a thread for a line, in arrays of whole vectors. */
struct F(line_memory) {
	T *spectrum;	   /* n + 1 complex elements */
	T *input, *output; /* copies of lines whose elements are apart */
	T *padded;	   /* the line of a convolution */
	T *work;	   /* of F(matrix)(); NULL if a line is parallel */
};

static bool F(complex_line)(const struct fft *t, T *y, const T *x, const struct F(line_memory) * m,
			    T scale)
{
	switch (t->plan->mode) {
	case FFT_CHIRP:
		return F(chirp)(t->plan, y, x, m->padded, m->work, t->backward, scale);
	case FFT_PRIME:
		return F(prime)(t->plan, y, x, m->padded, m->work, t->backward, scale);
	default:
		return F(matrix)(t->plan, y, x, m->work, t->backward, scale);
	}
}

static bool F(contiguous_line)(const struct fft *t, T *y, const T *x,
			       const struct F(line_memory) * m)
{
	T scale = (T)t->scale, *a = m->spectrum;
	int64_t n = t->n;
	bool done;

	if (t->kind == FFT_C2C)
		return F(complex_line)(t, y, x, m, scale);
	if (t->kind == FFT_R2C && t->plan->fold) {
		done = F(complex_line)(t, a, x, m, 1);
		F(fold_line)(t->plan, y, a, false, scale);
		return done;
	}
	if (t->kind == FFT_C2R && t->plan->fold) {
		F(fold_line)(t->plan, a, x, true, 1);
		return F(complex_line)(t, y, a, m, scale);
	}
	if (t->kind == FFT_C2R)
		F(extend_line)(a, x, n);
	for (int64_t k = 0; k < n && t->kind == FFT_R2C; k++) {
		a[2 * k] = x[k];
		a[2 * k + 1] = 0;
	}
	done = F(complex_line)(t, a, a, m, scale);
	for (int64_t k = 0; k < n && t->kind == FFT_C2R; k++)
		y[k] = a[2 * k];
	if (t->kind == FFT_R2C)
		memcpy(y, a, (size_t)(2 * t->kept) * sizeof(T));
	return done;
}

/* Lines begin to end. With few lines each one is parallel. */
static void F(some_lines)(int64_t begin, int64_t end, void *ctx)
{
	const struct fft *t = ctx;
	bool parallel = t->count < FFT_SERIAL_LINES;
	size_t line = F(lanes_bytes)(0) * (size_t)fft_vectors(t->n + 2, LANES) / sizeof(T);
	size_t size = F(lanes_bytes)(0) * (size_t)fft_vectors(t->plan->size, LANES) / sizeof(T);
	size_t between = parallel ? 0 : F(between_bytes)(t->plan) / sizeof(T);
	size_t columns = parallel ? 0 : F(lanes_bytes)(t->plan->columns.n) / sizeof(T);
	struct tensor_storage *s = storage_alloc(
		TENSOR_DEVICE_CPU, (3 * line + size + between + columns) * sizeof(T), false);
	struct F(line_memory) m;
	T *a, *x, *y;

	if (!s) {
		*t->failed = true;
		return;
	}
	a = s->data;
	m = (struct F(line_memory)){ a, a + line, a + 2 * line, a + 3 * line,
				     parallel ? NULL : a + 3 * line + size };
	for (int64_t i = begin; i < end && !*t->failed; i++) {
		x = (T *)t->x + first_of_line(t, i, t->x_length) * t->x_parts;
		y = (T *)t->out + first_of_line(t, i, t->out_length) * t->out_parts;
		if (t->inner > 1) {
			x = m.input;
			y = m.output;
			F(gather_line)(t, i, x);
		}
		if (!F(contiguous_line)(t, y, x, &m))
			*t->failed = true;
		else if (t->inner > 1)
			F(scatter_line)(t, i, y);
	}
	storage_put(s);
}

/* Elements above n / 2 of a result that has all of them. */
static void F(mirror)(int64_t begin, int64_t end, void *ctx)
{
	const struct fft *t = ctx;
	int64_t n = t->n, step = 2 * t->inner;

	for (int64_t i = begin; i < end; i++) {
		T *y = (T *)t->out + first_of_line(t, i, n) * 2;

		for (int64_t k = n / 2 + 1; k < n; k++) {
			y[k * step] = y[(n - k) * step];
			y[k * step + 1] = -y[(n - k) * step + 1];
		}
	}
}

/* Transforms all lines of t. */
static int F(fft)(struct fft *t)
{
	struct fft_plan key = { .key_n = t->n, .kind = t->kind, .f64 = sizeof(T) == 8 };
	_Atomic bool failed = false;
	struct fft_plan *p;

	t->side_by_side = t->inner > LANES / 2;
	key.lines = t->side_by_side   ? FFT_COLUMNS :
		    t->count >= LANES ? FFT_MANY_LINES :
		    t->count >= 4     ? FFT_FEW_LINES :
					FFT_ONE_LINE;
	p = CPU_NAME(fft_plan_get)(&key, F(make_tables));
	if (!p)
		return -thread()->error.code;
	t->plan = p;
	t->failed = &failed;
	if (p->mode == FFT_LANES)
		parallel_for(0,
			     t->side_by_side ? t->count / t->inner * fft_vectors(t->inner, LANES) :
					       fft_vectors(t->count, LANES),
			     F(grain)(t->n), F(blocks), t);
	else if (t->count < FFT_SERIAL_LINES) /* each line is parallel */
		F(some_lines)(0, t->count, t);
	else
		parallel_for(0, t->count, F(grain)(t->n / LANES + 1), F(some_lines), t);
	if (t->kept < t->out_length && !failed)
		parallel_for(0, t->count, F(grain)(t->n / LANES + 1), F(mirror), t);
	CPU_NAME(fft_plan_put)(p);
	t->failed = NULL;
	return failed ? tensor_fail(ENOMEM, "fft: no memory for a line") : 0;
}

#undef F
#undef V
#undef V_ANY
#undef U
#undef LANES
#undef F_INDEX
#undef F_LOW
#undef F_HIGH
#undef F_EVEN
#undef F_ODD
#undef F_LOAD
#undef F_STORE
#undef F_PART
