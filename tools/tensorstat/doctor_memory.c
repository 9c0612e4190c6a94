// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* doctor on memory: the module's limit, the cgroup's, huge pages, memlock, open files. */
#include "doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#define PARAMETERS "/sys/module/tensor/parameters/"

static const struct options iec;

static const char *size(uint64_t bytes, char *room, size_t n)
{
	put_size(room, n, bytes, &iec);
	return room;
}

/* ---- the module's limit ---- */

static void judge_use(struct finding *f, const struct totals *t)
{
	char used[CELL], limit[CELL];
	double part = 100.0 * (double)t->used_bytes / (double)t->limit_bytes;

	size((uint64_t)t->used_bytes, used, sizeof(used));
	size((uint64_t)t->limit_bytes, limit, sizeof(limit));
	finding_says(f, part >= 90 ? VERDICT_WARN : VERDICT_OK, "%s of %s are used (%.0f%%)", used,
		     limit, part);
	if (part >= 90)
		finding_mend(
			f,
			"tensorstat top shows who has it; tensorstat device set limit_bytes SIZE "
			"raises it, /etc/modprobe.d/tensor.conf for good");
}

/* Only on this machine. */
static void check_use(struct list *findings)
{
	struct totals t = { 0 };
	struct finding *f;

	if (getenv("TENSORSTAT_ROOT") || device_backend.open() || device_backend.totals(&t) ||
	    t.limit_bytes <= 0)
		return;
	judge_use(finding_add(findings, "use"), &t);
	f = finding_add(findings, "refused");
	if (!t.refused) {
		finding_says(f, VERDICT_OK, "no allocation has met a limit");
		return;
	}
	finding_says(f, VERDICT_WARN,
		     "%" PRId64 " allocations met a limit since the module was loaded", t.refused);
	finding_mend(
		f,
		"tensorstat monitor limit tells who; tensorstat device set limit_bytes SIZE raises "
		"the limit of all");
}

static void check_limit(struct list *findings)
{
	char text[64], limit[CELL], all[CELL];
	uint64_t bytes, memory = 0;
	struct finding *f;

	if (!look_text(PARAMETERS "limit_bytes", text, sizeof(text)))
		return;
	f = finding_add(findings, "limit");
	bytes = strtoull(text, NULL, 10);
	look_number("/proc/meminfo", "MemTotal", &memory);
	memory *= 1024;
	size(bytes, limit, sizeof(limit));
	size(memory, all, sizeof(all));
	if (!bytes) {
		finding_says(f, VERDICT_OK, "limit_bytes is 0: half of the memory, which is %s",
			     all);
	} else if (memory && bytes > memory / 10 * 9) {
		finding_says(f, VERDICT_WARN,
			     "limit_bytes is %s of %s: it leaves the rest of the system "
			     "too little",
			     limit, all);
		finding_mend(f, "tensorstat device set limit_bytes %" PRIu64, memory / 2);
	} else {
		finding_says(f, VERDICT_OK, "limit_bytes is %s of %s", limit, all);
	}
}

/* ---- cgroup ---- */

/* The smallest memory.max from our own cgroup up to the root. */
static bool cgroup_max(uint64_t *least, char *where, size_t room)
{
	char line[512], path[640], text[64];
	char *end;

	/* version 2 has one line: 0::/path */
	if (!look_text("/proc/self/cgroup", line, sizeof(line)) || strncmp(line, "0::", 3))
		return false;
	*least = UINT64_MAX;
	*where = '\0';
	do {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", line + 3);
		if (look_text(path, text, sizeof(text)) && *text != 'm' &&
		    strtoull(text, NULL, 10) < *least) {
			*least = strtoull(text, NULL, 10);
			snprintf(where, room, "%s", path);
		}
		end = strrchr(line + 3, '/');
		if (end)
			*end = '\0';
	} while (end);
	return true;
}

static void check_cgroup(struct list *findings)
{
	struct finding *f = finding_add(findings, "cgroup");
	char where[640], text[CELL];
	uint64_t least;

	if (!cgroup_max(&least, where, sizeof(where))) {
		finding_says(f, VERDICT_NOTE,
			     "no unified cgroup hierarchy: buffers are charged to none that "
			     "is looked at here");
	} else if (least == UINT64_MAX) {
		finding_says(f, VERDICT_OK, "no memory limit of a cgroup applies to this session");
	} else {
		size(least, text, sizeof(text));
		finding_says(f, least < (64u << 20) ? VERDICT_WARN : VERDICT_NOTE,
			     "this session's cgroup may have %s; ALLOC beyond it is ENOMEM", text);
		finding_mend(f, "%s is where; systemctl set-property UNIT MemoryMax=SIZE raises it",
			     where);
	}
}

/* ---- huge pages ---- */

/* Free blocks of 2 MiB and more, in all zones. */
static bool huge_blocks(uint64_t *blocks)
{
	char full[512], line[512], *at;
	FILE *f = fopen(look_path("/proc/buddyinfo", full, sizeof(full)), "re");
	int order;

	*blocks = 0;
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, "zone");
		at = at ? at + 4 + strspn(at + 4, " ") : line;
		at += strcspn(at, " ");
		for (order = 0; *at && *at != '\n'; order++) {
			uint64_t n = strtoull(at, &at, 10);

			if (order >= 9)
				*blocks += n << (order - 9);
			at += strspn(at, " ");
		}
	}
	fclose(f);
	return true;
}

static void check_huge(struct list *findings)
{
	struct finding *f = finding_add(findings, "hugepages");
	char text[128];
	uint64_t blocks;

	if (!look_text("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text))) {
		finding_says(f, VERDICT_WARN,
			     "this kernel has no transparent huge pages: buffers are mapped "
			     "by small pages");
		finding_mend(f, "a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
	} else if (huge_blocks(&blocks) && blocks < 16) {
		finding_says(f, VERDICT_WARN,
			     "%" PRIu64 " free blocks of 2 MiB: new buffers will be of small "
			     "pages",
			     blocks);
		finding_mend(
			f,
			"echo 1 > /proc/sys/vm/compact_memory, or load the module early and allocate "
			"early");
	} else {
		finding_says(f, VERDICT_OK, "there are free blocks of 2 MiB for buffers");
	}
}

static void check_shm(struct list *findings)
{
	struct finding *f;
	char text[128];

	/* What memfds are made of; with the module they are only the second choice. */
	if (look_exists("/sys/module/tensor") ||
	    !look_text("/sys/kernel/mm/transparent_hugepage/shmem_enabled", text, sizeof(text)))
		return;
	f = finding_add(findings, "memfd");
	if (strstr(text, "[never]")) {
		finding_says(f, VERDICT_NOTE, "memfds get no huge pages here");
		finding_mend(f, "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled");
	} else {
		finding_says(f, VERDICT_OK, "memfds may get huge pages");
	}
}

/* ---- limits of the process ---- */

static void check_memlock(struct list *findings)
{
	struct finding *f = finding_add(findings, "memlock");
	struct rlimit limit;
	char text[CELL];

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY) {
		finding_says(f, VERDICT_OK, "no limit on locked memory");
		return;
	}
	size(limit.rlim_cur, text, sizeof(text));
	finding_says(f, limit.rlim_cur < (64u << 20) ? VERDICT_NOTE : VERDICT_OK,
		     "%s may be locked: by PIN, io_uring, RDMA", text);
	if (f->verdict != VERDICT_OK)
		finding_mend(
			f,
			"a line \"@tensor - memlock unlimited\" in /etc/security/limits.d/tensor.conf, "
			"or LimitMEMLOCK= of the service");
}

static void check_files(struct list *findings)
{
	struct finding *f = finding_add(findings, "files");
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	finding_says(f, limit.rlim_cur < 1024 ? VERDICT_WARN : VERDICT_OK,
		     "%llu open files a process", (unsigned long long)limit.rlim_cur);
	if (f->verdict != VERDICT_OK)
		finding_mend(f, "ulimit -n %llu, or LimitNOFILE= of the service",
			     (unsigned long long)(limit.rlim_max < 65536 ? limit.rlim_max : 65536));
}

void doctor_memory(struct list *findings)
{
	check_limit(findings);
	check_use(findings);
	check_cgroup(findings);
	check_huge(findings);
	check_shm(findings);
	check_memlock(findings);
	check_files(findings);
}
