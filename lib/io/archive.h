/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A file of several named tensors: what .npz and safetensors have in common. */
#ifndef TENSOR_IO_ARCHIVE_H
#define TENSOR_IO_ARCHIVE_H

#include "io/file.h"

struct archive_entry {
	const char *name;	 /* in the archive's text */
	uint64_t offset;	 /* safetensors: of the data. zip: of the local header */
	uint64_t nbytes, packed; /* of the data; what a zip has of it */
	/* safetensors */
	const char *type; /* as the file says it */
	uint8_t dtype, ndim;
	int64_t sizes[TENSOR_MAX_DIMS];
	/* zip */
	uint16_t method;
	uint32_t crc;
};

struct tensor_archive {
	struct file file;
	tensor *(*load)(tensor_archive *a, const struct archive_entry *e);
	char *text; /* headers, and the names in them */
	struct archive_entry *entry;
	int64_t n, capacity;
	int64_t *sorted; /* indices in the order of the names */
	struct tensor_metadata *metadata;
	int64_t nmetadata, metadata_capacity;
	uint64_t data_end; /* zip: where its directory begins */
};

/* Opens the file; NULL with the error set. */
tensor_archive *archive_open(const char *op, const char *path,
			     const struct tensor_load_options *options);
/* Zeroed entries, one more; NULL with the error set. */
struct archive_entry *archive_add(tensor_archive *a);
struct tensor_metadata *archive_add_metadata(tensor_archive *a);
/* When all are there: sorts the names. EBADMSG for one that is there twice. */
int archive_index(tensor_archive *a);

/* For writers. 0, or EINVAL for a name that is empty, no UTF-8, or there twice. */
int archive_check_names(const char *op, const struct tensor_named *tensors, int64_t n);

/* Is it UTF-8, without zeros? */
bool text_is_utf8(const char *s, size_t n);

#endif
