// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Saving to an existing file: it is replaced completely or not at all, and keeps its mode. */
#include "files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>

static mode_t mode_at_birth;

/*
 * Records the state at the time of fchmod(), which the library calls after creating the new file.
 */
int fchmod(int fd, mode_t mode)
{
	static int (*real)(int, mode_t);
	struct stat st;

	if (!real)
		real = (int (*)(int, mode_t))dlsym(RTLD_NEXT, "fchmod");
	assert_int_equal(fstat(fd, &st), 0);
	mode_at_birth = st.st_mode & 0777;
	return real(fd, mode);
}

static int writes_of_nothing;

/* Simulates a file system whose pwrite() writes no byte and sets no error. */
ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
	static ssize_t (*real)(int, const void *, size_t, off_t);

	if (!real)
		real = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
	if (!writes_of_nothing)
		return real(fd, data, n, offset);
	if (++writes_of_nothing > 1000)
		_exit(1);
	return 0;
}

static void a_failed_save_leaves_the_old_file(void **state)
{
	struct rlimit before, small = { 4096, RLIM_INFINITY };
	int files;

	tensor_scope {
		tensor *large = ok(tensor_zeros(TENSOR_SHAPE(1 << 16), F32));
		struct tensor_named named[] = { { "a", large }, { "b", large } };

		assert_done(tensor_save_npy("old", iota(7, TENSOR_INTS(2))));
		files = files_here();
		assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
		small.rlim_max = before.rlim_max;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		assert_fails(tensor_save_npy("old", large), EFBIG, "old");
		assert_fails(tensor_save_npz("old", named, 2, 0), EFBIG, "old");
		assert_fails(tensor_save_safetensors("old", named, 2, NULL, 0), EFBIG, "old");
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_fails(tensor_save_npy("old",
					     ok(tensor_zeros(TENSOR_SHAPE(2), OF(TENSOR_BF16)))),
			     EOPNOTSUPP, "bf16");
		assert_values(tensor_load_npy("old", NULL), 0, 7, 8);
		assert_int_equal(files_here(), files);
	}
}

static void save_keeps_a_link_and_the_mode(void **state)
{
	struct stat st;

	tensor_scope {
		assert_done(tensor_save_npy("real.npy", iota(0, TENSOR_INTS(1))));
		assert_int_equal(chmod("real.npy", 0600), 0);
		assert_int_equal(symlink("real.npy", "link.npy"), 0);
		assert_done(tensor_save_npy("link.npy", iota(5, TENSOR_INTS(1))));
		assert_int_equal(lstat("link.npy", &st), 0);
		assert_true(S_ISLNK(st.st_mode));
		assert_values(tensor_load_npy("real.npy", NULL), 0, 5);
		assert_values(tensor_load_npy("link.npy", NULL), 0, 5);
		assert_int_equal(stat("real.npy", &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
}

/* A user who may not read the old file cannot open the new one before it has its mode. */
static void new_file_is_never_open_to_more(void **state)
{
	static const mode_t modes[] = { 0600, 0400, 0640, 0 };
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		write_file("secret.npy", "x", 1);
		assert_int_equal(chmod("secret.npy", modes[i]), 0);
		mode_at_birth = 07777;
		tensor_scope
			assert_done(tensor_save_npy("secret.npy", iota(0, TENSOR_INTS(1))));
		assert_int_equal(mode_at_birth & ~modes[i], 0);
		assert_int_equal(stat("secret.npy", &st), 0);
		assert_int_equal(st.st_mode & 0777, modes[i]);
		assert_int_equal(unlink("secret.npy"), 0);
	}
}

/*
 * Names of 1 to 255 bytes, the limit; truncation for the temporary name splits some in a UTF-8
 * character.
 */
static void name_of_any_length_is_saved_to(void **state)
{
	char name[300];

	for (size_t n = 190; n <= 255; n++) {
		memset(name, 'x', n);
		memcpy(name + 199 - n % 4, "\xf0\x9f\x98\x80", n > 203 ? 4 : 0);
		name[n] = '\0';
		tensor_scope {
			assert_done(tensor_save_npy(name, iota(n, TENSOR_INTS(2))));
			assert_values(tensor_load_npy(name, NULL), 0, n, n + 1);
		}
		assert_int_equal(unlink(name), 0);
	}
	memset(name, 'x', 256);
	name[256] = '\0';
	tensor_scope
		assert_fails(tensor_save_npy(name, iota(0, TENSOR_INTS(2))), ENAMETOOLONG, "xxx");
}

/* Every path that open() accepts, with a name of any length at its end. */
static void path_of_any_length_is_saved_to(void **state)
{
	char path[PATH_MAX + 1];

	for (size_t n = 4060; n <= PATH_MAX; n++) {
		memset(path, '/', n);
		path[0] = '.';
		memcpy(path + n - 3, "end", 4);
		if (n == PATH_MAX) {
			assert_fails(tensor_save_npy(path, iota(0, TENSOR_INTS(1))), ENAMETOOLONG,
				     "save_npy");
			break;
		}
		tensor_scope {
			assert_done(tensor_save_npy(path, iota((double)n, TENSOR_INTS(1))));
			assert_values(tensor_load_npy(path, NULL), 0, (double)n);
		}
		assert_int_equal(unlink("end"), 0);
	}
}

/* As fopen(path, "w"): creates the file to which the last link points. */
static void dangling_link_creates_its_target(void **state)
{
	struct stat st;

	assert_int_equal(mkdir("folder", 0755), 0);
	assert_int_equal(symlink("folder/second", "first"), 0);
	assert_int_equal(symlink("third", "folder/second"), 0);
	tensor_scope {
		assert_done(tensor_save_npy("first", iota(3, TENSOR_INTS(1))));
		assert_values(tensor_load_npy("folder/third", NULL), 0, 3);
		assert_done(tensor_save_npy("first", iota(4, TENSOR_INTS(1))));
		assert_values(tensor_load_npy("folder/third", NULL), 0, 4);
	}
	assert_int_equal(lstat("first", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat("folder/second", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(symlink("nowhere/file", "nowhere"), 0);
	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(1));

		assert_fails(tensor_save_npy("loop", t), ELOOP, "loop");
		assert_fails(tensor_save_npy("nowhere", t), ELOOP, "nowhere");
		assert_fails(tensor_save_npy("folder/none/x", t), ENOENT, "none");
		assert_fails(tensor_save_npy("folder", t), EINVAL, "not a regular file");
		assert_fails(tensor_save_npy("folder/none/", t), ENOENT, "none");
		assert_fails(tensor_save_npy("", t), ENOENT, "save_npy");
	}
	assert_int_equal(unlink("folder/second"), 0);
	assert_int_equal(unlink("folder/third"), 0);
	assert_int_equal(rmdir("folder"), 0);
}

/* The name in /proc of a deleted file is not created. */
static void deleted_file_is_not_replaced(void **state)
{
	char path[64];
	int files, fd = open("gone", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(unlink("gone"), 0);
	files = files_here();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	tensor_scope
		assert_fails(tensor_save_npy(path, iota(0, TENSOR_INTS(1))), ENOENT, path);
	assert_int_equal(files_here(), files);
	close(fd);
}

static void write_of_zero_bytes_is_an_error(void **state)
{
	writes_of_nothing = 1;
	tensor_scope
		assert_fails(tensor_save_npy("nothing", iota(0, TENSOR_INTS(1))), EIO, "nothing");
	writes_of_nothing = 0;
	assert_int_not_equal(access("nothing", F_OK), 0);
}

/*
 * SIGXFSZ would end the process; the library blocks it, and a SIGXFSZ that was pending before stays
 * pending.
 */
static void file_size_limit_is_an_error_and_no_signal(void **state)
{
	struct rlimit before, small = { 4096, RLIM_INFINITY };
	sigset_t signal, pending;
	tensor *large = ok(tensor_zeros(TENSOR_SHAPE(1 << 16), F32));

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (int mine = 0; mine < 2; mine++) {
		sigemptyset(&signal);
		sigaddset(&signal, SIGXFSZ);
		if (mine) {
			assert_int_equal(sigprocmask(SIG_BLOCK, &signal, NULL), 0);
			raise(SIGXFSZ);
		}
		assert_fails(tensor_save_npy("limit", large), EFBIG, "limit");
		assert_int_equal(sigpending(&pending), 0);
		assert_int_equal(sigismember(&pending, SIGXFSZ), mine);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(sigwaitinfo(&signal, NULL), SIGXFSZ);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &signal, NULL), 0);
	tensor_release(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_save_leaves_the_old_file),
		cmocka_unit_test(save_keeps_a_link_and_the_mode),
		cmocka_unit_test(new_file_is_never_open_to_more),
		cmocka_unit_test(name_of_any_length_is_saved_to),
		cmocka_unit_test(path_of_any_length_is_saved_to),
		cmocka_unit_test(dangling_link_creates_its_target),
		cmocka_unit_test(deleted_file_is_not_replaced),
		cmocka_unit_test(write_of_zero_bytes_is_an_error),
		cmocka_unit_test(file_size_limit_is_an_error_and_no_signal),
	};

	return cmocka_run_group_tests_name("io_save", tests, make_folder, remove_folder);
}
