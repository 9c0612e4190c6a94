// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * SEAL and REVOKE concurrently with all other uses of a buffer: faults, mappings, devices, exports
 * and imports, forks, purges and exits. After SEAL no byte changes, by any path; after REVOKE every
 * access is SIGBUS or EIDRM, and never another buffer's memory.
 *
 *	transitions [SECONDS [SEED]]	60 and 1, or TRANSITIONS and SEED of the environment
 */
#include "../stress.h"
#include "round.h"

#define CALM_AFTER  40
#define PATIENCE_MS 120000
#define FRESH	    4

static const char *const promises[PROMISES] = {
	[SEAL_HOLDS] = "no_byte_changes_after_seal",
	[SEAL_IS_ATOMIC] = "failed_seal_is_not_visible",
	[SEAL_SUCCEEDS] = "seal_succeeds_without_writers",
	[REVOKE_HOLDS] = "revoked_buffer_is_inaccessible",
	[ONLY_OWN_DATA] = "no_access_reaches_other_memory",
	[NOTHING_LOST] = "nothing_is_lost_before_revoke",
	[NOTHING_HANGS] = "nothing_hangs",
	[NOTHING_LEFT] = "nothing_is_left",
};

/* The number of times that each happened. */
static unsigned long rounds, sealed, early, busy, revoked, purges;

/* State of the random numbers of the thread that seals and revokes. */
static uint64_t state;

static void fill(void *at, uint64_t bytes, uint32_t tag)
{
	uint64_t i;

	for (i = 0; i < bytes / 8; i++)
		((uint64_t *)at)[i] = (uint64_t)tag << 32 | (i & 0xffff);
}

static bool prepare_words(struct round *r)
{
	uint64_t words[PAGE / 8];

	fill(words, PAGE, r->tag);
	return pwrite(r->words, words, PAGE, 0) == (ssize_t)PAGE;
}

/* Makes and fills the buffer, and its descriptors. */
static bool prepare_round(struct round *r, int words)
{
	static const uint64_t sizes[] = { 5 * PAGE, 64 * PAGE, HUGE + 3 * PAGE };
	struct tensor_alloc alloc;
	void *at;

	memset(r, 0, sizeof(*r));
	r->purging = random_below(&state, 4) == 0;
	r->gentle = random_below(&state, 2);
	r->tag = 0x1000000 + rounds;
	r->seed = state;
	r->bytes = sizes[random_below(&state, 3)];
	r->words = words;
	r->dev = dev_open();
	if (r->dev < 0 || dev_alloc(r->dev, r->bytes, &alloc) || !prepare_words(r))
		return false;
	r->handle = alloc.handle;
	r->mmap_offset = alloc.mmap_offset;
	at = map_shared(r->dev, r->bytes, PROT_READ | PROT_WRITE, r->mmap_offset);
	if (at == MAP_FAILED)
		return false;
	fill(at, r->bytes, r->tag);
	munmap(at, r->bytes);
	r->fd = r->rofd = r->dmabuf = -1;
	if (r->purging)
		return true;
	r->fd = buf_export(r->dev, r->handle, 0);
	r->rofd = buf_export_rights(r->dev, r->handle, TENSOR_RIGHTS_RO, 0);
	r->dmabuf = buf_export(r->dev, r->handle, TENSOR_EXPORT_DMABUF);
	return r->fd >= 0 && r->rofd >= 0;
}

static void free_round(struct round *r)
{
	close(r->dev);
	close(r->fd);
	close(r->rofd);
	close(r->dmabuf);
}

static unsigned long count_actions(const struct round *r)
{
	unsigned long n = 0;
	int i;

	for (i = 0; i < ACTORS; i++)
		n += r->beat[i];
	return n;
}

/* Waits until the actors have done n more actions: an emulated machine may be slow. */
static void wait_for_actions(const struct round *r, unsigned long n)
{
	unsigned long end = count_actions(r) + n;
	int tries;

	for (tries = 0; count_actions(r) < end && tries < 1000; tries++)
		usleep(random_below(&state, 2000));
}

static void reclaim(const struct round *r)
{
	if (!r->purging)
		return;
	write_text("/proc/sys/vm/drop_caches", "2");
	purges++;
}

/* One attempt; the attempt number changes before another thread can see the result. */
static bool seal_once(struct round *r)
{
	unsigned int attempt = r->attempt;
	int err = buf_seal(r->dev, r->handle, TENSOR_SEAL_WRITE);

	if (err == TENSOR_SEAL_WRITE)
		return true;
	if (err != -EBUSY)
		round_broken(r, SEAL_SUCCEEDS, "SEAL: %s", strerror(-err));
	if (attempt < ATTEMPTS)
		r->failed[attempt] = true;
	r->attempt++;
	busy++;
	return false;
}

/* Waits until both threads of each process have dropped their mappings or ended. */
static void wait_until_calm(struct round *r)
{
	int tries;

	r->calm = true;
	for (tries = 0; r->calmed < ACTORS && tries < 200; tries++)
		sleep_ms(2);
}

static bool seal_in_the_end(struct round *r)
{
	int tries;

	for (tries = 0; tries < CALM_AFTER; tries++) {
		if (seal_once(r))
			return true;
		if (random_below(&state, 16) == 0)
			reclaim(r);
		usleep(random_below(&state, 500));
	}
	wait_until_calm(r);
	for (tries = 0; tries < 500; tries++) {
		if (r->purging)
			buf_advise(r->dev, r->handle, TENSOR_ADVISE_WILLNEED);
		if (seal_once(r))
			return true;
		sleep_ms(2);
	}
	round_broken(r, SEAL_SUCCEEDS, "SEAL is still EBUSY");
	return false;
}

/* Compares the bytes at two moments while all actors try to change them. */
static void check_sealed(struct round *r)
{
	char *at = map_shared(r->dev, r->bytes, PROT_READ, r->mmap_offset),
	     *then = malloc(r->bytes);

	if (at == MAP_FAILED || !then) {
		round_broken(r, NOTHING_LOST, "a sealed buffer cannot be read");
		free(then);
		return;
	}
	memcpy(then, at, r->bytes);
	wait_for_actions(r, 50 + random_below(&state, 200));
	if (memcmp(then, at, r->bytes))
		round_broken(r, SEAL_HOLDS, "bytes have changed");
	munmap(at, r->bytes);
	free(then);
}

static void do_seal(struct round *r)
{
	if (!seal_in_the_end(r))
		return;
	r->sealed = true;
	sealed++;
	early += !r->calm;
	check_sealed(r);
}

/* Makes new buffers: an access through the revoked buffer would read or change them. */
static void check_fresh(struct round *r)
{
	struct tensor_alloc alloc[FRESH];
	uint64_t *at[FRESH], i;
	int k, n;

	for (n = 0; n < FRESH && !dev_alloc(r->dev, r->bytes, &alloc[n]); n++) {
		at[n] = map_shared(r->dev, r->bytes, PROT_READ | PROT_WRITE, alloc[n].mmap_offset);
		if (at[n] == MAP_FAILED)
			break;
		if (!all_bytes(at[n], 0, r->bytes))
			round_broken(r, ONLY_OWN_DATA, "a new buffer is not zero");
		fill(at[n], r->bytes, 0xdead);
	}
	wait_for_actions(r, 30 + random_below(&state, 100));
	for (k = 0; k < n; k++) {
		for (i = 0; i < r->bytes / 8; i++) {
			if (at[k][i] >> 32 != 0xdead)
				round_broken(r, ONLY_OWN_DATA, "another buffer was written to");
		}
		munmap(at[k], r->bytes);
		dev_close(r->dev, alloc[k].handle);
	}
}

static void do_revoke(struct round *r)
{
	int err;

	r->revoking = true;
	err = buf_revoke(r->dev, r->handle);
	if (err) {
		round_broken(r, REVOKE_HOLDS, "REVOKE: %s", strerror(-err));
		return;
	}
	r->revoked = true;
	revoked++;
	check_fresh(r);
}

static void transition(struct round *r)
{
	int i, n = random_below(&state, 4);

	for (i = 0; i < n; i++) {
		wait_for_actions(r, random_below(&state, 100));
		reclaim(r);
	}
	wait_for_actions(r, random_below(&state, 200));
	if (random_below(&state, 2))
		do_seal(r);
	if (random_below(&state, 2))
		do_revoke(r);
}

static void print_stack(pid_t pid)
{
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	printf("# process %d:\n%s", pid, read_text(path, text, sizeof(text)));
}

/* Waits for the actors, which end after `stop`; none may end by a signal. */
static void wait_actors(struct round *r, const pid_t *pid)
{
	int i, k, status, waited = 0;

	for (i = 0; i < PROCS; i++) {
		while (!waitpid(pid[i], &status, WNOHANG) && waited < PATIENCE_MS) {
			sleep_ms(1);
			waited++;
		}
		if (waited >= PATIENCE_MS) {
			for (k = 0; k < ACTORS; k++)
				printf("# actor %d: %s, %lu done\n", k, action_name(r->action[k]),
				       r->beat[k]);
			print_stack(pid[i]);
			round_broken(r, NOTHING_HANGS, "actors do not end");
			kill(pid[i], SIGKILL);
		} else if (status) {
			round_broken(r, NOTHING_LOST, "an actor ended with status %x", status);
		}
	}
}

static void check_denied(struct round *r)
{
	unsigned int i;

	for (i = 0; i < ATTEMPTS; i++) {
		if (r->denied[i] && r->failed[i])
			round_broken(r, SEAL_IS_ATOMIC, "EPERM of mmap() while a SEAL failed");
	}
}

static void one_round(struct round *r, int words, int watch)
{
	pid_t pid[PROCS];
	unsigned int i;

	if (!prepare_round(r, words)) {
		round_broken(r, NOTHING_LEFT, "cannot make a buffer: %s", strerror(errno));
		free_round(r);
		return;
	}
	for (i = 0; i < PROCS; i++)
		pid[i] = actors_start(r, i);
	transition(r);
	r->stop = true;
	wait_actors(r, pid);
	check_denied(r);
	free_round(r);
	if (!used_becomes(watch, 0))
		round_broken(r, NOTHING_LEFT, "%lu bytes are still charged", dev_used(watch));
	rounds++;
}

/* Totals of all rounds. */
static unsigned long broken[PROMISES], done[32];

static bool add_counts(const struct round *r, uint64_t seed)
{
	bool good = true;
	unsigned int i;

	for (i = 0; i < 32; i++)
		done[i] += r->done[i];
	for (i = 0; i < PROMISES; i++) {
		if (r->broken[i] && !broken[i])
			printf("# round %lu, seed %#lx: %s: %s\n", rounds, seed, promises[i],
			       r->wrong[i]);
		broken[i] += r->broken[i];
		good &= !r->broken[i];
	}
	fflush(stdout);
	return good;
}

static void print_counts(void)
{
	unsigned int i;

	printf("# %lu rounds: %lu sealed, %lu of them in a race, %lu times busy, %lu revoked, %lu reclaims\n#",
	       rounds, sealed, early, busy, revoked, purges);
	for (i = 0; action_name(i); i++)
		printf(" %s %lu", action_name(i), done[i]);
	printf("\n");
}

static bool nothing_left(void)
{
	int family, tries;
	struct nl_sock *nl = nl_open(&family);
	struct totals t = { 0 };

	for (tries = 0; nl && tries < 200; tries++) {
		if (!totals(nl, family, &t) && !t.clients && !t.bufs && !t.files && !t.dmabufs &&
		    !t.used)
			break;
		sleep_ms(20);
	}
	nl_socket_free(nl);
	if (tries == 200)
		printf("# left: %lu clients, %lu buffers, %lu files, %lu dma-bufs\n", t.clients,
		       t.bufs, t.files, t.dmabufs);
	return nl && tries < 200;
}

static time_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

int main(int argc, char **argv)
{
	unsigned long seconds = env_number("TRANSITIONS", 60);
	int words = memfd_create("words", MFD_CLOEXEC), watch = dev_open();
	struct round *r =
		mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good = true;
	time_t end;
	unsigned int i;

	state = argc > 2 ? strtoul(argv[2], NULL, 0) : env_number("SEED", 1);
	if (argc > 1)
		seconds = strtoul(argv[1], NULL, 0);
	if (watch < 0 || words < 0 || r == MAP_FAILED)
		return 1;
	printf("KTAP version 1\n1..%d\n", PROMISES);
	end = seconds_now() + seconds;
	while (seconds_now() < end && !broken[NOTHING_HANGS]) {
		uint64_t seed = state;

		one_round(r, words, watch);
		if (!add_counts(r, seed) && broken[NOTHING_LEFT])
			break;
	}
	close(watch);
	broken[NOTHING_LEFT] += !nothing_left();
	print_counts();
	for (i = 0; i < PROMISES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "transitions.%s", promises[i]);
		good &= tap_result(!broken[i], name);
	}
	return !good;
}
