// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Archives of any format: entries by index and by name. */
#include "io/archive.h"

#include "base/text.h"

#include <stdlib.h>

tensor_archive *archive_open(const char *op, const char *path,
			     const struct tensor_load_options *options)
{
	tensor_archive *a = calloc(1, sizeof(*a));

	if (!a) {
		tensor_fail(ENOMEM, "%s: no memory", op);
		return NULL;
	}
	if (file_open(&a->file, op, path, options) < 0) {
		free(a);
		return NULL;
	}
	return a;
}

TENSOR_EXPORT void tensor_archive_close(tensor_archive *a)
{
	if (!a)
		return;
	file_close(&a->file);
	free(a->text);
	free(a->entry);
	free(a->sorted);
	free(a->metadata);
	free(a);
}

/* Append a zeroed element of `size` bytes to a growing array. NULL with the error set. */
static void *grow(tensor_archive *a, void **array, int64_t *n, int64_t *capacity, size_t size)
{
	if (*n == *capacity) {
		int64_t more = *capacity ? 2 * *capacity : 16;
		void *grown = realloc(*array, (size_t)more * size);

		if (!grown) {
			file_fail(&a->file, ENOMEM, "no memory for %lld entries", (long long)more);
			return NULL;
		}
		*array = grown;
		*capacity = more;
	}
	return memset((char *)*array + (size_t)(*n)++ * size, 0, size);
}

struct archive_entry *archive_add(tensor_archive *a)
{
	return grow(a, (void **)&a->entry, &a->n, &a->capacity, sizeof(*a->entry));
}

struct tensor_metadata *archive_add_metadata(tensor_archive *a)
{
	return grow(a, (void **)&a->metadata, &a->nmetadata, &a->metadata_capacity,
		    sizeof(*a->metadata));
}

/* ---- names ---- */

static int by_name(const void *x, const void *y, void *ctx)
{
	const struct archive_entry *entry = ctx;

	return strcmp(entry[*(const int64_t *)x].name, entry[*(const int64_t *)y].name);
}

static int by_key(const void *x, const void *y)
{
	return strcmp(((const struct tensor_metadata *)x)->key,
		      ((const struct tensor_metadata *)y)->key);
}

/* Sorts the keys in place: their order is not part of the interface. */
static int check_metadata(tensor_archive *a)
{
	if (a->nmetadata)
		qsort(a->metadata, (size_t)a->nmetadata, sizeof(*a->metadata), by_key);
	for (int64_t i = 1; i < a->nmetadata; i++)
		if (!by_key(&a->metadata[i - 1], &a->metadata[i]))
			return file_fail(&a->file, EBADMSG, "metadata '%.100s' occurs twice",
					 a->metadata[i].key);
	return 0;
}

int archive_index(tensor_archive *a)
{
	a->sorted = malloc(((size_t)a->n + 1) * sizeof(*a->sorted));
	if (!a->sorted)
		return file_fail(&a->file, ENOMEM, "no memory");
	for (int64_t i = 0; i < a->n; i++)
		a->sorted[i] = i;
	if (a->n)
		qsort_r(a->sorted, (size_t)a->n, sizeof(*a->sorted), by_name, a->entry);
	for (int64_t i = 1; i < a->n; i++)
		if (!by_name(&a->sorted[i - 1], &a->sorted[i], a->entry))
			return file_fail(&a->file, EBADMSG, "'%.100s' occurs twice",
					 a->entry[a->sorted[i]].name);
	return check_metadata(a);
}

TENSOR_EXPORT int64_t tensor_archive_find(const tensor_archive *a, const char *name)
{
	int64_t low = 0, high = a && name ? a->n : 0;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		int order = strcmp(a->entry[a->sorted[middle]].name, name);

		if (!order)
			return a->sorted[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return -ENOENT;
}

TENSOR_EXPORT int64_t tensor_archive_count(const tensor_archive *a)
{
	return a ? a->n : 0;
}

TENSOR_EXPORT const char *tensor_archive_name(const tensor_archive *a, int64_t i)
{
	return a && i >= 0 && i < a->n ? a->entry[i].name : NULL;
}

TENSOR_EXPORT tensor *tensor_archive_at(tensor_archive *a, int64_t i)
{
	if (!a)
		return null_argument("archive_at");
	if (i < 0 || i >= a->n)
		return tensor_fail_null(ENOENT, "archive_at: %s: has %lld tensors, not number %lld",
					SHORT_PATH(a->file.path), (long long)a->n, (long long)i);
	return scope_own(thread(), a->load(a, &a->entry[i]));
}

TENSOR_EXPORT tensor *tensor_archive_get(tensor_archive *a, const char *name)
{
	int64_t i = tensor_archive_find(a, name);

	if (!a || !name)
		return null_argument("archive_get");
	if (i < 0)
		return tensor_fail_null(ENOENT, "archive_get: %s: has no tensor %s",
					SHORT_PATH(a->file.path), QUOTED(name));
	return tensor_archive_at(a, i);
}

TENSOR_EXPORT int64_t tensor_archive_metadata_count(const tensor_archive *a)
{
	return a ? a->nmetadata : 0;
}

TENSOR_EXPORT const struct tensor_metadata *tensor_archive_metadata(const tensor_archive *a,
								    int64_t i)
{
	return a && i >= 0 && i < a->nmetadata ? &a->metadata[i] : NULL;
}

/* ---- checks for writers ---- */

static int by_text(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

int archive_check_names(const char *op, const struct tensor_named *tensors, int64_t n)
{
	const char **names;
	int err = 0;

	if (n < 0 || (n && !tensors))
		return tensor_fail(EINVAL, "%s: %lld tensors", op, (long long)n);
	names = malloc(((size_t)n + 1) * sizeof(*names));
	if (!names)
		return tensor_fail(ENOMEM, "%s: no memory", op);
	for (int64_t i = 0; i < n && !err; i++) {
		const char *name = names[i] = tensors[i].name;

		if (!tensor_given(tensors[i].t))
			err = null_argument_code(op);
		else if (!name || !*name || !text_is_utf8(name, strlen(name)))
			err = tensor_fail(EINVAL,
					  "%s: the name of tensor %lld is empty or not UTF-8", op,
					  (long long)i);
	}
	if (!err && n)
		qsort(names, (size_t)n, sizeof(*names), by_text);
	for (int64_t i = 1; i < n && !err; i++)
		if (!strcmp(names[i - 1], names[i]))
			err = tensor_fail(EINVAL, "%s: '%.100s' occurs twice", op, names[i]);
	free(names);
	return err;
}
