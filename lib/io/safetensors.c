// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The safetensors format: the length of a JSON header, the header, and the tensors' bytes end to
 * end. Duplicate names, gaps and overlaps are errors, as its documentation requires. */
#include "base/text.h"
#include "io/archive.h"
#include "io/json.h"

#include <stdio.h>
#include <stdlib.h>

#define HEADER_MAX 100000000 /* limit of the format */

static const struct {
	const char *name;
	/* TENSOR_DTYPE_NONE: a dtype of the format that the library does not have */
	enum tensor_dtype dtype;
	uint8_t bytes;
} types[] = {
	{ "BOOL", TENSOR_BOOL, 1 },
	{ "U8", TENSOR_U8, 1 },
	{ "I8", TENSOR_I8, 1 },
	{ "I16", TENSOR_I16, 2 },
	{ "I32", TENSOR_I32, 4 },
	{ "I64", TENSOR_I64, 8 },
	{ "U16", TENSOR_U16, 2 },
	{ "U32", TENSOR_U32, 4 },
	{ "U64", TENSOR_U64, 8 },
	{ "F8_E4M3", TENSOR_F8_E4M3FN, 1 },
	{ "F8_E5M2", TENSOR_F8_E5M2, 1 },
	{ "F16", TENSOR_F16, 2 },
	{ "BF16", TENSOR_BF16, 2 },
	{ "F32", TENSOR_F32, 4 },
	{ "F64", TENSOR_F64, 8 },
	{ "C64", TENSOR_C64, 8 },
	{ "F8_E8M0", TENSOR_DTYPE_NONE, 1 },
};

/* ---- reading ---- */

static int malformed(tensor_archive *a, const struct json *j, const char *what)
{
	return file_fail(&a->file, EBADMSG, "the header's %s cannot be read near byte %lld", what,
			 (long long)(j->p - j->begin));
}

static int read_metadata(tensor_archive *a, struct json *j)
{
	bool comma = true;

	if (!json_take(j, '{'))
		return malformed(a, j, "metadata");
	while (!json_take(j, '}')) {
		struct tensor_metadata *m = archive_add_metadata(a);
		char *key, *value;

		if (!m)
			return -ENOMEM;
		if (!comma || !json_string(j, &key) || !json_take(j, ':') ||
		    !json_string(j, &value))
			return malformed(a, j, "metadata");
		*m = (struct tensor_metadata){ key, value };
		comma = json_take(j, ',');
		if (comma && json_take(j, '}'))
			return malformed(a, j, "metadata");
	}
	return 0;
}

static int read_shape(tensor_archive *a, struct json *j, struct archive_entry *e)
{
	if (!json_take(j, '['))
		return malformed(a, j, "shape");
	for (bool more = !json_take(j, ']'); more; e->ndim++) {
		if (e->ndim == TENSOR_MAX_DIMS)
			return file_fail(&a->file, EOPNOTSUPP,
					 "'%.100s' has more than %d dimensions", e->name,
					 TENSOR_MAX_DIMS);
		if (!json_number(j, &e->sizes[e->ndim]))
			return malformed(a, j, "shape");
		more = json_take(j, ',');
		if (!more && !json_take(j, ']'))
			return malformed(a, j, "shape");
	}
	return 0;
}

static int read_offsets(tensor_archive *a, struct json *j, struct archive_entry *e)
{
	int64_t begin, end;

	if (!json_take(j, '[') || !json_number(j, &begin) || !json_take(j, ',') ||
	    !json_number(j, &end) || !json_take(j, ']'))
		return malformed(a, j, "data_offsets");
	if (end < begin)
		return file_fail(&a->file, EBADMSG,
				 "'%.100s' has data_offsets that end before they begin", e->name);
	e->offset = (uint64_t)begin;
	e->nbytes = (uint64_t)(end - begin);
	return 0;
}

enum { SEEN_DTYPE = 1, SEEN_SHAPE = 2, SEEN_OFFSETS = 4, SEEN_ALL = 7 };

/* Parse one field of an entry; returns which one. */
static int read_field(tensor_archive *a, struct json *j, struct archive_entry *e)
{
	char *key, *type;

	if (!json_string(j, &key) || !json_take(j, ':'))
		return malformed(a, j, "entry");
	if (!strcmp(key, "shape"))
		return read_shape(a, j, e) < 0 ? -EBADMSG : SEEN_SHAPE;
	if (!strcmp(key, "data_offsets"))
		return read_offsets(a, j, e) < 0 ? -EBADMSG : SEEN_OFFSETS;
	if (strcmp(key, "dtype"))
		return file_fail(&a->file, EBADMSG, "'%.100s' has an unknown field '%.100s'",
				 e->name, key);
	if (!json_string(j, &type))
		return malformed(a, j, "dtype");
	e->type = type;
	return SEEN_DTYPE;
}

/* Check that dtype, shape and offsets agree. */
static int check_entry(tensor_archive *a, struct archive_entry *e)
{
	int64_t numel = sizes_numel(a->file.op, e->sizes, e->ndim);
	uint64_t nbytes;
	size_t i = 0;

	if (numel < 0)
		return file_fail(&a->file, EBADMSG, "'%.100s' has too many elements", e->name);
	while (i < ARRAY_SIZE(types) && strcmp(types[i].name, e->type))
		i++;
	/* An unknown dtype makes only its own tensor unreadable. */
	if (i == ARRAY_SIZE(types))
		return 0;
	e->dtype = types[i].dtype;
	if (__builtin_mul_overflow((uint64_t)numel, types[i].bytes, &nbytes) || nbytes != e->nbytes)
		return file_fail(
			&a->file, EBADMSG,
			"'%.100s' has %llu bytes, which does not match its dtype and shape",
			e->name, (unsigned long long)e->nbytes);
	return 0;
}

static int read_entry(tensor_archive *a, struct json *j, const char *name)
{
	struct archive_entry *e = archive_add(a);
	int seen = 0;

	if (!e)
		return -ENOMEM;
	e->name = name;
	if (!json_take(j, '{'))
		return malformed(a, j, "entry");
	do {
		int field = read_field(a, j, e);

		if (field < 0)
			return field;
		if (seen & field)
			return file_fail(&a->file, EBADMSG, "'%.100s' has a field twice", name);
		seen |= field;
	} while (json_take(j, ','));
	if (!json_take(j, '}'))
		return malformed(a, j, "entry");
	if (seen != SEEN_ALL)
		return file_fail(&a->file, EBADMSG, "'%.100s' lacks dtype, shape or data_offsets",
				 name);
	return check_entry(a, e);
}

static int read_header(tensor_archive *a, struct json *j)
{
	bool more = json_take(j, '{') && !json_take(j, '}'), metadata = false;

	if (*j->begin != '{')
		return file_fail(&a->file, EBADMSG, "not a safetensors file");
	while (more) {
		char *name;
		int err;

		if (!json_string(j, &name) || !json_take(j, ':'))
			return malformed(a, j, "names");
		if (strcmp(name, "__metadata__"))
			err = read_entry(a, j, name);
		else if (metadata)
			err = file_fail(&a->file, EBADMSG, "the metadata occurs twice");
		else
			err = read_metadata(a, j), metadata = true;
		if (err < 0)
			return err;
		more = json_take(j, ',');
		if (!more && !json_take(j, '}'))
			return malformed(a, j, "entries");
	}
	return json_at_end(j) ? 0 : malformed(a, j, "end");
}

static int by_offset(const void *x, const void *y, void *ctx)
{
	const struct archive_entry *entry = ctx, *a = &entry[*(const int64_t *)x],
				   *b = &entry[*(const int64_t *)y];

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return (a->nbytes > b->nbytes) - (a->nbytes < b->nbytes);
}

/* Check that the entries cover the data without gaps or overlaps, and make offsets relative to the
 * file. */
static int check_layout(tensor_archive *a, uint64_t begin)
{
	int64_t *order = malloc(((size_t)a->n + 1) * sizeof(*order));
	uint64_t end = 0, size = a->file.size - begin;
	int err = 0;

	if (!order)
		return file_fail(&a->file, ENOMEM, "no memory");
	for (int64_t i = 0; i < a->n; i++)
		order[i] = i;
	if (a->n)
		qsort_r(order, (size_t)a->n, sizeof(*order), by_offset, a->entry);
	for (int64_t i = 0; i < a->n && !err; i++) {
		struct archive_entry *e = &a->entry[order[i]];

		if (e->offset != end)
			err = file_fail(&a->file, EBADMSG, "'%.100s' %s", e->name,
					e->offset < end ? "overlaps another tensor" :
							  "is after a hole");
		end = e->offset + e->nbytes;
	}
	free(order);
	if (!err && end != size)
		err = file_fail(&a->file, EBADMSG,
				"%s: it has %llu bytes of data, its tensors %llu",
				end > size ? "truncated" : "too long", (unsigned long long)size,
				(unsigned long long)end);
	for (int64_t i = 0; i < a->n; i++)
		a->entry[i].offset += begin;
	return err;
}

static tensor *load(tensor_archive *a, const struct archive_entry *e)
{
	struct file_span span = { .offset = e->offset, .nbytes = e->nbytes, .dtype = e->dtype };
	int64_t strides[TENSOR_MAX_DIMS];
	struct tensor_storage *s;

	if (!e->dtype)
		return file_fail(&a->file, EOPNOTSUPP, "'%.100s': there is no dtype for %.20s",
				 e->name, e->type),
		       NULL;
	s = file_storage(&a->file, &span);
	contiguous_strides(e->sizes, e->ndim, strides);
	return s ? tensor_new_on_storage(s, e->dtype, e->sizes, strides, e->ndim, 0) : NULL;
}

static int open_header(tensor_archive *a)
{
	unsigned char prefix[8];
	uint64_t length;
	struct json j;
	int err;

	if (file_read(&a->file, prefix, sizeof(prefix), 0) < 0)
		return -EBADMSG;
	length = file_get64(prefix);
	if (length > HEADER_MAX || length < 2 || length > a->file.size - 8)
		return file_fail(&a->file, EBADMSG,
				 "not a safetensors file: a header of %llu bytes",
				 (unsigned long long)length);
	a->text = malloc(length + 1);
	if (!a->text)
		return file_fail(&a->file, ENOMEM, "no memory for its header");
	if (file_read(&a->file, a->text, length, 8) < 0)
		return -EBADMSG;
	j = (struct json){ a->text, a->text, a->text + length };
	err = read_header(a, &j);
	if (!err)
		err = check_layout(a, 8 + length);
	return err ? err : archive_index(a);
}

TENSOR_EXPORT tensor_archive *tensor_open_safetensors(const char *path,
						      const struct tensor_load_options *options)
{
	tensor_archive *a = archive_open("open_safetensors", path, options);

	if (a && open_header(a) < 0) {
		tensor_archive_close(a);
		return NULL;
	}
	if (a)
		a->load = load;
	return a;
}

/* ---- writing ---- */

static const char *type_name(enum tensor_dtype dtype)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].dtype == dtype)
			return types[i].name;
	return NULL;
}

/* Text that is counted in a first pass and written in a second. */
struct text {
	char *to;
	size_t n;
};

static void add(struct text *t, const char *s)
{
	size_t n = strlen(s);

	if (t->to)
		memcpy(t->to + t->n, s, n);
	t->n += n;
}

static void add_quoted(struct text *t, const char *s)
{
	t->n += json_quote(t->to ? t->to + t->n : NULL, s);
}

static void add_number(struct text *t, uint64_t v, const char *after)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);
	add(t, digits);
	add(t, after);
}

static void add_metadata(struct text *t, const struct tensor_metadata *m, int64_t n)
{
	add(t, "\"__metadata__\":{");
	for (int64_t i = 0; i < n; i++) {
		add(t, i ? "," : "");
		add_quoted(t, m[i].key);
		add(t, ":");
		add_quoted(t, m[i].value);
	}
	add(t, "}");
}

/* Write the whole header; `order` is the order of the tensors' data. */
static void add_header(struct text *t, const struct tensor_named *tensors, const int64_t *order,
		       int64_t n, const struct tensor_metadata *metadata, int64_t nmetadata)
{
	uint64_t offset = 0;

	add(t, "{");
	if (nmetadata)
		add_metadata(t, metadata, nmetadata);
	for (int64_t i = 0; i < n; i++) {
		const tensor *x = tensors[order[i]].t;

		add(t, i || nmetadata ? "," : "");
		add_quoted(t, tensors[order[i]].name);
		add(t, ":{\"dtype\":");
		add_quoted(t, type_name(x->dtype));
		add(t, ",\"shape\":[");
		for (int d = 0; d < x->ndim; d++)
			add_number(t, (uint64_t)x->sizes[d], d + 1 < x->ndim ? "," : "");
		add(t, "],\"data_offsets\":[");
		add_number(t, offset, ",");
		offset += (uint64_t)x->numel * itemsize(x);
		add_number(t, offset, "]}");
	}
	add(t, "}");
	/* Align the data to 64 bytes, so that every tensor is aligned to its element size. */
	while ((t->n + 8) % 64)
		add(t, " ");
}

static int by_itemsize(const void *x, const void *y, void *ctx)
{
	const struct tensor_named *tensors = ctx;
	int64_t i = *(const int64_t *)x, j = *(const int64_t *)y;
	size_t a = itemsize(tensors[i].t), b = itemsize(tensors[j].t);

	return a != b ? (a < b) - (a > b) : (i > j) - (i < j);
}

static int check(const struct tensor_named *tensors, int64_t n,
		 const struct tensor_metadata *metadata, int64_t nmetadata)
{
	const char *op = "save_safetensors";
	int err = archive_check_names(op, tensors, n);

	for (int64_t i = 0; i < n && !err; i++) {
		if (!type_name(tensors[i].t->dtype))
			err = tensor_fail(EOPNOTSUPP,
					  "%s: '%.100s': safetensors has no dtype for %s", op,
					  tensors[i].name, tensor_dtype_name(tensors[i].t->dtype));
		else if (!strcmp(tensors[i].name, "__metadata__"))
			err = tensor_fail(EINVAL, "%s: no tensor can be named __metadata__", op);
	}
	if (!err && (nmetadata < 0 || (nmetadata && !metadata)))
		err = tensor_fail(EINVAL, "%s: %lld texts of metadata", op, (long long)nmetadata);
	for (int64_t i = 0; i < nmetadata && !err; i++) {
		const char *key = metadata[i].key, *value = metadata[i].value;

		if (!key || !value || !text_is_utf8(key, strlen(key)) ||
		    !text_is_utf8(value, strlen(value)))
			err = tensor_fail(EINVAL, "%s: text %lld of metadata is not UTF-8", op,
					  (long long)i);
		for (int64_t k = 0; k < i && !err; k++)
			if (!strcmp(metadata[k].key, key))
				err = tensor_fail(EINVAL, "%s: metadata '%.100s' occurs twice", op,
						  key);
	}
	return err;
}

static int write_all(struct file_out *f, const struct text *header,
		     const struct tensor_named *tensors, const int64_t *order, int64_t n)
{
	unsigned char length[8];

	file_put(length, header->n, 8);
	file_write(f, length, 8);
	file_write(f, header->to, header->n);
	for (int64_t i = 0; i < n; i++) {
		tensor *plain = file_contiguous(tensors[order[i]].t, NULL);

		if (!plain)
			return -thread()->error.code;
		file_write(f, plain->data, (uint64_t)plain->numel * itemsize(plain));
		tensor_put(plain);
	}
	return 0;
}

TENSOR_EXPORT int tensor_save_safetensors(const char *path, const struct tensor_named *tensors,
					  int64_t n, const struct tensor_metadata *metadata,
					  int64_t nmetadata)
{
	int err = check(tensors, n, metadata, nmetadata);
	struct text header = { NULL, 0 };
	int64_t *order = NULL;
	struct file_out f;

	if (err)
		return err;
	order = malloc(((size_t)n + 1) * sizeof(*order));
	for (int64_t i = 0; order && i < n; i++)
		order[i] = i;
	if (order && n)
		qsort_r(order, (size_t)n, sizeof(*order), by_itemsize, (void *)tensors);
	if (order) {
		add_header(&header, tensors, order, n, metadata, nmetadata);
		header = (struct text){ malloc(header.n), 0 };
	}
	if (!header.to) {
		free(order);
		return tensor_fail(ENOMEM, "save_safetensors: no memory");
	}
	add_header(&header, tensors, order, n, metadata, nmetadata);
	err = header.n > HEADER_MAX ?
		      tensor_fail(EINVAL, "save_safetensors: the header would have %zu bytes",
				  header.n) :
		      file_create(&f, "save_safetensors", path);
	if (!err)
		err = file_finish(&f, write_all(&f, &header, tensors, order, n));
	else if (header.n <= HEADER_MAX)
		file_finish(&f, err);
	free(header.to);
	free(order);
	return err;
}
