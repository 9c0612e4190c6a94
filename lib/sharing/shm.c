// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "sharing/shm.h"

#include "base/file_limit.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int reserve(int fd, size_t bytes)
{
	struct file_limit before = file_limit_begin();
	int err = fallocate(fd, 0, 0, (off_t)bytes);

	file_limit_end(&before, err < 0);
	return err;
}

int shm_make(const char *name, size_t bytes, int *fd)
{
	int err;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (reserve(*fd, bytes) == 0 && fcntl(*fd, F_ADD_SEALS, SEALS) == 0)
		return 0;
	err = errno == ENOSPC ? -ENOMEM : -errno;
	close(*fd);
	*fd = -1;
	return err;
}

int64_t shm_size(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS || fstatfs(fd, &fs) < 0 ||
	    fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0)
		return -EBADMSG;
	return st.st_size;
}

int shm_map(int fd, size_t bytes, void **to)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*to = p;
	return 0;
}
