// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * doctor: limits of file descriptors, locked memory and memfds. A shared buffer takes a descriptor
 * in each process that received it; without the module, every buffer that can be shared takes one
 * in its maker, too. libtensor raises the soft limit of descriptors to the hard limit when it meets
 * it, so the hard limit counts.
 */
#include "doctor/finding.h"

#include "rows/text.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_WANTED 65536
#define FILES_LEAST  4096
#define LOCKED_LEAST (64u << 20)

static bool module_loaded(void)
{
	return look_exists(MODULE_FOLDER);
}

static const char *put_count(uint64_t n, char *room, size_t size)
{
	if (n == UINT64_MAX)
		snprintf(room, size, "unlimited");
	else
		snprintf(room, size, "%" PRIu64, n);
	return room;
}

/* ---- descriptors ---- */

static void check_files(struct list *findings)
{
	struct finding *f = finding_add(findings, "files");
	char now[32], most[32];
	uint64_t soft, hard;

	if (!look_limit("self", "Max open files", &soft, &hard)) {
		finding_set(f, VERDICT_NOTE, "/proc/self/limits cannot be read");
		return;
	}
	finding_set(f, hard < FILES_LEAST ? VERDICT_WARN : VERDICT_OK,
		    "RLIMIT_NOFILE is %s, at most %s; %s takes one descriptor per process",
		    put_count(soft, now, sizeof(now)), put_count(hard, most, sizeof(most)),
		    module_loaded() ? "a shared buffer" : "without the module, a shareable buffer");
	if (f->verdict != VERDICT_OK)
		finding_fix(
			f,
			"LimitNOFILE=%d in the unit of a service; a line \"@tensor - nofile %d\" "
			"in /etc/security/limits.d/tensor.conf for sessions; "
			"--ulimit nofile=%d for a container",
			FILES_WANTED, FILES_WANTED, FILES_WANTED);
}

/* A process that has tensors, and how many of its descriptors refer to them. */
struct user {
	char pid[16], comm[32];
	uint64_t files, tensors, soft;
};

static bool is_tensor_file(const char *target)
{
	return !strncmp(target, "/memfd:tensor", 13) || !strcmp(target, "/dev/tensor") ||
	       strstr(target, "tensor:[");
}

/* Counts descriptors; false if the caller may not inspect the process. */
static bool count_files(struct user *u)
{
	char path[64], full[512], target[256];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", u->pid);
	dir = opendir(look_path(path, full, sizeof(full)));
	while (dir && (e = readdir(dir))) {
		ssize_t n;

		if (*e->d_name == '.')
			continue;
		u->files++;
		n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		u->tensors += is_tensor_file(target);
	}
	if (dir)
		closedir(dir);
	return dir;
}

static double user_share(const struct user *u)
{
	return u->soft == UINT64_MAX || !u->soft ? 0 : (double)u->files / (double)u->soft;
}

/* Finds the process with tensors that is nearest to its limit. Returns the number of processes. */
static size_t find_fullest(struct user *fullest)
{
	char full[512], path[64], comm[64];
	struct dirent *e;
	size_t n = 0;
	DIR *dir = opendir(look_path("/proc", full, sizeof(full)));

	while (dir && (e = readdir(dir))) {
		struct user u = { 0 };
		uint64_t hard;

		if (!isdigit((unsigned char)*e->d_name))
			continue;
		snprintf(u.pid, sizeof(u.pid), "%.15s", e->d_name);
		if (!count_files(&u) || !u.tensors ||
		    !look_limit(u.pid, "Max open files", &u.soft, &hard))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", u.pid);
		look_text(path, comm, sizeof(comm));
		copy_text(u.comm, sizeof(u.comm), comm);
		if (!n++ || user_share(&u) > user_share(fullest))
			*fullest = u;
	}
	if (dir)
		closedir(dir);
	return n;
}

static void check_processes(struct list *findings)
{
	struct finding *f = finding_add(findings, "fds");
	struct user u = { 0 };
	char limit[32];

	if (!find_fullest(&u)) {
		finding_set(f, VERDICT_OK, "no visible process has tensor descriptors");
		return;
	}
	finding_set(f, user_share(&u) >= 0.8 ? VERDICT_WARN : VERDICT_OK,
		    "process %s (%s) has %" PRIu64 " of %s descriptors open, %" PRIu64
		    " of them for tensors",
		    u.pid, u.comm, u.files, put_count(u.soft, limit, sizeof(limit)), u.tensors);
	if (f->verdict != VERDICT_OK)
		finding_fix(f,
			    "prlimit --pid %s --nofile=%d; LimitNOFILE=%d for its service; release "
			    "tensors that it no longer uses%s",
			    u.pid, FILES_WANTED, FILES_WANTED,
			    module_loaded() ? "" : "; load the module, which needs fewer of them");
}

static void check_file_table(struct list *findings)
{
	unsigned long long used, spare, most;
	struct finding *f;
	char text[128];

	if (!look_text("/proc/sys/fs/file-nr", text, sizeof(text)) ||
	    sscanf(text, "%llu %llu %llu", &used, &spare, &most) != 3 || !most)
		return;
	f = finding_add(findings, "file-max");
	finding_set(f, used >= most / 10 * 8 ? VERDICT_WARN : VERDICT_OK,
		    "%llu of %llu open files of the whole system are used", used, most);
	if (f->verdict != VERDICT_OK)
		finding_fix(f,
			    "sysctl fs.file-max=%llu; a line \"fs.file-max = %llu\" in "
			    "/etc/sysctl.d/tensor.conf to keep it",
			    2 * most, 2 * most);
}

/* ---- locked memory ---- */

static void check_memlock(struct list *findings)
{
	struct finding *f;
	uint64_t soft, hard;
	char text[32];

	if (!look_limit("self", "Max locked memory", &soft, &hard))
		return;
	f = finding_add(findings, "memlock");
	if (soft == UINT64_MAX) {
		finding_set(f, VERDICT_OK, "RLIMIT_MEMLOCK is unlimited");
		return;
	}
	look_size(soft, text, sizeof(text));
	if (soft >= LOCKED_LEAST) {
		finding_set(f, VERDICT_OK, "RLIMIT_MEMLOCK is %s", text);
		return;
	}
	/* Without the module nothing in libtensor locks memory. */
	finding_set(f, module_loaded() ? VERDICT_WARN : VERDICT_NOTE,
		    "RLIMIT_MEMLOCK is %s; PIN, io_uring and RDMA fail with ENOMEM beyond it",
		    text);
	finding_fix(f, "a line \"@tensor - memlock unlimited\" in "
		       "/etc/security/limits.d/tensor.conf, or LimitMEMLOCK=infinity in the unit");
}

/* ---- memfds ---- */

static void check_memfd_policy(struct list *findings)
{
	struct finding *f;
	uint64_t soft, hard;
	char text[64], size[32];

	if (look_text("/proc/sys/vm/memfd_noexec", text, sizeof(text)) && *text == '2') {
		f = finding_add(findings, "memfd");
		finding_set(f, VERDICT_WARN,
			    "vm.memfd_noexec is 2: memfd_create of libtensor fails with EACCES");
		finding_fix(f, "sysctl vm.memfd_noexec=1, or load the module");
	}
	if (!look_limit("self", "Max file size", &soft, &hard) || soft == UINT64_MAX)
		return;
	f = finding_add(findings, "fsize");
	finding_set(f, VERDICT_WARN, "RLIMIT_FSIZE is %s: no memfd buffer can be larger",
		    look_size(soft, size, sizeof(size)));
	finding_fix(f, "ulimit -f unlimited, or LimitFSIZE=infinity in the unit");
}

static void check_shm_memory(struct list *findings)
{
	uint64_t all = 0, left = 0, swap = 0, committed = 0, most = 0;
	struct finding *f = finding_add(findings, "shmem");
	char free_text[32], all_text[32], mode[16] = "";

	look_number("/proc/meminfo", "MemTotal", &all);
	look_number("/proc/meminfo", "SwapFree", &swap);
	if (!look_number("/proc/meminfo", "MemAvailable", &left))
		left = all;
	look_text("/proc/sys/vm/overcommit_memory", mode, sizeof(mode));
	if (*mode == '2' && look_number("/proc/meminfo", "CommitLimit", &most) &&
	    look_number("/proc/meminfo", "Committed_AS", &committed) && committed > most / 10 * 9) {
		finding_set(f, VERDICT_WARN,
			    "vm.overcommit_memory is 2 and %s of %s are committed: allocation of "
			    "memfds fails with ENOMEM",
			    look_size(committed * 1024, free_text, sizeof(free_text)),
			    look_size(most * 1024, all_text, sizeof(all_text)));
		finding_fix(f, "sysctl vm.overcommit_ratio=80, or add swap space");
		return;
	}
	finding_set(f, left + swap < all / 10 ? VERDICT_WARN : VERDICT_OK,
		    "memfds may use the %s of memory and swap that are free, of %s of memory",
		    look_size((left + swap) * 1024, free_text, sizeof(free_text)),
		    look_size(all * 1024, all_text, sizeof(all_text)));
	if (f->verdict != VERDICT_OK)
		finding_fix(f,
			    "tensorstat top shows which process has how much; add memory or swap");
}

static void check_shm_huge(struct list *findings)
{
	struct finding *f;
	char text[128];

	if (!look_text("/sys/kernel/mm/transparent_hugepage/shmem_enabled", text, sizeof(text)))
		return;
	f = finding_add(findings, "shm-huge");
	if (strstr(text, "[never]")) {
		finding_set(f, VERDICT_NOTE, "memfds get no huge pages");
		finding_fix(f, "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled");
	} else {
		finding_set(f, VERDICT_OK, "memfds may get huge pages");
	}
}

static void check_maps(struct list *findings)
{
	struct finding *f;
	char text[64];
	uint64_t most;

	if (!look_text("/proc/sys/vm/max_map_count", text, sizeof(text)))
		return;
	most = strtoull(text, NULL, 10);
	f = finding_add(findings, "maps");
	finding_set(f, most < 65530 ? VERDICT_WARN : VERDICT_OK,
		    "a process may have %" PRIu64 " mappings; each buffer in use takes one", most);
	if (f->verdict != VERDICT_OK)
		finding_fix(f, "sysctl vm.max_map_count=262144; the same line in "
			       "/etc/sysctl.d/tensor.conf to keep it");
}

void doctor_limits(struct list *findings)
{
	check_files(findings);
	check_processes(findings);
	check_file_table(findings);
	check_memlock(findings);
	check_maps(findings);
	/* With the module libtensor makes no memfds. */
	if (module_loaded())
		return;
	check_memfd_policy(findings);
	check_shm_memory(findings);
	check_shm_huge(findings);
}
