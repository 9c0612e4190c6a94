// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Read the central directory of a zip file and check it against the file: members lie before the
 * directory, do not overlap, and do not inflate to more than deflate's limit. */
#include "io/zip.h"

#include <stdlib.h>

#define COMMENT_MAX   65535
#define DIRECTORY_MAX ((uint64_t)1 << 28)
#define DEFLATE_RATIO 1040 /* deflate reaches 1032 to 1, plus a few bytes of framing */

struct directory {
	uint64_t offset, size, entries;
};

/* Read the zip64 end record, whose position is in a locator before the ordinary end record. */
static int read_zip64(tensor_archive *a, uint64_t end, struct directory *d)
{
	unsigned char locator[ZIP64_LOCATOR_SIZE], record[ZIP64_END_SIZE];
	uint64_t at;

	if (end < ZIP64_LOCATOR_SIZE)
		return 0;
	if (file_read(&a->file, locator, sizeof(locator), end - ZIP64_LOCATOR_SIZE) < 0)
		return -EBADMSG;
	if (file_get32(locator) != ZIP64_LOCATOR)
		return 0;
	at = file_get64(locator + 8);
	if (file_read(&a->file, record, sizeof(record), at) < 0)
		return -EBADMSG;
	if (file_get32(record) != ZIP64_END || file_get32(locator + 4) ||
	    file_get32(locator + 16) > 1 || file_get32(record + 16) || file_get32(record + 20))
		return file_fail(&a->file, EBADMSG, "its zip64 directory cannot be read");
	d->entries = file_get64(record + 32);
	d->size = file_get64(record + 40);
	d->offset = file_get64(record + 48);
	if (file_get64(record + 24) != d->entries)
		return file_fail(&a->file, EBADMSG, "an archive of several disks is not supported");
	return 1;
}

/* Find the end record: the last one whose comment length reaches the end of the file. */
static int find_end(tensor_archive *a, unsigned char *tail, uint64_t n, uint64_t *at)
{
	for (uint64_t i = n - ZIP_END_SIZE + 1; i-- > 0;)
		if (file_get32(tail + i) == ZIP_END &&
		    i + ZIP_END_SIZE + file_get16(tail + i + 20) == n) {
			*at = i;
			return 0;
		}
	return file_fail(&a->file, EBADMSG, "not a zip file, or truncated");
}

static int find_directory(tensor_archive *a, struct directory *d)
{
	uint64_t size = a->file.size, at = 0, begin;
	uint64_t n = size < ZIP_END_SIZE + COMMENT_MAX ? size : ZIP_END_SIZE + COMMENT_MAX;
	unsigned char *tail, *r;
	int err;

	if (n < ZIP_END_SIZE)
		return file_fail(&a->file, EBADMSG, "not a zip file, or truncated");
	tail = malloc(n);
	if (!tail)
		return file_fail(&a->file, ENOMEM, "no memory");
	err = file_read(&a->file, tail, n, size - n);
	if (!err)
		err = find_end(a, tail, n, &at);
	if (!err) {
		r = tail + at;
		*d = (struct directory){ .entries = file_get16(r + 10),
					 .size = file_get32(r + 12),
					 .offset = file_get32(r + 16) };
		if (file_get16(r + 4) || file_get16(r + 6) ||
		    file_get16(r + 8) != file_get16(r + 10))
			err = file_fail(&a->file, EBADMSG,
					"an archive of several disks is not supported");
	}
	free(tail);
	if (err)
		return err;
	begin = size - n + at;
	err = read_zip64(a, begin, d);
	if (err < 0)
		return err;
	if (d->offset > begin || d->size > begin - d->offset || d->size > DIRECTORY_MAX ||
	    d->entries > d->size / ZIP_CENTRAL_SIZE)
		return file_fail(&a->file, EBADMSG,
				 "its directory is not at the offset of the end record");
	return 0;
}

/* Sizes and offset that do not fit 32 bits are in the zip64 extra field, in this order. */
static int read_extra(tensor_archive *a, const unsigned char *p, uint64_t n,
		      struct archive_entry *e)
{
	uint64_t *const wide[] = { &e->nbytes, &e->packed, &e->offset };

	while (n >= 4) {
		uint64_t size = file_get16(p + 2);
		const unsigned char *v = p + 4;

		if (size > n - 4)
			break;
		if (file_get16(p) != ZIP64_EXTRA) {
			p += 4 + size;
			n -= 4 + size;
			continue;
		}
		for (int i = 0; i < 3; i++) {
			if (*wide[i] != 0xffffffff)
				continue;
			if (size < 8)
				return file_fail(&a->file, EBADMSG, "a zip64 field is too short");
			*wide[i] = file_get64(v);
			v += 8;
			size -= 8;
		}
		return 0;
	}
	return 0;
}

static int check_member(tensor_archive *a, const struct archive_entry *e, unsigned flags)
{
	if (flags & ZIP_ENCRYPTED)
		return file_fail(&a->file, EOPNOTSUPP, "'%.100s' is encrypted", e->name);
	if (e->offset >= a->data_end || e->packed > a->data_end - e->offset)
		return file_fail(&a->file, EBADMSG, "'%.100s' is not before the directory",
				 e->name);
	if (e->method == ZIP_STORED && e->packed != e->nbytes)
		return file_fail(&a->file, EBADMSG, "'%.100s' is stored, but its two sizes differ",
				 e->name);
	if (e->method == ZIP_DEFLATED && e->nbytes / DEFLATE_RATIO > e->packed)
		return file_fail(&a->file, EBADMSG, "'%.100s' cannot inflate to %llu bytes",
				 e->name, (unsigned long long)e->nbytes);
	return 0;
}

/* Parse one entry of the directory. Its name is moved to the start of the row to make room for a
 * NUL. */
static int read_row(tensor_archive *a, unsigned char *p, uint64_t left, uint64_t *used)
{
	struct archive_entry *e;
	uint64_t name, extra;

	if (left < ZIP_CENTRAL_SIZE || file_get32(p) != ZIP_CENTRAL)
		return file_fail(&a->file, EBADMSG, "its directory cannot be read");
	name = file_get16(p + 28);
	extra = file_get16(p + 30);
	*used = ZIP_CENTRAL_SIZE + name + extra + file_get16(p + 32);
	if (*used > left)
		return file_fail(&a->file, EBADMSG, "its directory cannot be read");
	e = archive_add(a);
	if (!e)
		return -ENOMEM;
	e->method = file_get16(p + 10);
	e->crc = file_get32(p + 16);
	e->packed = file_get32(p + 20);
	e->nbytes = file_get32(p + 24);
	e->offset = file_get32(p + 42);
	if (read_extra(a, p + ZIP_CENTRAL_SIZE + name, extra, e) < 0)
		return -EBADMSG;
	if (!name || memchr(p + ZIP_CENTRAL_SIZE, '\0', name))
		return file_fail(&a->file, EBADMSG, "a name is empty or has a zero in it");
	/* Read everything else first: moving the name overwrites the row's numbers. */
	left = file_get16(p + 8);
	memmove(p, p + ZIP_CENTRAL_SIZE, name);
	p[name] = '\0';
	e->name = (const char *)p;
	return check_member(a, e, (unsigned)left);
}

static int by_offset(const void *x, const void *y, void *ctx)
{
	const struct archive_entry *entry = ctx, *a = &entry[*(const int64_t *)x],
				   *b = &entry[*(const int64_t *)y];

	return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Overlapping members would let a small file claim to be a large one. */
static int check_overlaps(tensor_archive *a)
{
	uint64_t end = 0;

	for (int64_t i = 0; i < a->n; i++)
		a->sorted[i] = i;
	if (a->n)
		qsort_r(a->sorted, (size_t)a->n, sizeof(*a->sorted), by_offset, a->entry);
	for (int64_t i = 0; i < a->n; i++) {
		const struct archive_entry *e = &a->entry[a->sorted[i]];

		if (e->offset < end)
			return file_fail(&a->file, EBADMSG, "'%.100s' overlaps another member",
					 e->name);
		end = e->offset + ZIP_LOCAL_SIZE + strlen(e->name) + e->packed;
	}
	if (end > a->data_end)
		return file_fail(&a->file, EBADMSG, "a member is not before the directory");
	return 0;
}

int zip_open(tensor_archive *a)
{
	struct directory d = { 0 };
	uint64_t at = 0;

	if (find_directory(a, &d) < 0)
		return -EBADMSG;
	a->data_end = d.offset;
	a->text = malloc(d.size + 1);
	a->sorted = malloc((d.entries + 1) * sizeof(*a->sorted));
	if (!a->text || !a->sorted)
		return file_fail(&a->file, ENOMEM, "no memory for its directory");
	if (file_read(&a->file, a->text, d.size, d.offset) < 0)
		return -EBADMSG;
	for (uint64_t i = 0; i < d.entries; i++) {
		uint64_t used = 0;
		int err = read_row(a, (unsigned char *)a->text + at, d.size - at, &used);

		if (err < 0)
			return err;
		at += used;
	}
	if (at != d.size)
		return file_fail(&a->file, EBADMSG, "its directory has more than its %llu members",
				 (unsigned long long)d.entries);
	return check_overlaps(a);
}

int zip_data(tensor_archive *a, const struct archive_entry *e, uint64_t *offset)
{
	unsigned char local[ZIP_LOCAL_SIZE];
	size_t n = strlen(e->name);
	char *name = NULL;
	int err;

	if (file_read(&a->file, local, sizeof(local), e->offset) < 0)
		return -EBADMSG;
	*offset = e->offset + ZIP_LOCAL_SIZE + n + file_get16(local + 28);
	if (file_get32(local) != ZIP_LOCAL || file_get16(local + 26) != n ||
	    file_get16(local + 8) != e->method || *offset > a->data_end ||
	    e->packed > a->data_end - *offset)
		return file_fail(&a->file, EBADMSG,
				 "'%.100s': its header and the directory disagree", e->name);
	name = malloc(n);
	if (!name)
		return file_fail(&a->file, ENOMEM, "no memory");
	err = file_read(&a->file, name, n, e->offset + ZIP_LOCAL_SIZE);
	if (!err && memcmp(name, e->name, n))
		err = file_fail(&a->file, EBADMSG, "'%.100s': its header has another name",
				e->name);
	free(name);
	return err;
}
