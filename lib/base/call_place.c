// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Walks the stack up to the last function of the library and resolves addresses. */
#include "base/call_place.h"

#include "base/compiler.h"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Start of the library's mapping, and end of its code. The linker defines them. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

/* A cache: dladdr() searches all symbols. */
static const char *name_of(void *at)
{
	static struct {
		_Atomic(void *) at;
		const char *name;
	} known[4096];
	size_t i = ((uintptr_t)at >> 2) % ARRAY_SIZE(known);
	void *unused = NULL;
	Dl_info info;

	if (atomic_load_explicit(&known[i].at, memory_order_acquire) == at)
		return known[i].name;
	if (!dladdr(at, &info) || !info.dli_sname)
		return NULL;
	/* An entry is written once: reserved with an address that is not code, then published. */
	if (atomic_compare_exchange_strong(&known[i].at, &unused, (void *)&known[i])) {
		known[i].name = info.dli_sname;
		atomic_store_explicit(&known[i].at, at, memory_order_release);
	}
	return info.dli_sname;
}

struct call_place call_place(void)
{
	struct call_place place = { "?", NULL };
	void *frame[32];
	int n = backtrace(frame, 32), last = -1;
	const char *name;

	/* The last function of the library is the one that the program called. */
	for (int i = 0; i < n; i++)
		if ((const char *)frame[i] >= __ehdr_start && (const char *)frame[i] < etext)
			last = i;
	if (last < 0)
		return place;
	name = name_of(frame[last]);
	if (name)
		place.function = name;
	/* The return address may belong to the next source line. */
	if (last + 1 < n)
		place.at = (const char *)frame[last + 1] - 1;
	return place;
}

/* Stores the first line that addr2line writes for the address; false if it is unknown. */
static bool line_of(const char *file, const char *address, char *buf, size_t size)
{
	char *argv[] = { "addr2line", "-s", "-e", (char *)file, (char *)address, NULL };
	posix_spawn_file_actions_t actions;
	int out[2], status;
	bool found = false;
	FILE *f;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		return false;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	status = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(out[1]);
	f = status ? NULL : fdopen(out[0], "r");
	if (f && fgets(buf, (int)size, f)) {
		buf[strcspn(buf, " \n")] = '\0';
		found = buf[0] != '?' && !strstr(buf, ":?");
	}
	if (f)
		fclose(f);
	else
		close(out[0]);
	if (!status)
		waitpid(pid, &status, 0);
	return found;
}

const char *call_place_text(const void *at, char *buf, size_t size)
{
	char address[32], self[256] = "";
	const struct link_map *map;
	const Elf64_Ehdr *head;
	uintptr_t offset;
	Dl_info info;

	if (!at || !dladdr1(at, &info, (void **)&map, RTLD_DL_LINKMAP) || !info.dli_fbase) {
		snprintf(buf, size, "?");
		return buf;
	}
	head = info.dli_fbase;
	offset = (uintptr_t)at - (head->e_type == ET_EXEC ? 0 : (uintptr_t)head);
	snprintf(address, sizeof(address), "0x%lx", (unsigned long)offset);
	/* The name of the program itself is argv[0], which need not be a path. */
	if (!*map->l_name && readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		info.dli_fname = self;
	if (!line_of(info.dli_fname, address, buf, size))
		snprintf(buf, size, "%s+%s", info.dli_fname, address);
	return buf;
}
