// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* NumPy's .npy format: a magic string, a header in Python's syntax for dictionaries, and the
 * elements. */
#include "io/npy.h"

#include <stdio.h>
#include <stdlib.h>

static const char magic[] = "\x93NUMPY";

static const struct {
	const char *text; /* kind and size, without the byte order */
	enum tensor_dtype dtype;
} descriptions[] = {
	{ "b1", TENSOR_BOOL }, { "u1", TENSOR_U8 },    { "i1", TENSOR_I8 },  { "i2", TENSOR_I16 },
	{ "u2", TENSOR_U16 },  { "u4", TENSOR_U32 },   { "u8", TENSOR_U64 }, { "i4", TENSOR_I32 },
	{ "i8", TENSOR_I64 },  { "f2", TENSOR_F16 },   { "f4", TENSOR_F32 }, { "f8", TENSOR_F64 },
	{ "c8", TENSOR_C64 },  { "c16", TENSOR_C128 },
};

/* ---- reading ---- */

int64_t npy_header_length(struct file *f, const unsigned char *prefix)
{
	int major = prefix[6];
	uint64_t length;

	if (memcmp(prefix, magic, 6))
		return file_fail(f, EBADMSG, "not a .npy file");
	if (major < 1 || major > 3 || prefix[7])
		return file_fail(f, EOPNOTSUPP, ".npy version %d.%d is unknown", major, prefix[7]);
	length = major == 1 ? 10 + (uint64_t)file_get16(prefix + 8) :
			      12 + (uint64_t)file_get32(prefix + 8);
	if (length > NPY_HEADER_MAX)
		return file_fail(f, EBADMSG, "a header of %llu bytes", (unsigned long long)length);
	return (int64_t)length;
}

/* Unparsed part of the Python literal. */
struct literal {
	const char *p, *end;
};

static void skip_space(struct literal *l)
{
	while (l->p < l->end && (*l->p == ' ' || *l->p == '\n' || *l->p == '\t' || *l->p == '\r'))
		l->p++;
}

static bool npy_take(struct literal *l, char c)
{
	skip_space(l);
	if (l->p == l->end || *l->p != c)
		return false;
	l->p++;
	return true;
}

static bool take_word(struct literal *l, const char *word)
{
	size_t n = strlen(word);

	skip_space(l);
	if ((size_t)(l->end - l->p) < n || memcmp(l->p, word, n))
		return false;
	l->p += n;
	return true;
}

/* Parse a string without escapes into buf. */
static bool take_string(struct literal *l, char *buf, size_t size)
{
	size_t n = 0;
	char quote;

	skip_space(l);
	if (l->p == l->end || (*l->p != '\'' && *l->p != '"'))
		return false;
	quote = *l->p++;
	while (l->p < l->end && *l->p != quote && n + 1 < size) {
		if (*l->p == '\\' || *l->p < ' ')
			return false;
		buf[n++] = *l->p++;
	}
	buf[n] = '\0';
	return npy_take(l, quote);
}

static bool take_size(struct literal *l, int64_t *value)
{
	skip_space(l);
	if (l->p == l->end || *l->p < '0' || *l->p > '9')
		return false;
	for (*value = 0; l->p < l->end && *l->p >= '0' && *l->p <= '9'; l->p++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, *l->p - '0', value))
			return false;
	if (l->p < l->end && *l->p == 'L') /* long integer of Python 2 */
		l->p++;
	return true;
}

static int read_shape(struct file *f, struct literal *l, struct npy *npy)
{
	bool comma = true;

	if (!npy_take(l, '('))
		return file_fail(f, EBADMSG, "the header's shape is not a tuple");
	for (npy->ndim = 0; !npy_take(l, ')'); npy->ndim++) {
		if (npy->ndim == TENSOR_MAX_DIMS)
			return file_fail(f, EOPNOTSUPP, "more than %d dimensions", TENSOR_MAX_DIMS);
		if (!comma || !take_size(l, &npy->sizes[npy->ndim]))
			return file_fail(f, EBADMSG, "the header's shape cannot be read");
		comma = npy_take(l, ',');
	}
	/* (3) is an integer in Python, (3,) a tuple. */
	if (npy->ndim == 1 && !comma)
		return file_fail(f, EBADMSG, "the header's shape is not a tuple");
	return 0;
}

static int read_dtype(struct file *f, struct literal *l, struct npy *npy)
{
	char text[32];

	skip_space(l);
	if (l->p < l->end && *l->p == '[')
		return file_fail(f, EOPNOTSUPP, "structured dtypes are not supported");
	if (!take_string(l, text, sizeof(text)))
		return file_fail(f, EBADMSG, "the header's descr cannot be read");
	for (size_t i = 0; i < ARRAY_SIZE(descriptions); i++) {
		size_t size = dtype_sizes[descriptions[i].dtype];

		if (strcmp(text + !!text[0], descriptions[i].text) ||
		    !strchr(size == 1 ? "|<>=" : "<>=", text[0]))
			continue;
		npy->span.dtype = descriptions[i].dtype;
		npy->span.swap = text[0] == '>' && size > 1;
		return 0;
	}
	return file_fail(f, EOPNOTSUPP, "there is no dtype for NumPy's '%s'", text);
}

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

static int read_value(struct file *f, struct literal *l, struct npy *npy, const char *key,
		      bool *fortran)
{
	if (!strcmp(key, "descr"))
		return read_dtype(f, l, npy) < 0 ? -1 : SEEN_DESCR;
	if (!strcmp(key, "shape"))
		return read_shape(f, l, npy) < 0 ? -1 : SEEN_SHAPE;
	if (strcmp(key, "fortran_order"))
		return file_fail(f, EBADMSG, "the header has an unknown key '%s'", key);
	*fortran = take_word(l, "True");
	if (!*fortran && !take_word(l, "False"))
		return file_fail(f, EBADMSG, "the header's fortran_order cannot be read");
	return SEEN_ORDER;
}

static int read_dictionary(struct file *f, struct literal *l, struct npy *npy, bool *fortran)
{
	bool comma = true;
	int seen = 0;

	if (!npy_take(l, '{'))
		return file_fail(f, EBADMSG, "the header is not a dictionary");
	while (!npy_take(l, '}')) {
		char key[32];
		int is;

		if (!comma || !take_string(l, key, sizeof(key)) || !npy_take(l, ':'))
			return file_fail(f, EBADMSG, "the header cannot be read");
		is = read_value(f, l, npy, key, fortran);
		if (is < 0)
			return is;
		if (seen & is)
			return file_fail(f, EBADMSG, "the header has '%s' twice", key);
		seen |= is;
		comma = npy_take(l, ',');
	}
	skip_space(l);
	if (l->p != l->end)
		return file_fail(f, EBADMSG, "the header goes on after its dictionary");
	if (seen != SEEN_ALL)
		return file_fail(f, EBADMSG, "the header lacks descr, fortran_order or shape");
	return 0;
}

int npy_parse(struct file *f, const unsigned char *header, int64_t length, struct npy *npy)
{
	struct literal l = { (const char *)header + (header[6] == 1 ? 10 : 12),
			     (const char *)header + length };
	bool fortran = false;
	int64_t numel;

	memset(npy, 0, sizeof(*npy));
	if (l.p > l.end)
		return file_fail(f, EBADMSG, "truncated in its header");
	if (read_dictionary(f, &l, npy, &fortran) < 0)
		return -thread()->error.code;
	numel = sizes_numel(f->op, npy->sizes, npy->ndim);
	if (numel < 0 || __builtin_mul_overflow((uint64_t)numel, dtype_sizes[npy->span.dtype],
						&npy->span.nbytes))
		return file_fail(f, EBADMSG, "the header's shape has too many elements");
	npy->span.offset = (uint64_t)length;
	contiguous_strides(npy->sizes, npy->ndim, npy->strides);
	for (int i = 0; fortran && i < npy->ndim; i++)
		npy->strides[i] = i ? npy->strides[i - 1] * npy->sizes[i - 1] : 1;
	return 0;
}

tensor *npy_tensor(const struct npy *npy, struct tensor_storage *s)
{
	return s ? tensor_new_on_storage(s, npy->span.dtype, npy->sizes, npy->strides, npy->ndim,
					 0) :
		   NULL;
}

static tensor *load(struct file *f)
{
	unsigned char prefix[NPY_PREFIX], *header;
	struct npy npy;
	int64_t length;
	int err;

	if (file_read(f, prefix, sizeof(prefix), 0) < 0)
		return NULL;
	length = npy_header_length(f, prefix);
	if (length < 0)
		return NULL;
	header = malloc((size_t)length + NPY_PREFIX);
	if (!header)
		return tensor_fail_null(ENOMEM, "%s: no memory", f->op);
	err = file_read(f, header, (uint64_t)length, 0);
	if (!err)
		err = npy_parse(f, header, length, &npy);
	free(header);
	return err < 0 ? NULL : npy_tensor(&npy, file_storage(f, &npy.span));
}

TENSOR_EXPORT tensor *tensor_load_npy(const char *path, const struct tensor_load_options *options)
{
	struct file f;
	tensor *t;

	if (file_open(&f, "load_npy", path, options) < 0)
		return NULL;
	t = load(&f);
	file_close(&f);
	return scope_own(thread(), t);
}

/* ---- writing ---- */

int npy_format(const char *op, const tensor *t, bool fortran, char *buf)
{
	const char *description = NULL;
	int n = 10, end;

	for (size_t i = 0; i < ARRAY_SIZE(descriptions); i++)
		if (descriptions[i].dtype == t->dtype)
			description = descriptions[i].text;
	if (!description)
		return tensor_fail(EOPNOTSUPP, "%s: NumPy has no dtype for %s", op,
				   tensor_dtype_name(t->dtype));
	n += snprintf(buf + n, NPY_HEADER_ROOM - n,
		      "{'descr': '%c%s', 'fortran_order': %s, 'shape': (",
		      itemsize(t) == 1 ? '|' : '<', description, fortran ? "True" : "False");
	for (int i = 0; i < t->ndim; i++)
		n += snprintf(buf + n, NPY_HEADER_ROOM - n, "%s%lld", i ? ", " : "",
			      (long long)t->sizes[i]);
	n += snprintf(buf + n, NPY_HEADER_ROOM - n, "%s), }", t->ndim == 1 ? "," : "");
	end = (n + 1 + 63) / 64 * 64;
	memset(buf + n, ' ', end - n);
	buf[end - 1] = '\n';
	memcpy(buf, magic, 6);
	file_put((unsigned char *)buf + 6, 1, 2); /* version 1.0 */
	file_put((unsigned char *)buf + 8, (uint64_t)end - 10, 2);
	return end;
}

TENSOR_EXPORT int tensor_save_npy(const char *path, tensor *t)
{
	char header[NPY_HEADER_ROOM];
	bool fortran = false;
	struct file_out f;
	tensor *plain;
	int err, length;

	if (tensor_absent("save_npy", t))
		return -thread()->error.code;
	plain = file_contiguous(t, &fortran);
	if (!plain)
		return -thread()->error.code;
	length = npy_format("save_npy", plain, fortran, header);
	if (length < 0) {
		tensor_put(plain);
		return length;
	}
	err = file_create(&f, "save_npy", path);
	if (!err) {
		file_write(&f, header, (uint64_t)length);
		file_write(&f, plain->data, (uint64_t)plain->numel * itemsize(plain));
	}
	tensor_put(plain);
	return file_finish(&f, err);
}
