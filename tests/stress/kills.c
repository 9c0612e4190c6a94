// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Kills processes at random moments while they use the device in all ways, and checks that nothing
 * of them is left.
 *
 * KILLS processes are killed, 10,000 by default, chosen by SEED. They also send fds to each other
 * and leave some in flight. Half of them charge allocations to their memory cgroup, which bypasses
 * the pool.
 */
#include "stress.h"

#define WORKERS 6

static int sock[2];
static uint64_t state;

static void work_alloc(struct hands *h)
{
	static const uint64_t sizes[] = { PAGE, 3 * PAGE, 64 * PAGE, HUGE, HUGE + PAGE };

	if (h->dev < 0)
		h->dev = open("/dev/tensor", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	dev_alloc(h->dev, sizes[random_below(&state, 5)], &h->alloc);
}

static void work_touch(struct hands *h)
{
	size_t i;

	hands_map(h, h->dev, h->alloc.mmap_offset, h->alloc.bytes);
	for (i = 0; h->at && i < h->bytes; i += 8 * PAGE)
		h->at[i] = 1;
}

static void work_export(struct hands *h)
{
	static const uint32_t some[] = { TENSOR_RIGHTS_ALL, TENSOR_RIGHTS_RW, TENSOR_RIGHTS_RO,
					 TENSOR_RIGHT_READ };
	uint32_t rights = some[random_below(&state, 4)];

	hands_swap_fd(&h->fd,
		      buf_export_rights(h->dev, h->alloc.handle, rights,
					random_below(&state, 2) ? TENSOR_EXPORT_INHERIT : 0));
}

static void work_dmabuf(struct hands *h)
{
	hands_swap_fd(&h->dmabuf, buf_export(h->dev, h->alloc.handle, TENSOR_EXPORT_DMABUF));
}

static void work_send(struct hands *h)
{
	if (h->fd >= 0)
		send_fd(sock[0], random_below(&state, 2) ? h->fd : h->dmabuf);
}

static void work_receive(struct hands *h)
{
	hands_swap_fd(&h->fd, recv_fd(sock[1]));
}

static void work_import(struct hands *h)
{
	struct tensor_import import;

	if (!buf_import(h->dev, random_below(&state, 3) ? h->fd : h->dmabuf, &import)) {
		hands_map(h, h->dev, import.mmap_offset, PAGE);
		if (random_below(&state, 2))
			dev_close(h->dev, import.handle);
	}
}

static void work_describe(struct hands *h)
{
	struct tensor_desc desc = { .bits = 8,
				    .dtype = 2,
				    .ndim = 1,
				    .sizes = { 16 },
				    .strides = { 1 },
				    .label = "killed" };

	buf_meta(h->dev, h->alloc.handle, TENSOR_META_SET, &desc);
}

static void work_state(struct hands *h)
{
	struct tensor_sync sync = { .size = sizeof(sync),
				    .flags = 2 + random_below(&state, 2) * 4,
				    .handle = h->alloc.handle };

	switch (random_below(&state, 4)) {
	case 0:
		buf_seal(h->dev, h->alloc.handle, 1U << random_below(&state, 3));
		break;
	case 1:
		buf_revoke(h->dev, h->alloc.handle);
		break;
	case 2:
		buf_advise(h->dev, h->alloc.handle, random_below(&state, 2));
		break;
	default:
		dev_call(h->dev, TENSOR_IOC_SYNC, &sync);
	}
}

static void work_pin(struct hands *h)
{
	struct tensor_pin pin = { .size = sizeof(pin), .bytes = 4 * PAGE };
	void *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	pin.addr = (unsigned long)at;
	dev_call(h->dev, TENSOR_IOC_PIN, &pin);
	munmap(at, 4 * PAGE);
}

static void work_look(struct hands *h)
{
	struct pollfd p = { .fd = h->dev, .events = POLLIN };
	struct tensor_event event;
	struct nl_sock *nl;
	int family;

	poll(&p, 1, random_below(&state, 3));
	if (read(h->dev, &event, sizeof(event)) < 0 && random_below(&state, 4))
		return;
	nl = nl_open(&family);
	if (nl)
		dump(nl, family, TENSOR_CMD_BUF_GET);
	nl_socket_free(nl);
}

/* A child inherits the mappings and fds and is killed a moment later. */
static void work_fork(struct hands *h)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == 1)
		_exit(0);
	work_touch(h);
	pause();
	_exit(0);
}

static void work_drop(struct hands *h)
{
	if (random_below(&state, 2))
		hands_empty(h);
	else
		dev_close(h->dev, h->alloc.handle);
}

static void (*const works[])(struct hands *h) = {
	work_alloc,  work_alloc, work_alloc,   work_touch,  work_touch,	   work_export,
	work_dmabuf, work_send,	 work_receive, work_import, work_describe, work_state,
	work_pin,    work_look,	 work_fork,    work_drop,   work_drop,
};

static void work_until_killed(void)
{
	struct hands h = { .dev = -1, .fd = -1, .dmabuf = -1 };
	unsigned int forks = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		unsigned int i = random_below(&state, sizeof(works) / sizeof(works[0]));

		if (works[i] != work_fork || forks++ < 2)
			works[i](&h);
	}
}

static pid_t start_worker(unsigned long n)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	state += n * 0x9e3779b97f4a7c15;
	work_until_killed();
	_exit(0);
}

static void close_sent_fds(void)
{
	int fd;

	while ((fd = recv_fd(sock[1])) >= 0 || fd == -ENOMSG) {
		if (fd >= 0)
			close(fd);
	}
}

static void kill_one(pid_t *pid)
{
	kill(*pid, SIGKILL);
	waitpid(*pid, NULL, 0);
}

static void kill_many(unsigned long kills)
{
	pid_t pids[WORKERS];
	unsigned long n;
	unsigned int i;

	for (n = 0; n < WORKERS; n++)
		pids[n] = start_worker(n);
	for (; n < kills; n++) {
		if (n == kills / 2)
			write_text(PARAM("account"), "N");
		/* from the first instruction to some time of work */
		usleep(random_below(&state, random_below(&state, 4) ? 8000 : 60000));
		i = random_below(&state, WORKERS);
		kill_one(&pids[i]);
		pids[i] = start_worker(n);
		if (n % 1000 == 0) {
			printf("# %lu killed\n", n);
			fflush(stdout);
		}
	}
	for (i = 0; i < WORKERS; i++)
		kill_one(&pids[i]);
	write_text(PARAM("account"), "Y");
}

/*
 * Compares the totals of the netlink family with zero; children of killed processes need some time
 * to end.
 */
static bool nothing_left(struct nl_sock *nl, int family)
{
	struct totals t;
	int tries;

	for (tries = 0; tries < 200; tries++) {
		if (!totals(nl, family, &t) && t.clients == 1 && !t.bufs)
			return true;
		sleep_ms(50);
	}
	printf("# %lu clients, %lu buffers\n", t.clients, t.bufs);
	return false;
}

int main(void)
{
	unsigned long kills = env_number("KILLS", 10000);
	int dev = dev_open(), family = 0;
	struct nl_sock *nl = nl_open(&family);
	int64_t before;
	bool good = true;
	long owned;

	state = env_number("SEED", 1);
	if (dev < 0 || !nl || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sock))
		return 1;
	printf("KTAP version 1\n1..4\n");
	/* the first processes fill caches */
	kill_many(kills / 20 + WORKERS);
	close_sent_fds();
	nothing_left(nl, family);
	before = pages_free();
	kill_many(kills);
	close_sent_fds();
	good &= tap_result(nothing_left(nl, family), "kills.no_client_and_no_buffer_is_left");
	good &= tap_result(used_becomes(dev, 0), "kills.nothing_is_charged");
	good &= tap_result(pages_agree(before, pages_free(), kills), "kills.memory_is_freed");
	close(dev);
	write_text(PARAM("pool_bytes"), "0");
	owned = pages_of_module(true);
	printf("# %ld pages of the module\n", owned);
	good &= tap_result(owned <= 0, "kills.module_owns_no_page");
	return !good;
}
