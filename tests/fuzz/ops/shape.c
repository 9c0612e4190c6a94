// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Views, reordering copies, concatenation and matrix products. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- moves: out[index] = in[from(index)] ---- */

enum move {
	TRANSPOSE,
	SELECT,
	SLICE,
	UNSQUEEZE,
	SQUEEZE,
	EXPAND,
	PERMUTE,
	FLIP,
	DIAGONAL,
	CLONE,
	VIEW,
	ROLL,
	REPEAT,
	PAD,
	UNFOLD,
	TRIL,
	TRIU
};

struct mapping {
	int64_t a[TENSOR_MAX_DIMS], b[TENSOR_MAX_DIMS];
	int x, y;
};

/* False: the element is zero, not an element of `in`. */
static bool source_index(int move, const struct mapping *m, const struct plain *in,
			 const int64_t *index, int64_t *from)
{
	memcpy(from, index, sizeof(*from) * TENSOR_MAX_DIMS);
	switch (move) {
	case TRANSPOSE:
		from[m->x] = index[m->y];
		from[m->y] = index[m->x];
		break;
	case SELECT:
		memcpy(from + m->x + 1, index + m->x, sizeof(*from) * (in->ndim - 1 - m->x));
		from[m->x] = m->a[0];
		break;
	case SLICE:
		from[m->x] = m->a[0] + index[m->x] * m->a[1];
		break;
	case UNSQUEEZE:
		memcpy(from + m->x, index + m->x + 1, sizeof(*from) * (in->ndim - m->x));
		break;
	case SQUEEZE:
		memcpy(from + m->x + 1, index + m->x, sizeof(*from) * (in->ndim - 1 - m->x));
		from[m->x] = 0;
		break;
	case EXPAND:
		for (int d = 0; d < in->ndim; d++)
			from[d] = in->sizes[d] == 1 ? 0 : index[m->x + d];
		break;
	case PERMUTE:
		for (int d = 0; d < in->ndim; d++)
			from[m->a[d]] = index[d];
		break;
	case FLIP:
		for (int d = 0; d < in->ndim; d++)
			if (m->a[d])
				from[d] = in->sizes[d] - 1 - index[d];
		break;
	case ROLL:
		from[m->x] = (index[m->x] - m->a[0]) % in->sizes[m->x];
		from[m->x] += from[m->x] < 0 ? in->sizes[m->x] : 0;
		break;
	case REPEAT:
		for (int d = 0; d < in->ndim; d++)
			from[d] = index[m->x + d] % in->sizes[d];
		break;
	case PAD:
		for (int d = 0; d < in->ndim; d++) {
			from[d] = index[d] - m->a[d];
			if (from[d] < 0 || from[d] >= in->sizes[d])
				return false;
		}
		break;
	case TRIL:
		return index[in->ndim - 1] - index[in->ndim - 2] <= m->a[0];
	case TRIU:
		return index[in->ndim - 1] - index[in->ndim - 2] >= m->a[0];
	case UNFOLD:
		from[m->x] = index[m->x] * m->a[0] + index[in->ndim];
		break;
	default:
		break;
	}
	return true;
}

static void fill_moved(struct call *c, const struct mapping *m)
{
	int64_t index[TENSOR_MAX_DIMS + 1] = { 0 }, from[TENSOR_MAX_DIMS + 1];
	struct plain *in = &c->in[0], *out = &c->want[0];

	for (int64_t i = 0; i < out->numel; i++) {
		if (c->row->detail == VIEW)
			out->v[i] = in->v[i];
		else if (source_index(c->row->detail, m, in, index, from))
			out->v[i] = in->v[plain_at(in, from)];
		plain_next(out, index);
	}
}

static void make_move(struct call *c)
{
	struct mapping m = { .x = 0 };
	int64_t sizes[TENSOR_MAX_DIMS + 1], v[2 * TENSOR_MAX_DIMS], dim;
	int move = c->row->detail, n;
	tensor *t = any_tensor(0);
	struct plain *in = &c->in[0];

	arg_tensor(c, t);
	n = in->ndim;
	memcpy(sizes, in->sizes, sizeof(*sizes) * n);
	switch (move) {
	case TRANSPOSE:
		dim = any_dim(c, n);
		arg_int(c, dim);
		m.x = wrapped(dim, n);
		dim = any_dim(c, n);
		arg_int(c, dim);
		m.y = wrapped(dim, n);
		if (!c->refuse && n) {
			sizes[m.x] = in->sizes[m.y];
			sizes[m.y] = in->sizes[m.x];
		}
		break;
	case SELECT:
		dim = any_dim(c, n);
		m.x = wrapped(dim, n);
		c->refuse |= !n;
		m.a[0] = 0;
		v[0] = 0;
		if (!c->refuse) {
			int64_t size = in->sizes[m.x];

			v[0] = size ? below(2 * size) - size : 0;
			if (!size || one_in(50)) {
				v[0] = size + below(2);
				c->refuse = true;
			}
			m.a[0] = v[0] < 0 ? v[0] + size : v[0];
			memmove(sizes + m.x, sizes + m.x + 1, sizeof(*sizes) * (n - m.x - 1));
			n--;
		}
		arg_int(c, dim);
		arg_int(c, v[0]);
		break;
	case SLICE: {
		int64_t size, start, end, step = 1 + below(3);

		dim = any_dim(c, n);
		m.x = wrapped(dim, n);
		c->refuse |= !n;
		size = c->refuse ? 0 : in->sizes[m.x];
		v[0] = below(2 * size + 5) - size - 2;
		v[1] = below(2 * size + 5) - size - 2;
		start = v[0] < 0 ? v[0] + size : v[0];
		end = v[1] < 0 ? v[1] + size : v[1];
		start = start < 0 ? 0 : start > size ? size : start;
		end = end < start ? start : end > size ? size : end;
		if (one_in(60)) {
			step = -below(2);
			c->refuse = true;
		}
		arg_int(c, dim);
		arg_int(c, v[0]);
		arg_int(c, v[1]);
		arg_int(c, step);
		if (!c->refuse) {
			m.a[0] = start;
			m.a[1] = step;
			sizes[m.x] = (end - start + step - 1) / step;
		}
		break;
	}
	case UNSQUEEZE:
		dim = one_in(60) ? n + 1 : below(2 * (n + 1)) - (n + 1);
		arg_int(c, dim);
		c->refuse = dim > n || n == TENSOR_MAX_DIMS;
		if (!c->refuse) {
			m.x = (int)(dim < 0 ? dim + n + 1 : dim);
			memmove(sizes + m.x + 1, sizes + m.x, sizeof(*sizes) * (n - m.x));
			sizes[m.x] = 1;
			n++;
		}
		break;
	case SQUEEZE:
		dim = any_dim(c, n);
		arg_int(c, dim);
		m.x = wrapped(dim, n);
		if (!c->refuse && n && in->sizes[m.x] == 1) {
			memmove(sizes + m.x, sizes + m.x + 1, sizeof(*sizes) * (n - m.x - 1));
			n--;
		} else {
			m.x = TENSOR_MAX_DIMS; /* nothing moves */
		}
		break;
	case EXPAND:
		m.x = n < 5 ? (int)below(3) : 0;
		for (int d = 0; d < m.x; d++)
			sizes[d] = v[d] = below(3);
		for (int d = 0; d < n; d++) {
			int64_t s = in->sizes[d];

			sizes[m.x + d] = s == 1 && one_in(2) ? below(4) : s;
			v[m.x + d] = sizes[m.x + d] == s && one_in(3) ? -1 : sizes[m.x + d];
			if (s != 1 && one_in(100)) {
				v[m.x + d] = s + 1;
				c->refuse = true;
			}
		}
		n += m.x;
		arg_ints(c, v, n);
		break;
	case PERMUTE:
		for (int d = 0; d < n; d++)
			m.a[d] = d;
		for (int d = n - 1; d > 0; d--) {
			int64_t k = below(d + 1), s = m.a[d];

			m.a[d] = m.a[k];
			m.a[k] = s;
		}
		for (int d = 0; d < n; d++) {
			sizes[d] = in->sizes[m.a[d]];
			v[d] = one_in(3) ? m.a[d] - n : m.a[d];
		}
		if (n > 1 && one_in(60)) {
			v[0] = v[1];
			c->refuse = true;
		}
		arg_ints(c, v, n);
		break;
	case FLIP: {
		int k = 0;

		for (int d = 0; d < n; d++)
			if (one_in(2)) {
				m.a[d] = 1;
				v[k++] = one_in(2) ? d : d - n;
			}
		arg_ints(c, v, k);
		break;
	}
	case ROLL:
		dim = any_dim(c, n);
		m.x = wrapped(dim, n);
		c->refuse |= !n;
		v[0] = below(15) - 7;
		m.a[0] = v[0];
		arg_ints(c, v, 1);
		arg_ints(c, &dim, 1);
		break;
	case REPEAT:
		m.x = n < 5 ? (int)below(2) : 0;
		for (int d = 0; d < m.x + n; d++) {
			v[d] = n > 6 ? 1 : below(4);
			sizes[d] = v[d] * (d < m.x ? 1 : in->sizes[d - m.x]);
		}
		n += m.x;
		arg_ints(c, v, n);
		break;
	case PAD:
		for (int d = n - 1, k = 0; d >= 0; d--) {
			v[k] = m.a[d] = n > 6 ? 0 : below(4) - 1;
			v[k + 1] = n > 6 ? 0 : below(4) - 1;
			sizes[d] = in->sizes[d] + v[k] + v[k + 1];
			c->refuse |= in->sizes[d] + (v[k] < 0 ? v[k] : 0) +
					     (v[k + 1] < 0 ? v[k + 1] : 0) <
				     0;
			k += 2;
		}
		arg_ints(c, v, 2 * n);
		break;
	case TRIL:
	case TRIU:
		m.a[0] = below(7) - 3;
		c->refuse |= n < 2;
		arg_int(c, m.a[0]);
		break;
	case UNFOLD:
		dim = any_dim(c, n);
		m.x = wrapped(dim, n);
		c->refuse |= n == TENSOR_MAX_DIMS;
		v[0] = c->refuse || !n || !in->sizes[m.x] ? 1 : 1 + below(in->sizes[m.x]);
		v[1] = 1 + below(3);
		c->refuse |= !c->refuse && n && in->sizes[m.x] < v[0];
		arg_int(c, dim);
		arg_int(c, v[0]);
		arg_int(c, v[1]);
		if (!c->refuse && !n) {
			sizes[n++] = 1; /* a 0-d tensor has one window */
		} else if (!c->refuse) {
			m.a[0] = v[1];
			sizes[m.x] = (in->sizes[m.x] - v[0]) / v[1] + 1;
			sizes[n++] = v[0];
		}
		break;
	default:
		break;
	}
	if (c->refuse) {
		plain_make(&c->want[0], in->dtype, 0, NULL);
		return;
	}
	plain_make(&c->want[0], in->dtype, n, sizes);
	if (move == SQUEEZE && m.x == TENSOR_MAX_DIMS)
		memcpy(c->want[0].v, in->v, in->numel * sizeof(*in->v));
	else if (!in->ndim && (move == TRANSPOSE || move == UNFOLD))
		c->want[0].v[0] = in->v[0];
	else if (move == CLONE)
		memcpy(c->want[0].v, in->v, in->numel * sizeof(*in->v));
	else
		fill_moved(c, &m);
}

/* A reshape to a random factorization of the number of elements. */
static void make_reshape(struct call *c)
{
	int64_t sizes[TENSOR_MAX_DIMS], v[TENSOR_MAX_DIMS], left;
	int n = 0;

	arg_tensor(c, any_tensor(0));
	left = c->in[0].numel;
	while (left > 1 && n < 5) {
		int64_t f = 1 + below(left < 12 ? left : 12);

		if (left % f)
			continue;
		sizes[n++] = f;
		left /= f;
	}
	sizes[n++] = left;
	memcpy(v, sizes, sizeof(*v) * n);
	if (c->in[0].numel && one_in(3))
		v[below(n)] = -1;
	if (one_in(60)) {
		v[0] = c->in[0].numel + 1;
		c->refuse = c->in[0].numel > 0 || n > 1;
		if (!c->refuse)
			v[0] = sizes[0];
	}
	arg_ints(c, v, n);
	plain_make(&c->want[0], c->in[0].dtype, n, sizes);
	memcpy(c->want[0].v, c->in[0].v, c->in[0].numel * sizeof(*c->in[0].v));
}

/* ---- cat ---- */

static void make_cat(struct call *c)
{
	tensor *list[LIST_MAX];
	int k = 1 + (int)below(4), n, dim;
	int64_t sizes[TENSOR_MAX_DIMS], index[TENSOR_MAX_DIMS] = { 0 }, begin = 0, given;
	enum tensor_dtype to;

	list[0] = any_tensor(0);
	n = tensor_dim(list[0]);
	memcpy(sizes, tensor_sizes(list[0]), sizeof(*sizes) * n);
	given = any_dim(c, n);
	dim = wrapped(given, n);
	for (int i = 1; i < k; i++) {
		if (!c->refuse && n)
			sizes[dim] = below(4);
		list[i] = tensor_like(one_in(2) ? tensor_dtype(list[0]) : 0, n, sizes);
	}
	arg_list(c, list, k);
	arg_int(c, given);
	c->refuse |= !n;
	to = c->in[0].dtype;
	for (int i = 1; i < k; i++)
		to = plain_promote(to, c->in[i].dtype);
	if (c->refuse) {
		plain_make(&c->want[0], to, 0, NULL);
		return;
	}
	sizes[dim] = 0;
	for (int i = 0; i < k; i++)
		sizes[dim] += c->in[i].sizes[dim];
	plain_make(&c->want[0], to, n, sizes);
	for (int i = 0; i < k; i++) {
		memset(index, 0, sizeof(index));
		for (int64_t e = 0; e < c->in[i].numel; e++) {
			int64_t at[TENSOR_MAX_DIMS];

			memcpy(at, index, sizeof(at));
			at[dim] += begin;
			c->want[0].v[plain_at(&c->want[0], at)] =
				plain_round(c->in[i].v[e], c->in[i].dtype, to);
			plain_next(&c->in[i], index);
		}
		begin += c->in[i].sizes[dim];
	}
}

/* ---- products ---- */

static void make_mm(struct call *c)
{
	int64_t b = c->row->detail ? below(4) : 1, m = below(20), k = below(20), n = below(20);
	enum tensor_dtype d = any_dtype();
	struct plain *x = &c->in[0], *y = &c->in[1], *out = &c->want[0];
	double most = 0;

	while (d == TENSOR_BOOL)
		d = any_dtype();
	if (c->row->detail) {
		arg_tensor(c, tensor_like(d, 3, (int64_t[]){ b, m, k }));
		arg_tensor(c, tensor_like(d, 3, (int64_t[]){ b, k, n }));
		plain_make(out, d, 3, (int64_t[]){ b, m, n });
	} else {
		arg_tensor(c, tensor_like(d, 2, (int64_t[]){ m, k }));
		arg_tensor(c, tensor_like(d, 2, (int64_t[]){ one_in(50) ? ++k : k, n }));
		c->refuse = k != x->sizes[1];
		plain_make(out, d, 2, (int64_t[]){ m, n });
	}
	for (int64_t i = 0; !c->refuse && i < b * m * n; i++) {
		const struct value *p = x->v + i / n * k, *q = y->v + i / (m * n) * k * n + i % n;
		struct value sum = { 0 };
		double size = 0, term;

		for (int64_t l = 0; l < k; l++, p++, q += n) {
			sum.i = (int64_t)((uint64_t)sum.i + (uint64_t)p->i * (uint64_t)q->i);
			sum.re += p->re * q->re - p->im * q->im;
			sum.im += p->re * q->im + p->im * q->re;
			term = (fabs(p->re) + fabs(p->im)) * (fabs(q->re) + fabs(q->im));
			size += isfinite(term) ? term : 0;
		}
		most = fmax(most, size);
		out->v[i] = plain_is_integral(d) ? plain_round(plain_int(sum.i), TENSOR_I64, d) :
						   plain_round(sum, TENSOR_C128, d);
	}
	/* A sum that overflows f32 in some order of summation has no defined result. */
	out->slack = plain_is_integral(d) ? 0 : most > 1e37 ? INFINITY : 8;
	out->size = most;
}

#define MOVE(n, f)                                        \
	{                                                 \
		.name = n, .make = make_move, .detail = f \
	}
const struct row shape_rows[] = {
	MOVE("transpose.int", TRANSPOSE),
	MOVE("select.int", SELECT),
	MOVE("slice.Tensor", SLICE),
	MOVE("unsqueeze", UNSQUEEZE),
	MOVE("squeeze.dim", SQUEEZE),
	MOVE("expand", EXPAND),
	MOVE("permute", PERMUTE),
	MOVE("flip", FLIP),
	MOVE("clone", CLONE),
	MOVE("contiguous", CLONE),
	MOVE("roll", ROLL),
	MOVE("repeat", REPEAT),
	MOVE("constant_pad_nd", PAD),
	MOVE("unfold", UNFOLD),
	{ .name = "reshape", .make = make_reshape },
	{ .name = "tril", .make = make_move, .detail = TRIL, .inplace = true, .out = true },
	{ .name = "triu", .make = make_move, .detail = TRIU, .inplace = true, .out = true },
	{ .name = "cat", .make = make_cat, .out = true },
	{ .name = "mm", .make = make_mm, .out = true },
	{ .name = "bmm", .make = make_mm, .detail = 1, .out = true },
};
const int shape_count = sizeof(shape_rows) / sizeof(*shape_rows);
