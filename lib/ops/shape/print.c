// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Tensors as text: nested brackets and aligned columns. Numbers have the shortest common form that
 * distinguishes them (integer, fixed or scientific). From 1,000 elements on, only the first and
 * last three of each dimension are shown.
 */
#include "ops/op.h"

#include "base/numeric_locale.h"
#include "storage/devices.h"

#include "family/copy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define THRESHOLD  1000
#define EDGE	   3
#define LINE_WIDTH 80

struct printer {
	const tensor *t; /* on the CPU */
	char *buf;
	size_t size, at; /* `at` may exceed size: the length that snprintf() would need */
	bool summarise;
	enum { WHOLE, FIXED, SCIENTIFIC, INTEGER, BOOLEAN } mode;
	int width;
};

static void print_put(struct printer *p, const char *text)
{
	for (; *text; text++, p->at++)
		if (p->at + 1 < p->size)
			p->buf[p->at] = *text;
}

static void put_spaces(struct printer *p, int n)
{
	while (n-- > 0)
		print_put(p, " ");
}

static int number_text(const struct printer *p, double v, char *text, size_t size)
{
	if (isnan(v))
		return snprintf(text, size, "nan");
	if (isinf(v))
		return snprintf(text, size, v < 0 ? "-inf" : "inf");
	return snprintf(text, size,
			p->mode == WHOLE ? "%.0f." :
			p->mode == FIXED ? "%.4f" :
					   "%.4e",
			v);
}

static int element_text(const struct printer *p, const void *at, char *text, size_t size)
{
	tensor_scalar s = { .kind = TENSOR_SCALAR_NONE };
	char imag[48];
	int n;

	if (element_load(at, p->t->dtype, &s) < 0)
		return snprintf(text, size, "?");
	if (p->mode == BOOLEAN)
		return snprintf(text, size, s.i ? "True" : "False");
	if (p->t->dtype == TENSOR_U64)
		return snprintf(text, size, "%llu", *(const unsigned long long *)at);
	if (p->mode == INTEGER)
		return snprintf(text, size, "%lld", (long long)s.i);
	/* The width was chosen from earlier values: another process may have written a longer
	 * number since. */
	n = number_text(p, scalar_double(s), text, size);
	if (n >= (int)size)
		n = (int)size - 1;
	if (s.kind == TENSOR_SCALAR_COMPLEX) {
		number_text(p, fabs(s.imag), imag, sizeof(imag));
		n += snprintf(text + n, size - n, "%c%sj", signbit(s.imag) ? '-' : '+', imag);
	}
	return n;
}

/* Call fn for every element that is shown. */
static void each_shown(struct printer *p, int dim, const char *at,
		       void (*fn)(struct printer *p, const void *at, void *ctx), void *ctx)
{
	const tensor *t = p->t;
	int64_t n, step;

	if (dim == t->ndim) {
		fn(p, at, ctx);
		return;
	}
	n = t->sizes[dim];
	step = t->strides[dim] * (int64_t)itemsize(t);
	for (int64_t i = 0; i < n; i++) {
		if (p->summarise && n > 2 * EDGE && i == EDGE)
			i = n - EDGE;
		each_shown(p, dim + 1, at + i * step, fn, ctx);
	}
}

/* Statistics that choose the number format. */
struct range {
	bool whole;
	double smallest, largest; /* magnitudes of finite non-zero values */
};

static void see_number(struct range *r, double v)
{
	v = fabs(v);
	if (!isfinite(v))
		return;
	r->whole &= v == floor(v);
	if (v != 0 && (r->smallest == 0 || v < r->smallest))
		r->smallest = v;
	if (v > r->largest)
		r->largest = v;
}

static void see_range(struct printer *p, const void *at, void *ctx)
{
	tensor_scalar s;

	if (element_load(at, p->t->dtype, &s) < 0)
		return;
	see_number(ctx, scalar_double(s));
	if (s.kind == TENSOR_SCALAR_COMPLEX)
		see_number(ctx, s.imag);
}

static void see_width(struct printer *p, const void *at, void *ctx)
{
	char text[96];
	int n = element_text(p, at, text, sizeof(text));

	if (n > p->width)
		p->width = n;
}

static void choose_format(struct printer *p)
{
	struct range r = { .whole = true };
	bool wide;

	if (p->t->dtype == TENSOR_BOOL || dtype_is_int(p->t->dtype)) {
		p->mode = p->t->dtype == TENSOR_BOOL ? BOOLEAN : INTEGER;
	} else {
		each_shown(p, 0, p->t->data, see_range, &r);
		wide = r.smallest > 0 && r.largest / r.smallest > 1000;
		if (r.whole)
			p->mode = (wide && r.largest > 1e8) || r.largest > 1e15 ? SCIENTIFIC :
										  WHOLE;
		else
			p->mode = wide || r.largest > 1e8 || r.smallest < 1e-4 ? SCIENTIFIC : FIXED;
	}
	each_shown(p, 0, p->t->data, see_width, NULL);
}

static void put_element(struct printer *p, const void *at)
{
	char text[96];
	int n = element_text(p, at, text, sizeof(text));

	put_spaces(p, p->width - n);
	print_put(p, text);
}

static void put_row(struct printer *p, const char *at, int indent)
{
	const tensor *t = p->t;
	int d = t->ndim - 1, column = indent;
	int64_t n = t->sizes[d], step = t->strides[d] * (int64_t)itemsize(t);

	for (int64_t i = 0; i < n; i++) {
		if (i) {
			print_put(p, ",");
			column += p->width + 2;
			if (column + p->width > LINE_WIDTH) {
				print_put(p, "\n");
				put_spaces(p, indent);
				column = indent;
			} else {
				print_put(p, " ");
			}
		}
		if (p->summarise && n > 2 * EDGE && i == EDGE) {
			print_put(p, "..., ");
			column += 5;
			i = n - EDGE;
		}
		put_element(p, at + i * step);
	}
}

static void put_dim(struct printer *p, int dim, const char *at, int indent)
{
	const tensor *t = p->t;
	int64_t n = t->sizes[dim], step = t->strides[dim] * (int64_t)itemsize(t);

	print_put(p, "[");
	if (dim == t->ndim - 1) {
		put_row(p, at, indent + 1);
	} else {
		for (int64_t i = 0; i < n; i++) {
			if (i) {
				print_put(p, ",");
				for (int k = t->ndim - 1; k > dim; k--)
					print_put(p, "\n");
				put_spaces(p, indent + 1);
			}
			if (p->summarise && n > 2 * EDGE && i == EDGE) {
				print_put(p, "...,");
				for (int k = t->ndim - 1; k > dim; k--)
					print_put(p, "\n");
				put_spaces(p, indent + 1);
				i = n - EDGE;
			}
			put_dim(p, dim + 1, at + i * step, indent + 1);
		}
	}
	print_put(p, "]");
}

static void put_suffix(struct printer *p, const tensor *t)
{
	char text[64];

	if (!t->ext && !t->numel && t->ndim != 1) {
		print_put(p, ", size=");
		print_put(p, SHAPE_STR(t));
	}
	if (t->dtype != TENSOR_F32 && t->dtype != TENSOR_I64 && t->dtype != TENSOR_BOOL) {
		print_put(p, ", dtype=");
		print_put(p, tensor_dtype_name(t->dtype));
	}
	if (t->device.type != TENSOR_CPU) {
		print_put(p, ", device='");
		print_put(p, device_name(t->device, text, sizeof(text)));
		print_put(p, "'");
	}
	if (t->keys & AUTOGRAD_BIT && tensor_autograd_hooks.describe) {
		tensor_autograd_hooks.describe(t, text, sizeof(text));
		print_put(p, text);
	}
}

static void put_numbers(struct printer *p, int indent)
{
	if (!p->t->numel) {
		print_put(p, "[]");
		return;
	}
	p->summarise = p->t->numel > THRESHOLD;
	p->width = 0;
	choose_format(p);
	if (p->t->ndim) {
		put_dim(p, 0, p->t->data, indent);
	} else {
		p->width = 0;
		put_element(p, p->t->data);
	}
}

/* Print the parts of a tensor with an extension, each like a tensor, and its description. */
static int put_extended(struct printer *p, const tensor *t, int indent)
{
	const struct extension_ops *ops = t->ext->ops;
	const char *name;
	char text[160];
	tensor *part;

	tensor_clear_error();
	for (int i = 0; (part = ops->part(t, i, &name)); i++) {
		p->t = part;
		if (*name) {
			print_put(p, name);
			print_put(p, "=tensor(");
			put_numbers(p, indent + (int)strlen(name) + 8);
			put_suffix(p, part);
			print_put(p, "),\n");
			put_spaces(p, indent);
		} else {
			put_numbers(p, indent);
			print_put(p, ", ");
		}
		tensor_put(part);
	}
	if (thread()->error.code)
		return error_code();
	print_put(p, "size=");
	print_put(p, SHAPE_STR(t));
	ops->describe(t, text, sizeof(text));
	print_put(p, text);
	return 0;
}

static int format(struct printer *p, const tensor *t)
{
	static const char open[] = "tensor(";
	int err = 0;

	print_put(p, open);
	if (t->ext)
		err = put_extended(p, t, sizeof(open) - 1);
	else
		put_numbers(p, sizeof(open) - 1);
	if (err < 0)
		return err;
	put_suffix(p, t);
	print_put(p, ")");
	if (p->size)
		p->buf[p->at < p->size ? p->at : p->size - 1] = '\0';
	return 0;
}

TENSOR_EXPORT int tensor_format(const tensor *t, char *buf, size_t size)
{
	struct printer p = { .t = t, .buf = buf, .size = buf ? size : 0 };
	struct numeric_locale numeric;
	tensor *host = NULL;
	int err;

	if (!tensor_given(t))
		return null_argument_code("format");
	if (t->device.type != TENSOR_CPU) {
		struct tensor_thread *th = thread();
		uint32_t before = th->modes.exclude;

		th->modes.exclude |= AUTOGRAD_BIT;
		host = call__to_copy((tensor *)t, TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU));
		th->modes.exclude = before;
		if (!host)
			return error_code();
		p.t = host;
	}
	numeric = numeric_locale_begin();
	err = format(&p, t);
	numeric_locale_end(&numeric);
	tensor_put(host);
	if (err < 0)
		return err;
	return p.at > INT32_MAX ? INT32_MAX : (int)p.at;
}

TENSOR_EXPORT int tensor_print(const tensor *t, void *stream)
{
	FILE *f = stream ? stream : stdout;
	int n = tensor_format(t, NULL, 0);
	char *text;

	if (n < 0)
		return n;
	text = malloc((size_t)n + 1);
	if (!text)
		return tensor_fail(ENOMEM, "print: no memory for %d bytes of text", n);
	tensor_format(t, text, (size_t)n + 1);
	n = fprintf(f, "%s\n", text);
	free(text);
	return n < 0 ? tensor_fail(EIO, "print: cannot write to the stream") : 0;
}
