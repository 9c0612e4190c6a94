// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* doctor: memory. Limits of the module, of its users and of the cgroup; huge pages. */
#include "doctor/finding.h"

#include "backend/backend.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS MODULE_FOLDER "/parameters/"

/* ---- the module's limit ---- */

static void judge_use(struct finding *f, const struct totals *t)
{
	char used[32], limit[32];
	double part = 100.0 * (double)t->used_bytes / (double)t->limit_bytes;

	look_size((uint64_t)t->used_bytes, used, sizeof(used));
	look_size((uint64_t)t->limit_bytes, limit, sizeof(limit));
	finding_set(f, part >= 90 ? VERDICT_WARN : VERDICT_OK, "%s of %s are in use (%.0f%%)", used,
		    limit, part);
	if (part >= 90)
		finding_fix(
			f, "tensorstat top shows which process has how much; tensorstat device set "
			   "limit_bytes SIZE raises the limit until the module is unloaded, "
			   "/etc/modprobe.d/tensor.conf permanently");
}

/* Asks the module, so it is skipped for the files of another machine. */
static void check_use(struct list *findings)
{
	struct totals t = { 0 };
	struct finding *f;

	if (look_elsewhere() || device_backend.open() || device_backend.totals(&t) ||
	    t.limit_bytes <= 0)
		return;
	judge_use(finding_add(findings, "use"), &t);
	f = finding_add(findings, "refused");
	if (!t.refused) {
		finding_set(f, VERDICT_OK, "no allocation was refused because of a limit");
		return;
	}
	finding_set(f, VERDICT_WARN,
		    "%" PRId64
		    " allocations were refused because of a limit since the module was loaded",
		    t.refused);
	finding_fix(
		f,
		"tensorstat monitor limit reports the process; tensorstat device set limit_bytes "
		"or user_limit_bytes SIZE raises the limit");
}

static void check_limit(struct list *findings)
{
	char text[64], limit[32], all[32];
	uint64_t bytes, memory = 0;
	struct finding *f;

	if (!look_text(PARAMETERS "limit_bytes", text, sizeof(text)))
		return;
	f = finding_add(findings, "limit");
	bytes = strtoull(text, NULL, 10);
	look_number("/proc/meminfo", "MemTotal", &memory);
	memory *= 1024;
	look_size(bytes, limit, sizeof(limit));
	look_size(memory, all, sizeof(all));
	if (!bytes) {
		finding_set(f, VERDICT_OK, "limit_bytes is 0: half of the memory, which is %s",
			    all);
	} else if (memory && bytes > memory / 10 * 9) {
		finding_set(f, VERDICT_WARN,
			    "limit_bytes is %s of %s of memory: too little is left for the "
			    "rest of the system",
			    limit, all);
		finding_fix(f, "tensorstat device set limit_bytes %" PRIu64, memory / 2);
	} else {
		finding_set(f, VERDICT_OK, "limit_bytes is %s of %s", limit, all);
	}
}

/* Parameters that contradict each other, and a pool that keeps much of the memory. */
static void check_parameters(struct list *findings)
{
	uint64_t limit, user, pool, memory = 0;
	char text[64], one[32], all[32];
	struct finding *f;

	look_number("/proc/meminfo", "MemTotal", &memory);
	memory *= 1024;
	if (!look_text(PARAMETERS "limit_bytes", text, sizeof(text)))
		return;
	limit = strtoull(text, NULL, 10);
	limit = limit ? limit : memory / 2;
	look_size(limit, all, sizeof(all));
	if (look_text(PARAMETERS "user_limit_bytes", text, sizeof(text))) {
		f = finding_add(findings, "per-user");
		user = strtoull(text, NULL, 10);
		user = user ? user : memory / 8;
		look_size(user, one, sizeof(one));
		finding_set(f, user > limit ? VERDICT_WARN : VERDICT_OK,
			    "user_limit_bytes is %s, limit_bytes %s%s", one, all,
			    user > limit ? ": one user can take all of it" : "");
		if (f->verdict != VERDICT_OK)
			finding_fix(f, "tensorstat device set user_limit_bytes %" PRIu64,
				    limit / 4);
	}
	if (!look_text(PARAMETERS "pool_bytes", text, sizeof(text)))
		return;
	f = finding_add(findings, "pool");
	pool = strtoull(text, NULL, 10);
	look_size(pool, one, sizeof(one));
	finding_set(f, memory && pool > memory / 4 ? VERDICT_WARN : VERDICT_OK,
		    "the module keeps at most %s of free memory for reuse", one);
	if (f->verdict != VERDICT_OK)
		finding_fix(f, "tensorstat device set pool_bytes %" PRIu64, memory / 64);
}

/* The user that is nearest to the limit. Asks the module, as check_use(). */
static void check_users(struct list *findings)
{
	struct list payers = { .type = &payer_rows };
	const struct payer *fullest = NULL;
	char used[32], limit[32];
	struct finding *f;

	if (look_elsewhere() || device_backend.open() || device_backend.payers(&payers))
		return;
	for (size_t i = 0; i < payers.n; i++) {
		const struct payer *p = list_row(&payers, i);

		if (p->limit_bytes &&
		    (!fullest || (double)p->bytes / (double)p->limit_bytes >
					 (double)fullest->bytes / (double)fullest->limit_bytes))
			fullest = p;
	}
	if (fullest) {
		f = finding_add(findings, "users");
		finding_set(
			f,
			fullest->bytes > fullest->limit_bytes / 10 * 9 ? VERDICT_WARN : VERDICT_OK,
			"user %u is charged %s of a limit of %s, %" PRIu64 " refused", fullest->uid,
			look_size(fullest->bytes, used, sizeof(used)),
			look_size(fullest->limit_bytes, limit, sizeof(limit)), fullest->refused);
		if (f->verdict != VERDICT_OK)
			finding_fix(f, "tensorstat device set user_limit_bytes SIZE; tensorstat "
				       "top process shows which process has how much");
	}
	list_clear(&payers);
}

/* ---- cgroup ---- */

/* Finds the smallest memory.max from the cgroup of this process up to the root. */
static bool cgroup_max(uint64_t *least, char *where, size_t room)
{
	char line[512], path[640], text[64];
	char *end;

	/* The line of cgroup version 2 is "0::/path". */
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
	char where[640], text[32];
	uint64_t least;

	if (!cgroup_max(&least, where, sizeof(where))) {
		finding_set(f, VERDICT_NOTE,
			    "no unified cgroup hierarchy; limits of version 1 are not checked");
	} else if (least == UINT64_MAX) {
		finding_set(f, VERDICT_OK, "no memory limit of a cgroup applies to this session");
	} else {
		look_size(least, text, sizeof(text));
		finding_set(f, least < (64u << 20) ? VERDICT_WARN : VERDICT_NOTE,
			    "this session's cgroup may have %s; ALLOC fails with ENOMEM beyond it",
			    text);
		finding_fix(f,
			    "%s is the limit; systemctl set-property UNIT MemoryMax=SIZE raises it",
			    where);
	}
}

/* ---- huge pages ---- */

/* Counts free blocks of 2 MiB in all zones; larger blocks count as several. */
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
		finding_set(f, VERDICT_WARN,
			    "this kernel has no transparent huge pages: buffers are mapped "
			    "with small pages");
		finding_fix(f, "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
	} else if (huge_blocks(&blocks) && blocks < 16) {
		finding_set(f, VERDICT_WARN,
			    "%" PRIu64 " free blocks of 2 MiB: new buffers get small pages",
			    blocks);
		finding_fix(
			f,
			"echo 1 > /proc/sys/vm/compact_memory, or load the module and allocate at boot, "
			"before memory is fragmented");
	} else {
		finding_set(f, VERDICT_OK, "there are free blocks of 2 MiB for buffers");
	}
}

void doctor_memory(struct list *findings)
{
	check_limit(findings);
	check_parameters(findings);
	check_use(findings);
	check_users(findings);
	check_cgroup(findings);
	check_huge(findings);
}
