/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The loops of lstm.c for elements of type X (no include guard). The includer defines F(name), and LANES_OF(p, n) and
 * PUT_LANES(p, v, n): a vector of f32 from n elements, whose other lanes are zero, and back.
 */

/* Row r of a step, from element j on. */
static inline void F(forward_lanes)(const struct lstm_step *s, int64_t r, int64_t j, int64_t n)
{
	X *gates = (X *)s->gates + r * s->gates_row + j;
	float *state = s->state + r * s->size + j;
	vec_part part = vec_part_f32(n);
	vec_f32 i = sigmoid(LANES_OF(gates, n));
	vec_f32 f = sigmoid(LANES_OF(gates + s->size, n));
	vec_f32 g = tanh_f32v(LANES_OF(gates + 2 * s->size, n));
	vec_f32 o = sigmoid(LANES_OF(gates + 3 * s->size, n));
	vec_f32 c = f * vec_load_f32(state, part) + i * g;

	vec_store_f32(state, part, c);
	PUT_LANES(gates, i, n);
	PUT_LANES(gates + s->size, f, n);
	PUT_LANES(gates + 2 * s->size, g, n);
	PUT_LANES(gates + 3 * s->size, o, n);
	PUT_LANES((X *)s->cells + r * s->cells_row + j, c, n);
	PUT_LANES((X *)s->output + r * s->output_row + j, o * tanh_f32v(c), n);
}

static void F(forward_rows)(int64_t begin, int64_t end, void *ctx)
{
	const struct lstm_step *s = ctx;

	for (int64_t r = begin; r < end; r++)
		for (int64_t j = 0; j < s->size; j += VEC_F32)
			F(forward_lanes)(s, r, j, lanes_left(s->size - j));
}

static inline void F(backward_lanes)(const struct lstm_step *s, int64_t r, int64_t j, int64_t n)
{
	const X *gates = (const X *)s->gates + r * s->gates_row + j;
	X *to = (X *)s->grad_gates + r * s->grad_gates_row + j;
	float *state = s->state + r * s->size + j;
	vec_part part = vec_part_f32(n);
	vec_f32 i = LANES_OF(gates, n), f = LANES_OF(gates + s->size, n);
	vec_f32 g = LANES_OF(gates + 2 * s->size, n), o = LANES_OF(gates + 3 * s->size, n);
	vec_f32 tanh = tanh_f32v(LANES_OF((const X *)s->cells + r * s->cells_row + j, n));
	vec_f32 before = LANES_OF((const X *)s->before + r * s->before_row + j, n);
	vec_f32 dh = LANES_OF((const X *)s->grad_hidden + r * s->grad_hidden_row + j, n);
	vec_f32 dc = vec_load_f32(state, part);

	if (s->grad_output)
		dh += LANES_OF((const X *)s->grad_output + r * s->grad_output_row + j, n);
	if (s->grad_cells)
		dc += LANES_OF((const X *)s->grad_cells + r * s->grad_cells_row + j, n);
	dc += of_tanh(dh * o, tanh);
	PUT_LANES(to, of_sigmoid(dc * g, i), n);
	PUT_LANES(to + s->size, of_sigmoid(dc * before, f), n);
	PUT_LANES(to + 2 * s->size, of_tanh(dc * i, g), n);
	PUT_LANES(to + 3 * s->size, of_sigmoid(dh * tanh, o), n);
	vec_store_f32(state, part, dc * f);
}

static void F(backward_rows)(int64_t begin, int64_t end, void *ctx)
{
	const struct lstm_step *s = ctx;

	for (int64_t r = begin; r < end; r++)
		for (int64_t j = 0; j < s->size; j += VEC_F32)
			F(backward_lanes)(s, r, j, lanes_left(s->size - j));
}
