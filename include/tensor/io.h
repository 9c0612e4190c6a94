/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tensors in files: NumPy's .npy and .npz, and safetensors. docs/files.md lists the dtypes of each.
 * Loading reads directly into the tensor's memory. Saving replaces the file atomically; if it
 * fails, the old file is unchanged.
 *
 * Files are not trusted. Errors: EBADMSG for a file that violates its format, EOPNOTSUPP for a
 * valid one with an unsupported feature, or the errno of a system call. A failed call leaves
 * nothing behind.
 */
#ifndef TENSOR_IO_H
#define TENSOR_IO_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ways to load a file's data. */
enum tensor_map {
	TENSOR_MAP_NONE = 0, /* read it */
	/*
	 * Map the file: pages are read when they are accessed and are shared through the page
	 * cache. EOPNOTSUPP if the data cannot be used in place: compressed, misaligned, or in the
	 * other byte order. If another program truncates the file while a tensor maps it, an access
	 * raises SIGBUS.
	 */
	TENSOR_MAP_READONLY, /* in-place operators fail */
	TENSOR_MAP_PRIVATE,  /* writes are never stored in the file */
};

/* NULL or all zero: read, without a limit on size. */
struct tensor_load_options {
	uint8_t map;	/* enum tensor_map */
	bool shareable; /* read into a buffer that can be sent, whatever its size */
	uint8_t reserved[6];
	uint64_t max_bytes; /* EFBIG for a larger tensor; 0: no limit */
};

/* Load a file as a new tensor on the CPU, owned like an operator's result. NULL with the error set.
 */
tensor *tensor_load_npy(const char *path, const struct tensor_load_options *options);
/* Save a tensor of any strides and device. Column-major order is kept. 0 or -errno. */
int tensor_save_npy(const char *path, tensor *t);

/* ---- files of several tensors ---- */

/* An open file of named tensors. Tensors loaded from it stay valid after it is closed. May be used
 * by several threads. */
typedef struct tensor_archive tensor_archive;

/* Open a file and read its list of tensors, not their data. Owned by the caller; NULL with the
 * error set. */
tensor_archive *tensor_open_npz(const char *path, const struct tensor_load_options *options);
tensor_archive *tensor_open_safetensors(const char *path,
					const struct tensor_load_options *options);
void tensor_archive_close(tensor_archive *archive); /* NULL is ignored */

/* Number of tensors; 0 for NULL. */
int64_t tensor_archive_count(const tensor_archive *archive);
/* The i-th name in the order of the file, NULL past the end. Valid until the archive is closed. */
const char *tensor_archive_name(const tensor_archive *archive, int64_t i);
/* Index of a name; -ENOENT, without an error record, if there is none. */
int64_t tensor_archive_find(const tensor_archive *archive, const char *name);
/* Load a tensor by name or index: new, owned like an operator's result. NULL with the error set;
 * ENOENT for an unknown name or index. */
tensor *tensor_archive_get(tensor_archive *archive, const char *name);
tensor *tensor_archive_at(tensor_archive *archive, int64_t i);

/* A key and value of a safetensors file's __metadata__. */
struct tensor_metadata {
	const char *key, *value;
};
/* Number of entries; 0 for other formats. */
int64_t tensor_archive_metadata_count(const tensor_archive *archive);
/* The i-th entry, NULL past the end. Valid until the archive is closed. */
const struct tensor_metadata *tensor_archive_metadata(const tensor_archive *archive, int64_t i);

struct tensor_named {
	const char *name; /* UTF-8, not empty, unique */
	tensor *t;
};

#define TENSOR_SAVE_COMPRESSED 1u /* deflate; compressed tensors cannot be mapped */

/* Save n tensors of any strides and device. 0 or -errno: EINVAL for an invalid or duplicate name,
 * EOPNOTSUPP for a dtype or layout that the format does not have. */
int tensor_save_npz(const char *path, const struct tensor_named *tensors, int64_t n,
		    unsigned flags);
int tensor_save_safetensors(const char *path, const struct tensor_named *tensors, int64_t n,
			    const struct tensor_metadata *metadata, int64_t nmetadata);

#ifdef __cplusplus
}
#endif
#endif
