/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The zip format (PKWARE's APPNOTE) as far as .npz needs it: the directory at the end with zip64,
 * members that are stored or deflated. zlib inflates; reading and writing the directory is ours,
 * because a member's bytes must be found in the file, to be read or mapped where they lie.
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
#define ZIP64_EXTRA	   1 /* the extra field with sizes that do not fit 32 bits */

#define ZIP_ENCRYPTED 1u /* flags */
#define ZIP_UTF8      0x800u

/* Reads the directory into entries, names as they are there. */
int zip_open(tensor_archive *a);
/* Where a member's bytes begin, after its own header has been compared with the directory. */
int zip_data(tensor_archive *a, const struct archive_entry *e, uint64_t *offset);

/* ---- a member that is inflated as it is read ---- */

struct zip_stream;

struct zip_stream *zip_stream_open(tensor_archive *a, const struct archive_entry *e);
void zip_stream_close(struct zip_stream *s);
/* Exactly n bytes, or an error. */
int zip_stream_read(struct zip_stream *s, void *to, uint64_t n);
/* After the last one: is the member at its end, and of the right checksum? */
int zip_stream_finish(struct zip_stream *s);

/* ---- writing ---- */

struct zip_member {
	const char *name; /* without .npy */
	uint64_t offset, nbytes, packed;
	uint32_t crc;
	bool deflated;
};

/* A member of two parts, the second of which begins on a boundary of 64 bytes when it is stored. */
int zip_write(struct file_out *f, struct zip_member *m, const void *head, uint64_t nhead,
	      const void *data, uint64_t ndata);
void zip_write_directory(struct file_out *f, const struct zip_member *m, int64_t n);

#endif
