/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A file of several named tensors: the common part of .npz and safetensors. */
#ifndef TENSOR_IO_ARCHIVE_H
#define TENSOR_IO_ARCHIVE_H

#include "io/file.h"

struct archive_entry {
	const char *name;	 /* points into the archive's text */
	uint64_t offset;	 /* safetensors: of the data; zip: of the local header */
	uint64_t nbytes, packed; /* size of the data; its size in the zip file */
	/* safetensors */
	const char *type; /* dtype as written in the file */
	uint8_t dtype, ndim;
	int64_t sizes[TENSOR_MAX_DIMS];
	/* zip */
	uint16_t method;
	uint32_t crc;
};

struct tensor_archive {
	struct file file;
	tensor *(*load)(tensor_archive *a, const struct archive_entry *e);
	char *text; /* headers, with the names in them */
	struct archive_entry *entry;
	int64_t n, capacity;
	int64_t *sorted; /* indices of the entries, sorted by name */
	struct tensor_metadata *metadata;
	int64_t nmetadata, metadata_capacity;
	uint64_t data_end; /* zip: offset of the central directory */
};

/* Open the file. NULL with the error set. */
tensor_archive *archive_open(const char *op, const char *path,
			     const struct tensor_load_options *options);
/* Append a zeroed entry. NULL with the error set. */
struct archive_entry *archive_add(tensor_archive *a);
struct tensor_metadata *archive_add_metadata(tensor_archive *a);
/* Sort the names after the last entry is added. EBADMSG for a duplicate name. */
int archive_index(tensor_archive *a);

/* Check the names given to a writer. 0, or EINVAL for a name that is empty, not UTF-8 or a
 * duplicate. */
int archive_check_names(const char *op, const struct tensor_named *tensors, int64_t n);

#endif
