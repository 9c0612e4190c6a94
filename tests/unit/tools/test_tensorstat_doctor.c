// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tensorstat doctor on machines that consist of recorded files. */
#include "tensorstat.h"

#include <sys/stat.h>

static char root[64];

static void record(const char *path, const void *text, size_t n)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fwrite(text, 1, n, f);
	fclose(f);
}

#define RECORD(path, text) record(path, text, sizeof(text) - 1)

static int machine_new(void **state)
{
	strcpy(root, "/tmp/machine.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	setenv("TENSORSTAT_ROOT", root, 1);
	RECORD("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
	RECORD("/proc/buddyinfo", "Node 0, zone   Normal 1 2 3 4 5 6 7 8 9 100 50\n");
	RECORD("/proc/meminfo", "MemTotal:       8388608 kB\n");
	RECORD("/proc/self/cgroup", "0::/user.slice/me\n");
	return 0;
}

static int machine_drop(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", root);
	unsetenv("TENSORSTAT_ROOT");
	return system(command);
}

static void module_loaded(const char *limit)
{
	RECORD("/sys/module/tensor/version", "0.1.0\n");
	record("/sys/module/tensor/parameters/limit_bytes", limit, strlen(limit));
}

static void doctor_misses_the_module(void **state)
{
	assert_int_equal(tensorstat_run("doctor"), 9);
	assert_says("FAIL  module     tensor is not loaded and not built for");
	assert_says("fix: apt install tensor-dkms");
	assert_says("no memory limit of a cgroup");
	assert_says("no udev rule");
	assert_int_equal(tensorstat_run("-o doctor"), 9);
	assert_silent_about("fix:");
}

static void doctor_warns_about_secure_boot(void **state)
{
	RECORD("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
	       "\x06\0\0\0\x01");
	assert_int_equal(tensorstat_run("doctor"), 9);
	assert_says("warn  signature  Secure Boot or lockdown is on");
	assert_says("mokutil --import");
}

static void doctor_compares_versions(void **state)
{
	module_loaded("0\n");
	assert_int_equal(tensorstat_run("doctor"), 1); /* the device node does not exist */
	assert_says("ok    version    module and tensorstat are 0.1.0");
	assert_says("FAIL  node");
	assert_says("half of the memory, which is 8GiB");
	RECORD("/sys/module/tensor/version", "0.0.9\n");
	assert_int_equal(tensorstat_run("doctor"), 1);
	assert_says("warn  version    the module is 0.0.9");
}

static void doctor_looks_at_limits(void **state)
{
	module_loaded("8589934592\n");
	RECORD("/sys/fs/cgroup/user.slice/memory.max", "16777216\n");
	RECORD("/sys/fs/cgroup/user.slice/me/memory.max", "max\n");
	tensorstat_run("doctor");
	assert_says("warn  limit      limit_bytes is 8GiB of 8GiB");
	assert_says("device set limit_bytes 4294967296");
	assert_says("warn  cgroup     this session's cgroup may have 16MiB");
	assert_says("/sys/fs/cgroup/user.slice/memory.max is the limit");
}

static void doctor_looks_at_huge_pages(void **state)
{
	tensorstat_run("doctor");
	assert_says("ok    hugepages");
	RECORD("/proc/buddyinfo", "Node 0, zone   Normal 900 90 9 9 9 9 9 9 9 3 1\n");
	tensorstat_run("doctor");
	assert_says("warn  hugepages  5 free blocks of 2 MiB");
	assert_says("compact_memory");
}

static void doctor_finds_the_rule(void **state)
{
	RECORD("/usr/lib/udev/rules.d/60-tensor.rules", "\n");
	tensorstat_run("doctor");
	assert_says("ok    udev       /usr/lib/udev/rules.d/60-tensor.rules");
	assert_int_equal(tensorstat_run("-j doctor"), 9);
	assert_says(
		"{\"check\":\"module\",\"verdict\":\"fail\",\"finding\":\"tensor is not loaded");
	assert_says("\"fix\":null,\"mend\":null}");
	assert_int_equal(tensorstat_run("doctor who"), 2);
}

/* ---- limits ---- */

/* Records a process with so many descriptors of memfd buffers and one of another file. */
static void record_process(const char *pid, const char *comm, int tensors, const char *limits)
{
	char path[128], full[256];

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	record(path, comm, strlen(comm));
	snprintf(path, sizeof(path), "/proc/%s/limits", pid);
	record(path, limits, strlen(limits));
	for (int fd = 0; fd <= tensors; fd++) {
		snprintf(full, sizeof(full), "%s/proc/%s/fd", root, pid);
		mkdir(full, 0755);
		snprintf(full, sizeof(full), "%s/proc/%s/fd/%d", root, pid, fd);
		assert_int_equal(symlink(fd ? "/memfd:tensor (deleted)" : "/dev/null", full), 0);
	}
}

#define LIMITS(files) "Max open files            " files " files\n"

static void doctor_warns_about_few_descriptors(void **state)
{
	RECORD("/proc/self/limits", LIMITS("1024 2048"));
	tensorstat_run("doctor");
	assert_says("warn  files      RLIMIT_NOFILE is 1024, at most 2048; without the module, a "
		    "shareable buffer takes one descriptor");
	assert_says("LimitNOFILE=65536");
	/* The library raises the soft limit to the hard one. */
	RECORD("/proc/self/limits", LIMITS("1024 1048576"));
	tensorstat_run("doctor");
	assert_says("ok    files      RLIMIT_NOFILE is 1024, at most 1048576");
	RECORD("/proc/self/limits", LIMITS("unlimited unlimited"));
	module_loaded("0\n");
	tensorstat_run("doctor");
	assert_says(
		"ok    files      RLIMIT_NOFILE is unlimited, at most unlimited; a shared buffer "
		"takes");
}

static void doctor_names_the_process_nearest_to_its_limit(void **state)
{
	tensorstat_run("doctor");
	assert_says("ok    fds        no visible process has tensor descriptors");
	record_process("10", "roomy\n", 20, LIMITS("1000 1000"));
	record_process("11", "full\n", 8, LIMITS("10 100"));
	record_process("12", "other\n", 0, LIMITS("1 1"));
	tensorstat_run("doctor");
	assert_says(
		"warn  fds        process 11 (full) has 9 of 10 descriptors open, 8 of them for "
		"tensors");
	assert_says("prlimit --pid 11");
	RECORD("/proc/11/limits", LIMITS("1000 1000"));
	tensorstat_run("doctor");
	assert_says("ok    fds        process 10 (roomy) has 21 of 1000");
}

static void doctor_warns_about_the_file_table(void **state)
{
	RECORD("/proc/sys/fs/file-nr", "900\t0\t1000\n");
	tensorstat_run("doctor");
	assert_says("warn  file-max   900 of 1000 open files");
	assert_says("fs.file-max=2000");
	RECORD("/proc/sys/fs/file-nr", "9\t0\t9223372036854775807\n");
	tensorstat_run("doctor");
	assert_says("ok    file-max");
}

static void doctor_looks_at_locked_memory_and_mappings(void **state)
{
	RECORD("/proc/self/limits", "Max locked memory         8388608 8388608 bytes\n");
	RECORD("/proc/sys/vm/max_map_count", "65530\n");
	tensorstat_run("doctor");
	/* Only the module pins memory. */
	assert_says("note  memlock    RLIMIT_MEMLOCK is 8MiB");
	assert_says("ok    maps");
	module_loaded("0\n");
	RECORD("/proc/sys/vm/max_map_count", "1000\n");
	tensorstat_run("doctor");
	assert_says("warn  memlock    RLIMIT_MEMLOCK is 8MiB");
	assert_says("warn  maps       a process may have 1000 mappings");
}

static void doctor_looks_at_what_memfds_need(void **state)
{
	RECORD("/proc/self/limits",
	       "Max file size             1073741824 unlimited bytes\n" LIMITS("1024 1048576"));
	RECORD("/proc/sys/vm/memfd_noexec", "2\n");
	RECORD("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 40000 kB\nSwapFree: 0 kB\n");
	RECORD("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
	       "always within_size advise [never] deny force\n");
	tensorstat_run("doctor");
	assert_says("warn  memfd      vm.memfd_noexec is 2");
	assert_says("warn  fsize      RLIMIT_FSIZE is 1GiB");
	assert_says("warn  shmem      memfds may use the 39.1MiB");
	assert_says("note  shm-huge");
	RECORD("/proc/sys/vm/overcommit_memory", "2\n");
	RECORD("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\nSwapFree: 0 kB\n"
				"CommitLimit: 500000 kB\nCommitted_AS: 490000 kB\n");
	tensorstat_run("doctor");
	assert_says("warn  shmem      vm.overcommit_memory is 2");
	/* With the module the library makes no memfds. */
	module_loaded("0\n");
	tensorstat_run("doctor");
	assert_silent_about("memfd");
}

#define MACHINE(test) cmocka_unit_test_setup_teardown(test, machine_new, machine_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MACHINE(doctor_misses_the_module),
		MACHINE(doctor_warns_about_secure_boot),
		MACHINE(doctor_compares_versions),
		MACHINE(doctor_looks_at_limits),
		MACHINE(doctor_looks_at_huge_pages),
		MACHINE(doctor_finds_the_rule),
		MACHINE(doctor_warns_about_few_descriptors),
		MACHINE(doctor_names_the_process_nearest_to_its_limit),
		MACHINE(doctor_warns_about_the_file_table),
		MACHINE(doctor_looks_at_locked_memory_and_mappings),
		MACHINE(doctor_looks_at_what_memfds_need),
	};

	tool_find();
	return cmocka_run_group_tests_name("tensorstat_doctor", tests, NULL, NULL);
}
