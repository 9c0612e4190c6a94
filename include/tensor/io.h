/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tensors in files: NumPy's .npy and .npz, and safetensors. docs/files.md tells which dtypes each
 * of them has. Loading reads straight into the tensor's memory; saving replaces a file at once or
 * leaves it as it was.
 *
 * Files are not trusted: EBADMSG for one that breaks its format, EOPNOTSUPP for what is right but
 * has no place here, the errno of the system for what it refused. Nothing is left behind then.
 */
#ifndef TENSOR_IO_H
#define TENSOR_IO_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the data of a file comes into memory. */
enum tensor_map {
	TENSOR_MAP_NONE = 0, /* it is read */
	/*
	 * The tensor is the file's pages, read when they are touched and kept by the kernel.
	 * EOPNOTSUPP where they are not what a tensor needs: compressed, misaligned, swapped.
	 * Who shortens the file while a tensor is on it has the program killed by SIGBUS.
	 */
	TENSOR_MAP_READONLY, /* writing is an error of in-place operators */
	TENSOR_MAP_PRIVATE,  /* what is written never gets into the file */
};

/* NULL, or all zero: read, whatever the size. */
struct tensor_load_options {
	uint8_t map;	/* enum tensor_map */
	bool shareable; /* read into a buffer that can be sent, whatever its size */
	uint8_t reserved[6];
	uint64_t max_bytes; /* a tensor with more is refused with EFBIG; 0: no limit */
};

/* New tensors on the CPU, owned like an operator's result; NULL with the error set. */
tensor *tensor_load_npy(const char *path, const struct tensor_load_options *options);
/* Any strides, any device. Fortran's order is kept. */
int tensor_save_npy(const char *path, tensor *t);

/* ---- several tensors in a file ---- */

/* An open file of named tensors. It may be closed while tensors that came from it are in use, and
 * used by several threads. */
typedef struct tensor_archive tensor_archive;

tensor_archive *tensor_open_npz(const char *path, const struct tensor_load_options *options);
tensor_archive *tensor_open_safetensors(const char *path,
					const struct tensor_load_options *options);
void tensor_archive_close(tensor_archive *archive); /* NULL is ignored */

int64_t tensor_archive_count(const tensor_archive *archive);
/* In the order of the file; valid until the archive is closed, NULL past the end. */
const char *tensor_archive_name(const tensor_archive *archive, int64_t i);
/* -ENOENT, without an error record, when there is none of this name. */
int64_t tensor_archive_find(const tensor_archive *archive, const char *name);
/* Loads one. ENOENT. */
tensor *tensor_archive_get(tensor_archive *archive, const char *name);
tensor *tensor_archive_at(tensor_archive *archive, int64_t i);

/* A text that belongs to a safetensors file as a whole. */
struct tensor_metadata {
	const char *key, *value;
};
int64_t tensor_archive_metadata_count(const tensor_archive *archive);
/* NULL past the end; valid until the archive is closed. */
const struct tensor_metadata *tensor_archive_metadata(const tensor_archive *archive, int64_t i);

struct tensor_named {
	const char *name; /* UTF-8, not empty, each one once */
	tensor *t;
};

#define TENSOR_SAVE_COMPRESSED 1u /* deflate; such tensors cannot be mapped */

int tensor_save_npz(const char *path, const struct tensor_named *tensors, int64_t n,
		    unsigned flags);
int tensor_save_safetensors(const char *path, const struct tensor_named *tensors, int64_t n,
			    const struct tensor_metadata *metadata, int64_t nmetadata);

#ifdef __cplusplus
}
#endif
#endif
