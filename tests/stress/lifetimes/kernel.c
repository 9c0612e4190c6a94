// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Totals of netlink, the module's reference count, the kernel log and memory use.
 *
 * This process does not open /dev/tensor, since an open file pins what all opens share and would
 * hide defects: all numbers come from netlink and sysfs.
 */
#include <linux/membarrier.h>

#include "../stress.h"
#include "kernel.h"

#define MODULE "/modules/tensor.ko"
#define REFCNT "/sys/module/tensor/refcnt"

/* Retries for what the kernel frees some time after close() or exit(): number, and ms each. */
#define TRIES 1000
#define PAUSE 2

static struct nl_sock *nl;
static int family, refcnt = -1, kmsg = -1;

static bool look_again(void)
{
	nl_socket_free(nl);
	nl = nl_open(&family);
	if (refcnt >= 0)
		close(refcnt);
	refcnt = open(REFCNT, O_RDONLY | O_CLOEXEC);
	/* a page in the pool hides a use after free */
	write_text(PARAM("pool_bytes"), "0");
	return nl && family >= 0 && refcnt >= 0;
}

bool kernel_open(void)
{
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg < 0 || lseek(kmsg, 0, SEEK_END) < 0)
		return false;
	return look_again();
}

bool kernel_totals_are(const struct expected *want, char *wrong, size_t room)
{
	struct totals t;
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		if (!totals(nl, family, &t) && t.clients == want->clients && t.bufs == want->bufs &&
		    t.bytes == want->bytes && t.used == want->bytes && t.files == want->files &&
		    t.dmabufs == want->dmabufs)
			return true;
		sleep_ms(PAUSE);
	}
	snprintf(wrong, room,
		 "totals: %ld clients, %ld buffers, %ld bytes, %ld used, %ld files, %ld dmabufs",
		 t.clients, t.bufs, t.bytes, t.used, t.files, t.dmabufs);
	return false;
}

static long references(void)
{
	char text[24] = { 0 };

	return pread(refcnt, text, sizeof(text) - 1, 0) > 0 ? strtol(text, NULL, 10) : -1;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "tensor", O_NONBLOCK) ? -errno : 0;
}

/* While something is held, unloading the module must fail. */
bool kernel_stays_loaded(char *wrong, size_t room)
{
	long refs = references();
	int err = refs > 0 ? unload() : 0;

	if (err == -EWOULDBLOCK || err == -EBUSY)
		return true;
	snprintf(wrong, room, "unloading while in use: %s, %ld references",
		 refs > 0 ? strerror(-err) : "not tried", refs);
	return false;
}

bool kernel_is_unused(char *wrong, size_t room)
{
	int tries;

	for (tries = 0; references(); tries++) {
		if (tries == TRIES) {
			snprintf(wrong, room, "%ld references to the module", references());
			return false;
		}
		sleep_ms(PAUSE);
	}
	return true;
}

/* tests/vm/dmesg.py checks the whole log at the end; this attributes a line to a sequence. */
static bool suspicious(const char *line)
{
	static const char *const bad[] = {
		"KASAN",      "BUG",	  "WARNING", "Busy inodes",	  "refcount_t",
		"ODEBUG",     "UBSAN",	  "Oops",    "possible circular", "possible recursive",
		"corruption", "Bad page",
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (strstr(line, bad[i]))
			return true;
	}
	return false;
}

bool kernel_log_is_clean(char *wrong, size_t room)
{
	bool clean = true;
	char line[1024];
	ssize_t got;

	while ((got = read(kmsg, line, sizeof(line) - 1)) > 0 || (got < 0 && errno == EPIPE)) {
		line[got > 0 ? got : 0] = 0;
		if (!clean || !suspicious(line))
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(wrong, room, "kernel log: %s", strchr(line, ';') ?: line);
		clean = false;
	}
	return clean;
}

/*
 * Waits for a grace period and for the work that it starts: memory that is freed after one can only
 * be reused then. With one processor the call does nothing.
 */
void kernel_settle(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	sleep_ms(1);
}

static int load(void)
{
	const char *params = getenv("TENSOR_PARAMS");
	int fd = open(MODULE, O_RDONLY | O_CLOEXEC), err;

	err = syscall(SYS_finit_module, fd, params ?: "", 0) ? -errno : 0;
	close(fd);
	return err;
}

bool kernel_reload(char *wrong, size_t room)
{
	int err = unload();

	if (!err)
		err = load();
	if (!err && look_again())
		return true;
	snprintf(wrong, room, "reload: %s", strerror(-err));
	return false;
}

/* Number of objects of a slab cache that are in use. */
static int64_t slab_objects(const char *name)
{
	FILE *f = fopen("/proc/slabinfo", "re");
	char line[512], at[64];
	long long used, found = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %lld", at, &used) == 2 && !strcmp(at, name))
			found = used;
	}
	if (f)
		fclose(f);
	return found;
}

struct kernel_memory kernel_memory(void)
{
	return (struct kernel_memory){ .pages = pages_free(),
				       .inodes = slab_objects("inode_cache"),
				       .owned = pages_of_module(false) };
}

/*
 * The numbers of slabs contain objects in per-processor free lists, and on a debug kernel those in
 * quarantine: there kmemleak reports leaks at the end.
 */
bool kernel_memory_agrees(const struct kernel_memory *before, const struct kernel_memory *after,
			  unsigned long times)
{
	bool debug = !access("/sys/kernel/debug/kmemleak", F_OK);

	printf("# inodes before %ld, after %ld; %ld pages of the module\n", before->inodes,
	       after->inodes, after->owned);
	if (after->owned > before->owned)
		pages_of_module(true);
	return pages_agree(before->pages, after->pages, times) && after->owned <= before->owned &&
	       (debug || after->inodes <= before->inodes + 128 + (int64_t)times / 10);
}
