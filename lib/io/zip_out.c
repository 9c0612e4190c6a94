// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Write a zip file: members one after another, whose local headers are completed when their sizes
 * are known; then the central directory. Numbers above 32 bits use zip64; every local header has
 * space for its extra field.
 */
#include "io/zip.h"

#include <stdlib.h>
#include <zlib.h>

#define CHUNK	  ((size_t)1 << 16)
#define WIDE	  0xffffffffu /* the value is in the zip64 field */
#define SUFFIX	  ".npy"
#define PAD_ID	  0x4e54 /* id of an extra field without content that aligns the data */
#define DATE_1980 0x21	 /* 1 January 1980: equal tensors give equal files */

static size_t member_name(const struct zip_member *m)
{
	return strlen(m->name) + strlen(SUFFIX);
}

static unsigned flags_of(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name >= 0x80)
			return ZIP_UTF8;
	return 0;
}

/* Write version, flags, method, time and date, which both headers contain. */
static unsigned char *put_common(unsigned char *p, const struct zip_member *m)
{
	p = file_put(p, 45, 2);
	p = file_put(p, flags_of(m->name), 2);
	p = file_put(p, m->deflated ? ZIP_DEFLATED : ZIP_STORED, 2);
	p = file_put(p, 0, 2);
	p = file_put(p, DATE_1980, 2);
	return file_put(p, m->crc, 4);
}

/* Write the local header with an extra field for both sizes and, if pad > 0, a padding field of
 * `pad` bytes in all. */
static void write_local(struct file_out *f, const struct zip_member *m, unsigned pad)
{
	unsigned char head[ZIP_LOCAL_SIZE], extra[20 + 4 + 64] = { 0 }, *p;

	p = file_put(head, ZIP_LOCAL, 4);
	p = put_common(p, m);
	p = file_put(p, WIDE, 4);
	p = file_put(p, WIDE, 4);
	p = file_put(p, member_name(m), 2);
	file_put(p, 20 + pad, 2);
	p = file_put(extra, ZIP64_EXTRA, 2);
	p = file_put(p, 16, 2);
	p = file_put(p, m->nbytes, 8);
	p = file_put(p, m->packed, 8);
	if (pad) {
		p = file_put(p, PAD_ID, 2);
		file_put(p, pad - 4, 2);
	}
	file_write(f, head, sizeof(head));
	file_write(f, m->name, strlen(m->name));
	file_write(f, SUFFIX, strlen(SUFFIX));
	file_write(f, extra, 20 + pad);
}

static int deflate_part(struct file_out *f, z_stream *z, unsigned char *chunk, const void *data,
			uint64_t n, int flush)
{
	const unsigned char *p = data;
	int code;

	do {
		uInt some = n < 1 << 30 ? (uInt)n : 1 << 30;

		z->next_in = (unsigned char *)p;
		z->avail_in = some;
		p += some;
		n -= some;
		do {
			z->next_out = chunk;
			z->avail_out = CHUNK;
			code = deflate(z, n ? Z_NO_FLUSH : flush);
			file_write(f, chunk, CHUNK - z->avail_out);
		} while (code == Z_OK && !z->avail_out);
	} while (n);
	return code == Z_STREAM_ERROR ? -EINVAL : 0;
}

static int write_deflated(struct file_out *f, const void *head, uint64_t nhead, const void *data,
			  uint64_t ndata)
{
	unsigned char *chunk = malloc(CHUNK);
	z_stream z = { 0 };
	int err = 0;

	if (!chunk || deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		err = -ENOMEM;
	if (!err)
		err = deflate_part(f, &z, chunk, head, nhead, Z_NO_FLUSH);
	if (!err)
		err = deflate_part(f, &z, chunk, data, ndata, Z_FINISH);
	deflateEnd(&z);
	free(chunk);
	return err < 0 ? tensor_fail(-err, "%s: %s: cannot deflate", f->op, SHORT_PATH(f->path)) :
			 0;
}

static uint32_t checksum(uint32_t crc, const unsigned char *p, uint64_t n)
{
	return (uint32_t)crc32_z(crc, p, n);
}

int zip_write(struct file_out *f, struct zip_member *m, const void *head, uint64_t nhead,
	      const void *data, uint64_t ndata)
{
	uint64_t header = ZIP_LOCAL_SIZE + member_name(m) + 20, begin;
	unsigned pad = 0;
	int err = 0;

	m->offset = f->offset;
	m->nbytes = m->packed = nhead + ndata;
	m->crc = checksum(checksum(0, head, nhead), data, ndata);
	if (!m->deflated) {
		pad = (unsigned)(-(m->offset + header + nhead) % 64);
		pad = pad && pad < 4 ? pad + 64 : pad;
	}
	write_local(f, m, pad);
	begin = f->offset;
	if (m->deflated) {
		unsigned char sizes[8];

		err = write_deflated(f, head, nhead, data, ndata);
		m->packed = f->offset - begin;
		file_put(sizes, m->packed, 8);
		file_rewrite(f, sizes, 8, begin - 8);
	} else {
		file_write(f, head, nhead);
		file_write(f, data, ndata);
	}
	return err;
}

static void write_row(struct file_out *f, const struct zip_member *m)
{
	unsigned char row[ZIP_CENTRAL_SIZE], extra[4 + 24], *p, *e = extra + 4;
	const uint64_t values[] = { m->nbytes, m->packed, m->offset };
	uint32_t narrow[3];

	for (int i = 0; i < 3; i++) {
		bool wide = values[i] >= WIDE;

		narrow[i] = wide ? WIDE : (uint32_t)values[i];
		if (wide)
			e = file_put(e, values[i], 8);
	}
	p = file_put(extra, ZIP64_EXTRA, 2);
	file_put(p, (uint64_t)(e - extra - 4), 2);
	p = file_put(row, ZIP_CENTRAL, 4);
	p = file_put(p, 45 | 3 << 8, 2); /* made by version 4.5 on Unix */
	p = put_common(p, m);
	p = file_put(p, narrow[1], 4);
	p = file_put(p, narrow[0], 4);
	p = file_put(p, member_name(m), 2);
	p = file_put(p, e - extra > 4 ? (uint64_t)(e - extra) : 0, 2);
	p = file_put(p, 0, 2 + 2 + 2); /* comment, disk, internal attributes */
	p = file_put(p, 0600u << 16, 4);
	file_put(p, narrow[2], 4);
	file_write(f, row, sizeof(row));
	file_write(f, m->name, strlen(m->name));
	file_write(f, SUFFIX, strlen(SUFFIX));
	if (e - extra > 4)
		file_write(f, extra, (uint64_t)(e - extra));
}

static void write_zip64_end(struct file_out *f, uint64_t n, uint64_t begin, uint64_t size)
{
	unsigned char record[ZIP64_END_SIZE + ZIP64_LOCATOR_SIZE], *p;

	p = file_put(record, ZIP64_END, 4);
	p = file_put(p, ZIP64_END_SIZE - 12, 8);
	p = file_put(p, 45, 2);
	p = file_put(p, 45, 2);
	p = file_put(p, 0, 8); /* disks */
	p = file_put(p, n, 8);
	p = file_put(p, n, 8);
	p = file_put(p, size, 8);
	p = file_put(p, begin, 8);
	p = file_put(p, ZIP64_LOCATOR, 4);
	p = file_put(p, 0, 4);
	p = file_put(p, begin + size, 8);
	file_put(p, 1, 4);
	file_write(f, record, sizeof(record));
}

void zip_write_directory(struct file_out *f, const struct zip_member *m, int64_t n)
{
	unsigned char end[ZIP_END_SIZE], *p;
	uint64_t begin = f->offset, size;
	bool many = n >= 0xffff;

	for (int64_t i = 0; i < n; i++)
		write_row(f, &m[i]);
	size = f->offset - begin;
	if (many || begin >= WIDE || size >= WIDE)
		write_zip64_end(f, (uint64_t)n, begin, size);
	p = file_put(end, ZIP_END, 4);
	p = file_put(p, 0, 4);
	p = file_put(p, many ? 0xffff : (uint64_t)n, 2);
	p = file_put(p, many ? 0xffff : (uint64_t)n, 2);
	p = file_put(p, size >= WIDE ? WIDE : size, 4);
	p = file_put(p, begin >= WIDE ? WIDE : begin, 4);
	file_put(p, 0, 2);
	file_write(f, end, sizeof(end));
}
