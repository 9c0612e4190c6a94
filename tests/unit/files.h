/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers of the tests of files: a temporary folder, and files with given bytes. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H

#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/tensor-files-XXXXXX";

static inline int make_folder(void **state)
{
	return !mkdtemp(folder) || chdir(folder) < 0;
}

static inline int remove_folder(void **state)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	return rmdir(folder);
}

/* The number of files in the folder, unfinished temporary files included. */
static inline int files_here(void)
{
	DIR *d = opendir(".");
	int n = -2; /* . and .. */

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline void write_file(const char *path, const void *data, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), n);
	close(fd);
}

/* Reads the whole file; the caller frees the memory. */
static inline unsigned char *read_file(const char *path, size_t *n)
{
	struct stat st;
	unsigned char *data;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	*n = (size_t)st.st_size;
	data = malloc(*n + 1);
	assert_int_equal(read(fd, data, *n), *n);
	close(fd);
	return data;
}

/* Copies text and then bytes: the header and the data of a file. */
static inline size_t join(void *to, const char *text, size_t ntext, const void *data, size_t n)
{
	memcpy(to, text, ntext);
	memcpy((char *)to + ntext, data, n);
	return ntext + n;
}

#endif
