// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* NumPy's .npz format: a zip file of .npy members named after the arrays. */
#include "io/npy.h"
#include "io/zip.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- reading ---- */

/* Read the .npy header from the stream and compare its data size with the member's. */
static int read_header(tensor_archive *a, struct zip_stream *s, const struct archive_entry *e,
		       struct npy *npy)
{
	unsigned char prefix[NPY_PREFIX], *header;
	int64_t length;
	int err = zip_stream_read(s, prefix, sizeof(prefix));

	if (err < 0)
		return err;
	length = npy_header_length(&a->file, prefix);
	if (length < 0)
		return (int)length;
	if (length < NPY_PREFIX)
		return file_fail(&a->file, EBADMSG, "'%.100s' is truncated in its header", e->name);
	header = malloc((size_t)length);
	if (!header)
		return file_fail(&a->file, ENOMEM, "no memory");
	memcpy(header, prefix, sizeof(prefix));
	err = zip_stream_read(s, header + NPY_PREFIX, (uint64_t)length - NPY_PREFIX);
	if (!err)
		err = npy_parse(&a->file, header, length, npy);
	free(header);
	if (!err && npy->span.nbytes != e->nbytes - (uint64_t)length)
		err = file_fail(&a->file, EBADMSG,
				"'%.100s' has %llu bytes of data, its header says "
				"%llu",
				e->name, (unsigned long long)(e->nbytes - (uint64_t)length),
				(unsigned long long)npy->span.nbytes);
	return err;
}

static struct tensor_storage *mapped(tensor_archive *a, const struct archive_entry *e,
				     const struct npy *npy)
{
	struct file_span span = npy->span;
	uint64_t begin;

	if (e->method != ZIP_STORED) {
		file_fail(&a->file, EOPNOTSUPP, "'%.100s' cannot be mapped: it is compressed",
			  e->name);
		return NULL;
	}
	if (zip_data(a, e, &begin) < 0)
		return NULL;
	span.offset += begin;
	return file_storage(&a->file, &span);
}

static struct tensor_storage *inflated(tensor_archive *a, struct zip_stream *s,
				       const struct npy *npy)
{
	struct tensor_storage *storage = file_storage_new(&a->file, npy->span.nbytes);

	if (storage &&
	    (zip_stream_read(s, storage->data, npy->span.nbytes) < 0 || zip_stream_finish(s) < 0)) {
		storage_put(storage);
		return NULL;
	}
	if (storage)
		file_storage_finish(storage, &npy->span);
	return storage;
}

static tensor *load(tensor_archive *a, const struct archive_entry *e)
{
	struct tensor_storage *storage = NULL;
	struct archive_entry member = *e;
	struct zip_stream *s;
	struct npy npy;
	tensor *t = NULL;
	char *name;

	/* Messages use the full member name, which has the suffix that tensor_archive hides. */
	if (asprintf(&name, "%s%s", e->name, e->type) < 0)
		return tensor_fail_null(ENOMEM, "%s: no memory", a->file.op);
	member.name = name;
	s = zip_stream_open(a, &member);
	if (s && !read_header(a, s, &member, &npy))
		storage = a->file.options.map && npy.span.nbytes ? mapped(a, &member, &npy) :
								   inflated(a, s, &npy);
	if (s)
		zip_stream_close(s);
	if (storage)
		t = npy_tensor(&npy, storage);
	free(name);
	return t;
}

/* Keep only members that are arrays: strip .npy from their names and drop the others. */
static void keep_arrays(tensor_archive *a)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < a->n; i++) {
		struct archive_entry *e = &a->entry[i];
		size_t n = strlen(e->name);

		if (n < 5 || strcmp(e->name + n - 4, ".npy"))
			continue;
		((char *)e->name)[n - 4] = '\0';
		e->type = ".npy";
		a->entry[kept++] = *e;
	}
	a->n = kept;
}

TENSOR_EXPORT tensor_archive *tensor_open_npz(const char *path,
					      const struct tensor_load_options *options)
{
	tensor_archive *a = archive_open("open_npz", path, options);

	if (!a)
		return NULL;
	if (zip_open(a) < 0)
		goto failed;
	keep_arrays(a);
	free(a->sorted);
	a->sorted = NULL;
	if (archive_index(a) < 0)
		goto failed;
	a->load = load;
	return a;
failed:
	tensor_archive_close(a);
	return NULL;
}

/* ---- writing ---- */

static int write_member(struct file_out *f, const struct tensor_named *named, struct zip_member *m,
			bool deflated)
{
	char header[NPY_HEADER_ROOM];
	bool fortran = false;
	tensor *plain = file_contiguous(named->t, &fortran);
	int err;

	if (!plain)
		return -thread()->error.code;
	*m = (struct zip_member){ .name = named->name, .deflated = deflated };
	err = npy_format(f->op, plain, fortran, header);
	if (err > 0)
		err = zip_write(f, m, header, (uint64_t)err, plain->data,
				(uint64_t)plain->numel * itemsize(plain));
	tensor_put(plain);
	return err;
}

TENSOR_EXPORT int tensor_save_npz(const char *path, const struct tensor_named *tensors, int64_t n,
				  unsigned flags)
{
	int err = archive_check_names("save_npz", tensors, n);
	struct zip_member *members;
	struct file_out f;

	if (!err && flags & ~TENSOR_SAVE_COMPRESSED)
		err = tensor_fail(EINVAL, "save_npz: unknown flags 0x%x", flags);
	for (int64_t i = 0; i < n && !err; i++)
		if (strlen(tensors[i].name) > 65000)
			err = tensor_fail(EINVAL, "save_npz: the name of tensor %lld is too long",
					  (long long)i);
	if (err)
		return err;
	members = malloc(((size_t)n + 1) * sizeof(*members));
	if (!members)
		return tensor_fail(ENOMEM, "save_npz: no memory");
	err = file_create(&f, "save_npz", path);
	for (int64_t i = 0; i < n && !err; i++)
		err = write_member(&f, &tensors[i], &members[i], flags & TENSOR_SAVE_COMPRESSED);
	if (!err)
		zip_write_directory(&f, members, n);
	err = file_finish(&f, err);
	free(members);
	return err;
}
