// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Read a stored or deflated member from start to end and check its checksum. */
#include "io/zip.h"

#include <stdlib.h>
#include <zlib.h>

#define CHUNK ((size_t)1 << 16)

struct zip_stream {
	tensor_archive *archive;
	const struct archive_entry *entry;
	uint64_t offset, left; /* of the compressed bytes */
	uint64_t produced;
	uint32_t crc;
	z_stream z;
	bool inflating;
	unsigned char chunk[CHUNK];
};

struct zip_stream *zip_stream_open(tensor_archive *a, const struct archive_entry *e)
{
	struct zip_stream *s = calloc(1, sizeof(*s));

	if (!s) {
		file_fail(&a->file, ENOMEM, "no memory");
		return NULL;
	}
	s->archive = a;
	s->entry = e;
	s->left = e->packed;
	if (e->method != ZIP_STORED && e->method != ZIP_DEFLATED) {
		file_fail(&a->file, EOPNOTSUPP,
			  "'%.100s' has the unsupported compression method %d", e->name, e->method);
		goto failed;
	}
	if (zip_data(a, e, &s->offset) < 0)
		goto failed;
	/* Negative: raw deflate, without zlib's header. */
	if (e->method == ZIP_DEFLATED && inflateInit2(&s->z, -MAX_WBITS) != Z_OK) {
		file_fail(&a->file, ENOMEM, "no memory to inflate");
		goto failed;
	}
	s->inflating = e->method == ZIP_DEFLATED;
	return s;
failed:
	free(s);
	return NULL;
}

void zip_stream_close(struct zip_stream *s)
{
	if (s->inflating)
		inflateEnd(&s->z);
	free(s);
}

static int fill(struct zip_stream *s)
{
	size_t n = s->left < CHUNK ? (size_t)s->left : CHUNK;

	if (file_read(&s->archive->file, s->chunk, n, s->offset) < 0)
		return -EBADMSG;
	s->offset += n;
	s->left -= n;
	s->z.next_in = s->chunk;
	s->z.avail_in = (uInt)n;
	return 0;
}

static int corrupt(struct zip_stream *s)
{
	return file_fail(&s->archive->file, EBADMSG, "'%.100s' is corrupt", s->entry->name);
}

/* Inflate n bytes; uInt is zlib's limit for one call. */
static int inflate_some(struct zip_stream *s, unsigned char *to, uInt n)
{
	s->z.next_out = to;
	s->z.avail_out = n;
	while (s->z.avail_out) {
		int code;

		if (!s->z.avail_in && fill(s) < 0)
			return -EBADMSG;
		code = inflate(&s->z, Z_NO_FLUSH);
		if (code == Z_MEM_ERROR)
			return file_fail(&s->archive->file, ENOMEM, "no memory to inflate");
		/* Z_STREAM_END is valid only if the output is complete. */
		if (code == Z_STREAM_END ? s->z.avail_out : code != Z_OK)
			return corrupt(s);
	}
	return 0;
}

int zip_stream_read(struct zip_stream *s, void *to, uint64_t n)
{
	unsigned char *p = to;

	if (n > s->entry->nbytes - s->produced)
		return file_fail(&s->archive->file, EBADMSG, "'%.100s' is truncated",
				 s->entry->name);
	while (n) {
		uInt some = n < 1 << 20 ? (uInt)n : 1 << 20;
		int err;

		if (s->inflating) {
			err = inflate_some(s, p, some);
		} else {
			err = file_read(&s->archive->file, p, some, s->offset);
			s->offset += some;
			s->left -= some;
		}
		if (err < 0)
			return err;
		s->crc = (uint32_t)crc32(s->crc, p, some);
		s->produced += some;
		p += some;
		n -= some;
	}
	return 0;
}

int zip_stream_finish(struct zip_stream *s)
{
	unsigned char more;

	/* The end marker of the deflated data may not have been read yet. */
	while (s->inflating) {
		int code;

		s->z.next_out = &more;
		s->z.avail_out = 1;
		if (!s->z.avail_in && s->left && fill(s) < 0)
			return -EBADMSG;
		code = inflate(&s->z, Z_NO_FLUSH);
		if (code == Z_STREAM_END && s->z.avail_out)
			break;
		if (code != Z_OK || !s->z.avail_out || (!s->z.avail_in && !s->left))
			return corrupt(s);
	}
	if (s->produced != s->entry->nbytes || s->left || (s->inflating && s->z.avail_in))
		return corrupt(s);
	if (s->crc != s->entry->crc)
		return file_fail(&s->archive->file, EBADMSG, "'%.100s' has the wrong checksum",
				 s->entry->name);
	return 0;
}
