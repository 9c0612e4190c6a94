/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The forward and backward variables of a sequence (Graves et al. 2006, equations 6 to 15) as
 * logarithms of type T (no include guard; the includer defines T, EXP, LOG and LOOP(name)).
 * Positions are the labels of the target with a blank before, between and after them.
 */

static T LOOP(log_sum)(T a, T b, T c)
{
	T max = a > b ? a : b;

	max = c > max ? c : max;
	max = max == -(T)INFINITY ? 0 : max;
	return LOG(EXP(a - max) + EXP(b - max) + EXP(c - max)) + max;
}

static void LOOP(forward)(const struct ctc *c, int64_t b)
{
	const T *p = (const T *)c->log_probs + b * c->classes;
	const int64_t *labels = c->labels + c->first[b];
	T *row = (T *)c->alpha + b * c->steps * c->width, *loss = (T *)c->loss + b, last;
	int64_t steps = c->input_lengths[b], n = 2 * c->target_lengths[b] + 1;

	for (int64_t i = 0; i < c->steps * c->width; i++)
		row[i] = -(T)INFINITY;
	if (!steps) {
		*loss = n == 1 ? 0 : (T)INFINITY;
		return;
	}
	row[0] = p[c->blank];
	if (n > 1)
		row[1] = p[labels[0]];
	for (int64_t t = 1; t < steps; t++) {
		p += c->batch * c->classes;
		for (int64_t s = 0; s < n; s++) {
			T one = s > 0 ? row[s - 1] : -(T)INFINITY;
			T two = ctc_skips(c, labels, s) ? row[s - 2] : -(T)INFINITY;

			row[c->width + s] =
				LOOP(log_sum)(row[s], one, two) + p[ctc_label(c, labels, s)];
		}
		row += c->width;
	}
	last = n > 1 ? row[n - 2] : -(T)INFINITY;
	*loss = -LOOP(log_sum)(row[n - 1], last, -(T)INFINITY);
}

/* Sets the rows of out to the sums, by class, of the products of both variables. */
static void LOOP(collect)(const struct ctc *c, int64_t b)
{
	const int64_t *labels = c->labels + c->first[b];
	int64_t steps = c->input_lengths[b], n = 2 * c->target_lengths[b] + 1;
	T *next = (T *)c->beta + 2 * b * c->width, *row = next + c->width;

	for (int64_t s = 0; s < n; s++)
		next[s] = s + 2 >= n ? 0 : -(T)INFINITY;
	for (int64_t t = steps - 1; t >= 0; t--) {
		const T *p = (const T *)c->log_probs + (t * c->batch + b) * c->classes;
		const T *alpha = (const T *)c->alpha + (b * c->steps + t) * c->width;
		T *out = (T *)c->out + (t * c->batch + b) * c->classes, *swap = next;

		for (int64_t s = 0; s < n; s++) {
			int64_t label = ctc_label(c, labels, s);
			T one = s + 1 < n && t < steps - 1 ? next[s + 1] : -(T)INFINITY;
			T two = s + 2 < n && ctc_skips(c, labels, s + 2) ? next[s + 2] :
									   -(T)INFINITY;

			two = t < steps - 1 ? two : -(T)INFINITY;
			row[s] = LOOP(log_sum)(next[s], one, two) + p[label];
			out[label] = LOOP(log_sum)(out[label], alpha[s] + row[s], -(T)INFINITY);
		}
		next = row;
		row = swap;
	}
}

static void LOOP(backward)(const struct ctc *c, int64_t b)
{
	T loss = ((const T *)c->loss)[b], grad = ((const T *)c->grad)[b];
	bool none = c->zero_infinity && loss == (T)INFINITY;
	int64_t steps = none ? 0 : c->input_lengths[b];

	for (int64_t t = 0; t < c->steps; t++)
		for (int64_t k = 0; k < c->classes; k++)
			((T *)c->out)[(t * c->batch + b) * c->classes + k] =
				t < steps ? -(T)INFINITY : 0;
	if (steps)
		LOOP(collect)(c, b);
	for (int64_t t = 0; t < steps; t++) {
		const T *p = (const T *)c->log_probs + (t * c->batch + b) * c->classes;
		T *out = (T *)c->out + (t * c->batch + b) * c->classes;

		for (int64_t k = 0; k < c->classes; k++)
			out[k] = (EXP(p[k]) - EXP(out[k] + loss - p[k])) * grad;
	}
}

static void LOOP(range)(int64_t begin, int64_t end, void *ctx)
{
	const struct ctc *c = ctx;

	for (int64_t b = begin; b < end; b++)
		(c->out ? LOOP(backward) : LOOP(forward))(c, b);
}
