// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Values of twelve dtypes, decoded and rounded in software. See plain.h. */
#include "plain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct block {
	struct block *next;
	_Alignas(16) char data[];
} * blocks;

void *plain_alloc(size_t bytes)
{
	struct block *b = malloc(sizeof(*b) + bytes);

	if (!b)
		abort();
	b->next = blocks;
	blocks = b;
	return b->data;
}

void plain_free_all(void)
{
	while (blocks) {
		struct block *b = blocks;

		blocks = b->next;
		free(b);
	}
}

int plain_category(enum tensor_dtype d)
{
	if (d == TENSOR_BOOL)
		return 1;
	if (d <= TENSOR_I64 || d == TENSOR_U16 || d == TENSOR_U32)
		return 2;
	return d <= TENSOR_F64 ? 3 : 4;
}

bool plain_is_integral(enum tensor_dtype d)
{
	return plain_category(d) <= 2;
}

bool plain_is_complex(enum tensor_dtype d)
{
	return plain_category(d) == 4;
}

/* b is u16 or u32; a is one of them or precedes them in the table. */
static enum tensor_dtype promote_unsigned(enum tensor_dtype a, enum tensor_dtype b)
{
	if (a == b || a == TENSOR_BOOL || a == TENSOR_U8 || a == TENSOR_U16)
		return b;
	if (a >= TENSOR_F16)
		return a;
	if (b == TENSOR_U32)
		return TENSOR_I64;
	return a == TENSOR_I64 ? TENSOR_I64 : TENSOR_I32;
}

/* PyTorch's table of promotion, row by row: bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128. */
enum tensor_dtype plain_promote(enum tensor_dtype a, enum tensor_dtype b)
{
	static const char table[12][13] = {
		"0123456789AB",
		"113345"
		"6789AB",
		"232345"
		"6789AB",
		"333345"
		"6789AB",
		"444445"
		"6789AB",
		"555555"
		"6789AB",
		"666666"
		"6889AB",
		"777777"
		"8789AB",
		"888888"
		"8889AB",
		"999999"
		"9999BB",
		"AAAAAA"
		"AAABAB",
		"BBBBBB"
		"BBBBBB",
	};
	char c;

	if (a > b)
		return plain_promote(b, a);
	if (b > TENSOR_C128)
		return promote_unsigned(a, b);
	c = table[a - 1][b - 1];

	return (enum tensor_dtype)(c <= '9' ? c - '0' + 1 : c - 'A' + 11);
}

/*
 * Priority: tensors with dimensions, 0-d tensors, scalars; a lower priority counts only with a
 * higher category of dtype.
 */
enum tensor_dtype plain_result_type(const struct plain *a, const struct plain *b)
{
	int ra = a->ndim > 0  ? 2 :
		 a->ndim == 0 ? 1 :
				0,
	    rb = b->ndim > 0  ? 2 :
		 b->ndim == 0 ? 1 :
				0;

	if (ra < rb)
		return plain_result_type(b, a);
	if (ra == rb)
		return plain_promote(a->dtype, b->dtype);
	if (plain_category(b->dtype) <= plain_category(a->dtype))
		return a->dtype;
	if (plain_is_complex(b->dtype) && a->dtype == TENSOR_F64)
		return TENSOR_C128;
	if (plain_is_complex(b->dtype) && plain_category(a->dtype) == 3)
		return TENSOR_C64;
	if (rb == 0) /* a scalar has the default dtype of its category */
		return plain_is_complex(b->dtype)    ? TENSOR_C64 :
		       plain_category(b->dtype) == 3 ? TENSOR_F32 :
						       b->dtype;
	return b->dtype;
}

void plain_make(struct plain *p, enum tensor_dtype dtype, int ndim, const int64_t *sizes)
{
	memset(p, 0, sizeof(*p));
	p->dtype = dtype;
	p->ndim = ndim;
	p->numel = 1;
	for (int d = 0; d < ndim; d++) {
		p->sizes[d] = sizes[d];
		p->numel *= sizes[d];
	}
	p->v = plain_alloc((p->numel > 0 ? p->numel : 1) * sizeof(*p->v));
	memset(p->v, 0, (p->numel > 0 ? p->numel : 1) * sizeof(*p->v));
}

struct value plain_float(double re)
{
	return (struct value){ 0, re, 0 };
}

struct value plain_int(int64_t i)
{
	return (struct value){ i, 0, 0 };
}

double plain_real(const struct value *v, enum tensor_dtype dtype)
{
	return plain_is_integral(dtype) ? (double)v->i : v->re;
}

/* Decodes a binary float with these numbers of exponent and fraction bits. */
static double decode(uint32_t bits, int exponent_bits, int fraction_bits)
{
	int sign = bits >> (exponent_bits + fraction_bits) & 1,
	    bias = (1 << (exponent_bits - 1)) - 1;
	int e = bits >> fraction_bits & ((1 << exponent_bits) - 1);
	uint32_t f = bits & ((1u << fraction_bits) - 1);
	double v;

	if (e == (1 << exponent_bits) - 1)
		v = f ? NAN : INFINITY;
	else if (e)
		v = ldexp(f + (1u << fraction_bits), e - bias - fraction_bits);
	else
		v = ldexp(f, 1 - bias - fraction_bits);
	return sign ? -v : v;
}

static double round_float(double v, int exponent_bits, int fraction_bits)
{
	int bias = (1 << (exponent_bits - 1)) - 1, e;
	double unit, r;

	if (!isfinite(v) || v == 0)
		return v;
	frexp(v, &e);
	e = e - 1 < 1 - bias ? 1 - bias : e - 1;
	unit = ldexp(1, e - fraction_bits);
	r = rint(v / unit) * unit;
	return fabs(r) >= ldexp(1, bias + 1) ? copysign(INFINITY, v) : r;
}

static double to_float(double v, enum tensor_dtype d)
{
	switch (d) {
	case TENSOR_F16:
		return round_float(v, 5, 10);
	case TENSOR_BF16:
		return round_float(v, 8, 7);
	case TENSOR_F32:
	case TENSOR_C64:
		return (float)v;
	default:
		return v;
	}
}

static int64_t wrap_to(int64_t i, enum tensor_dtype d)
{
	switch (d) {
	case TENSOR_BOOL:
		return i != 0;
	case TENSOR_U8:
		return (uint8_t)i;
	case TENSOR_U16:
		return (uint16_t)i;
	case TENSOR_U32:
		return (uint32_t)i;
	case TENSOR_I8:
		return (int8_t)i;
	case TENSOR_I16:
		return (int16_t)i;
	case TENSOR_I32:
		return (int32_t)i;
	default:
		return i;
	}
}

struct value plain_round(struct value v, enum tensor_dtype from, enum tensor_dtype to)
{
	if (plain_is_integral(from) && plain_is_integral(to))
		return plain_int(wrap_to(v.i, to));
	if (plain_is_integral(from))
		return plain_float(to_float((double)v.i, to));
	if (to == TENSOR_BOOL)
		return plain_int(v.re != 0 || v.im != 0);
	if (plain_is_integral(to))
		return plain_int(wrap_to((int64_t)v.re, to));
	v.re = to_float(v.re, to);
	v.im = plain_is_complex(to) && plain_is_complex(from) ? to_float(v.im, to) : 0;
	return v;
}

static struct value load(const void *p, enum tensor_dtype d)
{
	struct value v = { 0 };
	uint16_t h;

	switch (d) {
	case TENSOR_BOOL:
	case TENSOR_U8:
		v.i = *(const uint8_t *)p;
		break;
	case TENSOR_U16:
		v.i = *(const uint16_t *)p;
		break;
	case TENSOR_U32:
		v.i = *(const uint32_t *)p;
		break;
	case TENSOR_I8:
		v.i = *(const int8_t *)p;
		break;
	case TENSOR_I16:
		v.i = *(const int16_t *)p;
		break;
	case TENSOR_I32:
		v.i = *(const int32_t *)p;
		break;
	case TENSOR_I64:
		v.i = *(const int64_t *)p;
		break;
	case TENSOR_F16:
	case TENSOR_BF16:
		memcpy(&h, p, 2);
		v.re = d == TENSOR_F16 ? decode(h, 5, 10) : decode(h, 8, 7);
		break;
	case TENSOR_F32:
		v.re = *(const float *)p;
		break;
	case TENSOR_F64:
		v.re = *(const double *)p;
		break;
	case TENSOR_C64:
		v.re = ((const float *)p)[0];
		v.im = ((const float *)p)[1];
		break;
	default:
		v.re = ((const double *)p)[0];
		v.im = ((const double *)p)[1];
	}
	return v;
}

int64_t plain_at(const struct plain *p, const int64_t *index)
{
	int64_t at = 0;

	for (int d = 0; d < p->ndim; d++)
		at = at * p->sizes[d] + index[d];
	return at;
}

bool plain_next(const struct plain *p, int64_t *index)
{
	for (int d = p->ndim - 1; d >= 0; d--) {
		if (++index[d] < p->sizes[d])
			return true;
		index[d] = 0;
	}
	return false;
}

void plain_read(struct plain *p, const tensor *t)
{
	size_t size = tensor_itemsize(tensor_dtype(t));
	int64_t index[TENSOR_MAX_DIMS] = { 0 };

	plain_make(p, tensor_dtype(t), tensor_dim(t), tensor_sizes(t));
	if (!p->numel)
		return;
	for (int64_t i = 0; i < p->numel; i++) {
		int64_t at = 0;

		for (int d = 0; d < p->ndim; d++)
			at += index[d] * tensor_strides(t)[d];
		p->v[i] = load((const char *)tensor_data(t) + at * (int64_t)size, p->dtype);
		plain_next(p, index);
	}
}

/* One unit in the last place, relative to the value. */
static double unit_in_last_place(enum tensor_dtype d)
{
	switch (d) {
	case TENSOR_F16:
		return 0x1p-10;
	case TENSOR_BF16:
		return 0x1p-7;
	case TENSOR_F32:
	case TENSOR_C64:
		return 0x1p-23;
	default:
		return 0x1p-52;
	}
}

static double smallest_denormal(enum tensor_dtype d)
{
	return d == TENSOR_F16			   ? 0x1p-24 :
	       d == TENSOR_F64 || d == TENSOR_C128 ? 0x1p-1070 :
						     0x1p-133;
}

void plain_slack_of(struct plain *p, enum tensor_dtype from)
{
	if (unit_in_last_place(from) > unit_in_last_place(p->dtype))
		p->slack *= unit_in_last_place(from) / unit_in_last_place(p->dtype);
}

double plain_size(const struct plain *p)
{
	double sum = 0, v;

	for (int64_t i = 0; i < p->numel && !plain_is_integral(p->dtype); i++) {
		v = fabs(p->v[i].re) + fabs(p->v[i].im);
		sum += isfinite(v) ? v : 0;
	}
	return sum;
}

static bool close_enough(double want, double got, const struct plain *p)
{
	if (isinf(p->slack))
		return true;
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got);
	if (want == got)
		return p->slack > 0 || signbit(want) == signbit(got) || want != 0;
	return fabs(want - got) <=
	       p->slack * (unit_in_last_place(p->dtype) * (fabs(want) + p->size) +
			   smallest_denormal(p->dtype));
}

bool plain_equal(const struct plain *want, const tensor *t, char *why, size_t size)
{
	struct plain got;

	plain_read(&got, t);
	if (got.dtype != want->dtype) {
		snprintf(why, size, "dtype %s, expected %s", tensor_dtype_name(got.dtype),
			 tensor_dtype_name(want->dtype));
		return false;
	}
	if (got.ndim != want->ndim ||
	    memcmp(got.sizes, want->sizes, got.ndim * sizeof(*got.sizes))) {
		snprintf(why, size, "%d dimensions, expected %d, or other sizes", got.ndim,
			 want->ndim);
		return false;
	}
	for (int64_t i = 0; i < got.numel; i++) {
		const struct value *a = &want->v[i], *b = &got.v[i];
		bool same = plain_is_integral(got.dtype) ? a->i == b->i :
							   close_enough(a->re, b->re, want) &&
								   close_enough(a->im, b->im, want);

		if (!same) {
			snprintf(why, size,
				 "element %lld is %lld %.9g%+.9gj, expected %lld %.9g%+.9gj",
				 (long long)i, (long long)b->i, b->re, b->im, (long long)a->i,
				 a->re, a->im);
			return false;
		}
	}
	return true;
}
