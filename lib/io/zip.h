/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The part of the zip format (PKWARE's APPNOTE) that .npz uses: the central directory with zip64,
 * stored and deflated members. zlib inflates. The directory is parsed here because the offset of a
 * member's bytes is needed to read or map them in place.
 */
#ifndef TENSOR_IO_ZIP_H
#define TENSOR_IO_ZIP_H

#include "io/archive.h"

#define ZIP_STORED   0
#define ZIP_DEFLATED 8

#define ZIP_LOCAL	   0x04034b50u
#define ZIP_CENTRAL	   0x02014b50u
#define ZIP_END		   0x06054b50u
#define ZIP64_END	   0x06064b50u
#define ZIP64_LOCATOR	   0x07064b50u
#define ZIP_LOCAL_SIZE	   30
#define ZIP_CENTRAL_SIZE   46
#define ZIP_END_SIZE	   22
#define ZIP64_END_SIZE	   56
#define ZIP64_LOCATOR_SIZE 20
#define ZIP64_EXTRA	   1 /* id of the extra field with 64-bit sizes */

#define ZIP_ENCRYPTED 1u /* bit in the flags */
#define ZIP_UTF8      0x800u

/* Read the directory into the archive's entries; names are not changed. */
int zip_open(tensor_archive *a);
/* Offset of a member's bytes; compares its local header with the directory first. */
int zip_data(tensor_archive *a, const struct archive_entry *e, uint64_t *offset);

/* ---- members inflated while they are read ---- */

struct zip_stream;

struct zip_stream *zip_stream_open(tensor_archive *a, const struct archive_entry *e);
void zip_stream_close(struct zip_stream *s);
/* Read exactly n bytes, or fail. */
int zip_stream_read(struct zip_stream *s, void *to, uint64_t n);
/* Check that the member ends here and that its checksum is right. */
int zip_stream_finish(struct zip_stream *s);

/* ---- writing ---- */

struct zip_member {
	const char *name; /* without .npy */
	uint64_t offset, nbytes, packed;
	uint32_t crc;
	bool deflated;
};

/* Write a member of two parts. If it is stored, the second part begins at a multiple of 64 bytes.
 */
int zip_write(struct file_out *f, struct zip_member *m, const void *head, uint64_t nhead,
	      const void *data, uint64_t ndata);
void zip_write_directory(struct file_out *f, const struct zip_member *m, int64_t n);

#endif
