// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Executes programs: slots, memory for structs, and all ioctls of the table. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

/* Where a struct for the kernel lies: the last arguments of user_place(). */
enum where { WHERE_GOOD, WHERE_NULL, WHERE_RDONLY, WHERE_END, WHERE_CUT, WHERE_ODD, WHERE_KERNEL };

/* Two pages followed by an unmapped one; and the same two, mapped read-only. */
static char *writable, *readable;

/* volatile: otherwise the compiler drops a store that only a signal handler reads. */
static __thread sigjmp_buf *volatile rescue;

static void on_fault(int sig)
{
	if (rescue)
		siglongjmp(*rescue, 1);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Whether memory can be read or written without a signal. */
bool touch(char *at, bool write)
{
	sigjmp_buf here;
	volatile char *p = at;

	if (sigsetjmp(here, 1)) {
		rescue = NULL;
		return false;
	}
	rescue = &here;
	if (write)
		*p = 1;
	else
		(void)*p;
	rescue = NULL;
	return true;
}

static void places_make(void)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char *at = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || ftruncate(fd, 2 * PAGE) || at == MAP_FAILED)
		_exit(3);
	writable = mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	readable = mmap(at + 4 * PAGE, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	close(fd);
}

void machine_init(struct machine *m)
{
	struct sigaction action = { .sa_handler = on_fault };
	int i;

	memset(m, 0, sizeof(*m));
	for (i = 0; i < FDS; i++)
		m->fd[i] = -1;
	m->family = netlink_family();
	places_make();
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN);
}

int machine_fd(const struct machine *m, uint64_t slot)
{
	return slot < FDS ? m->fd[slot] : (int)slot;
}

void machine_set_fd(struct machine *m, uint64_t slot, int fd)
{
	int *at = &m->fd[slot % FDS];

	if (*at >= 0)
		close(*at);
	*at = fd;
}

/* Copies @from to the place @where; @room is set to the number of bytes that fit. */
char *user_place(unsigned int where, const void *from, size_t bytes, size_t *room)
{
	char *end = writable + 2 * PAGE, *at = writable;

	*room = bytes;
	switch (where) {
	case WHERE_NULL:
		*room = 0;
		return NULL;
	case WHERE_KERNEL:
		*room = 0;
		return (char *)0xffff888000001000;
	case WHERE_END:
		at = end - bytes;
		break;
	case WHERE_CUT:
		*room = bytes / 2;
		at = end - *room;
		break;
	case WHERE_ODD:
		at++;
		break;
	}
	memcpy(at, from, *room);
	return where == WHERE_RDONLY ? readable : at;
}

static uint64_t arg_value(const struct machine *m, const struct arg_type *type, uint64_t arg)
{
	switch (type->role) {
	case ROLE_FD:
		return machine_fd(m, arg);
	case ROLE_HANDLE:
		return arg < HANDLES ? m->handle[arg] : arg;
	case ROLE_MAP:
		return arg < MAPS ? (uintptr_t)m->map[arg].at : arg;
	default:
		return arg;
	}
}

static void take_results(struct machine *m, const struct call_type *type, const char *at,
			 uint64_t slot)
{
	int fd = -1;

	if (type->handle_at) {
		memcpy(&m->handle[slot % HANDLES], at + type->handle_at, sizeof(m->handle[0]));
		m->mmap_offset[slot % HANDLES] = 0;
		if (type->mmap_offset_at)
			memcpy(&m->mmap_offset[slot % HANDLES], at + type->mmap_offset_at,
			       sizeof(m->mmap_offset[0]));
	}
	if (type->fd_at) {
		memcpy(&fd, at + type->fd_at, sizeof(fd));
		machine_set_fd(m, slot, fd);
	}
}

/*
 * The first arguments of every ioctl: fd; claimed size (0: the true one); where the struct lies; a
 * byte behind its end; the slot for the result.
 */
long run_ioctl(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	char args[PAGE + 64] = { 0 }, *at;
	uint32_t size = arg[1] ? arg[1] : type->bytes;
	size_t room, used = size < PAGE ? size : PAGE;
	unsigned int i;

	for (i = 5; i < ARGS_MAX && type->args[i].name; i++) {
		uint64_t value = arg_value(m, &type->args[i], arg[i]);

		memcpy(args + type->args[i].off, &value, type->args[i].bytes);
	}
	if (used < type->bytes)
		used = type->bytes;
	memcpy(args, &size, sizeof(size));
	args[used - 1] |= arg[3];
	at = user_place(arg[2], args, used, &room);
	if (ioctl(machine_fd(m, arg[0]), type->cmd, at))
		return -errno;
	take_results(m, type, at, arg[4]);
	return 0;
}

long machine_call(struct machine *m, const struct call *call)
{
	const struct call_type *type = &call_types[call->type];

	return type->run(m, type, call->arg);
}

void machine_clean(struct machine *m)
{
	int i;

	for (i = 0; i < MAPS; i++) {
		if (m->map[i].at)
			munmap(m->map[i].at, m->map[i].len);
		m->map[i].at = NULL;
	}
	for (i = 0; i < FDS; i++)
		machine_set_fd(m, i, -1);
	memset(m->handle, 0, sizeof(m->handle));
	memset(m->mmap_offset, 0, sizeof(m->mmap_offset));
	files_clean();
}
