// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Actions on mappings. */
#include <sys/uio.h>

#include "actor.h"

static __thread sigjmp_buf fault_back;
static __thread volatile bool fault_expected;

static void on_fault(int sig)
{
	if (!fault_expected)
		_exit(128 + sig);
	siglongjmp(fault_back, sig);
}

static void catch_faults(void)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
}

/* Returns 0, or the signal of the read. */
int word_read(volatile uint64_t *at, uint64_t *value)
{
	int sig;

	catch_faults();
	sig = sigsetjmp(fault_back, 0);
	fault_expected = !sig;
	if (!sig)
		*value = *at;
	fault_expected = false;
	return sig;
}

/* Returns 0, or the signal of the write. */
int word_write(volatile uint64_t *at, uint64_t value)
{
	int sig;

	catch_faults();
	sig = sigsetjmp(fault_back, 0);
	fault_expected = !sig;
	if (!sig)
		*at = value;
	fault_expected = false;
	return sig;
}

/* A word may only be one of this buffer, or zero if it may have been purged. */
void actor_check_word(struct actor *a, uint64_t word, const char *what)
{
	if (word >> 32 != a->round->tag && !(a->round->purging && !word))
		round_broken(a->round, ONLY_OWN_DATA, "%s gave %llx, tag is %x", what,
			     (unsigned long long)word, a->round->tag);
}

static void check_signal(struct actor *a, int sig)
{
	struct round *r = a->round;

	if (sig == SIGBUS && !r->purging && !r->revoking)
		round_broken(r, NOTHING_LOST, "SIGBUS before REVOKE");
}

bool act_read(struct actor *a)
{
	struct round *r = a->round;
	bool revoked = r->revoked;
	uint64_t word;
	int sig = word_read(actor_place(a), &word);

	check_signal(a, sig);
	if (sig)
		return false;
	if (revoked)
		round_broken(r, REVOKE_HOLDS, "a mapping was read");
	actor_check_word(a, word, "read");
	return true;
}

/* Records a write that succeeded. */
static bool record_write(struct actor *a, bool sealed, bool revoked, const char *how)
{
	if (sealed)
		round_broken(a->round, SEAL_HOLDS, "written through %s", how);
	if (revoked)
		round_broken(a->round, REVOKE_HOLDS, "written through %s", how);
	return true;
}

bool act_write(struct actor *a)
{
	struct round *r = a->round;
	bool sealed = r->sealed, revoked = r->revoked;
	int sig = word_write(actor_place(a), actor_word(a));

	check_signal(a, sig);
	return !sig && record_write(a, sealed, revoked, "a mapping");
}

/**
 * struct source - a way to mmap() the buffer
 * @fd: fd for mmap()
 * @offset: offset for mmap()
 * @write: whether the fd permits writable mappings
 */
struct source {
	int fd;
	uint64_t offset;
	bool write;
};

static struct source pick_source(struct actor *a)
{
	const struct round *r = a->round;
	const struct source sources[] = {
		{ r->dev, r->mmap_offset, true },
		{ r->fd, 0, true },
		{ r->rofd, 0, false },
		{ r->dmabuf, 0, true },
	};

	/* a mapping of a writable file counts as a writer, whatever its protection */
	if (r->calm && !r->sealed)
		return sources[2];
	return sources[r->fd < 0 ? 0 : actor_random_below(a, 4)];
}

/* A range of a window in bytes; all of it in half of the cases. */
static uint64_t pick_part(struct actor *a, uint64_t *bytes)
{
	uint64_t pages = a->round->bytes / PAGE, first;

	*bytes = a->round->bytes;
	if (actor_random_below(a, 2))
		return 0;
	first = actor_random_below(a, pages);
	*bytes = (1 + actor_random_below(a, pages - first)) * PAGE;
	return first * PAGE;
}

/* A writable mapping may only be refused while a SEAL is under way. */
static void check_denied(struct actor *a, unsigned int before)
{
	struct round *r = a->round;

	if (!r->sealed && r->attempt == before && before < ATTEMPTS)
		r->denied[before] = true;
}

bool act_map(struct actor *a)
{
	struct round *r = a->round;
	bool sealed = r->sealed, revoked = r->revoked, write = !r->calm && actor_random_below(a, 2);
	struct source s = pick_source(a);
	unsigned int before = r->attempt;
	uint64_t bytes, part = pick_part(a, &bytes);
	void *at;

	at = mmap(WINDOW(actor_random_below(a, WINDOWS)) + part, bytes,
		  PROT_READ | (write ? PROT_WRITE : 0),
		  MAP_SHARED | MAP_FIXED | (actor_random_below(a, 4) ? 0 : MAP_POPULATE), s.fd,
		  s.offset + part);
	if (at == MAP_FAILED) {
		if (errno == EPERM && write)
			check_denied(a, before);
		return false;
	}
	if (revoked)
		round_broken(r, REVOKE_HOLDS, "mmap() of a revoked buffer");
	if (write && (sealed || !s.write))
		round_broken(r, SEAL_HOLDS, "writable mmap() of what may not be written to");
	return true;
}

bool act_unmap(struct actor *a)
{
	uint64_t bytes, part = pick_part(a, &bytes);

	return !munmap(WINDOW(actor_random_below(a, WINDOWS)) + part, bytes);
}

bool act_protect(struct actor *a)
{
	struct round *r = a->round;
	bool sealed = r->sealed;
	int prot = actor_prot(a);
	uint64_t bytes, part = pick_part(a, &bytes);

	if (r->calm)
		prot &= ~PROT_WRITE;
	if (mprotect(WINDOW(actor_random_below(a, WINDOWS)) + part, bytes, prot))
		return false;
	if (sealed && prot & PROT_WRITE)
		round_broken(r, SEAL_HOLDS, "mprotect() made a mapping writable");
	return true;
}

bool act_move(struct actor *a)
{
	unsigned int from = actor_random_below(a, WINDOWS), to = (from + 1) % WINDOWS;
	uint64_t bytes, part = pick_part(a, &bytes);

	return mremap(WINDOW(from) + part, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		      WINDOW(to) + part) != MAP_FAILED;
}

bool act_drop(struct actor *a)
{
	uint64_t bytes, part = pick_part(a, &bytes);

	return !madvise(WINDOW(actor_random_below(a, WINDOWS)) + part, bytes, MADV_DONTNEED);
}

/* A child uses a copy of the mappings and exits. */
bool act_fork(struct actor *a)
{
	int i, status;
	pid_t pid;

	if (a->round->calm)
		return false;
	pid = fork();
	if (!pid) {
		a->state ^= getpid() * 0x9e3779b97f4a7c15ULL;
		for (i = 0; i < 8; i++) {
			act_read(a);
			act_write(a);
		}
		if (actor_random_below(a, 2))
			raise(SIGKILL);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid;
}

/*
 * Writes through /proc/self/mem as a debugger does: it bypasses the protection of the mapping if
 * the kernel permits it.
 */
bool act_proc_mem(struct actor *a)
{
	struct round *r = a->round;
	bool sealed = r->sealed, revoked = r->revoked;
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint64_t word = actor_word(a);
	ssize_t put = r->calm && !sealed ?
			      -1 :
			      pwrite(fd, &word, sizeof(word), (off_t)(uintptr_t)actor_place(a));

	close(fd);
	return put > 0 && record_write(a, sealed, revoked, "/proc/self/mem");
}

bool act_vm_write(struct actor *a)
{
	struct round *r = a->round;
	bool sealed = r->sealed, revoked = r->revoked;
	uint64_t word = actor_word(a);
	struct iovec from = { &word, sizeof(word) }, to = { (void *)actor_place(a), sizeof(word) };

	return process_vm_writev(getpid(), &from, 1, &to, 1, 0) > 0 &&
	       record_write(a, sealed, revoked, "process_vm_writev()");
}

/* The kernel writes to the mapping when a file is read. */
bool act_pread(struct actor *a)
{
	struct round *r = a->round;
	bool sealed = r->sealed, revoked = r->revoked;

	return pread(r->words, (void *)actor_place(a), PAGE, 0) > 0 &&
	       record_write(a, sealed, revoked, "read()");
}

/* A page in a pipe keeps its contents, whatever happens to the buffer. */
bool act_splice(struct actor *a)
{
	struct iovec page = { (void *)actor_place(a), sizeof(uint64_t) };
	uint64_t word = 0;
	int pipes[2];
	bool good;

	if (a->round->calm || pipe(pipes))
		return false;
	good = vmsplice(pipes[1], &page, 1, SPLICE_F_NONBLOCK) == sizeof(word);
	if (good && actor_random_below(a, 2))
		sleep_ms(1);
	if (good && read(pipes[0], &word, sizeof(word)) == sizeof(word))
		actor_check_word(a, word, "a pipe");
	close(pipes[0]);
	close(pipes[1]);
	return good;
}
