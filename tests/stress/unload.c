// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Loads the module, uses it, unloads it while it is in use, which must fail, and unloads it when it
 * is not in use, which must succeed at once. CYCLES times, 1,000 by default.
 *
 * In each cycle one object keeps the module loaded: an open device, a mapping, a buffer fd, a dma-
 * buf fd, a fd in flight, a dump under way, a process that is killed with all of them. Meanwhile
 * other processes open the device and send netlink requests, whether it is loaded or not.
 */
#include "stress.h"

#define MODULE "/modules/tensor.ko"

/* References that keep the module loaded: fds of this process, or a child. */
struct kept {
	int fd[2];
	char *at;
	pid_t pid;
	struct nl_sock *nl;
};

static int load(void)
{
	int fd = open(MODULE, O_RDONLY | O_CLOEXEC), err;

	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return err;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "tensor", O_NONBLOCK) ? -errno : 0;
}

static bool keep_device(struct kept *k)
{
	k->fd[0] = dev_open();
	return k->fd[0] >= 0;
}

static bool keep_handle(struct kept *k)
{
	struct tensor_alloc alloc;

	k->fd[0] = dev_open();
	return !dev_alloc(k->fd[0], HUGE, &alloc);
}

static bool keep_buffer(struct kept *k)
{
	k->fd[0] = buf_new_fd(3 * PAGE);
	return k->fd[0] >= 0;
}

static bool keep_mapping(struct kept *k)
{
	int fd = buf_new_fd(HUGE);

	k->at = map_shared(fd, HUGE, PROT_READ | PROT_WRITE, 0);
	close(fd);
	if (k->at == MAP_FAILED)
		return false;
	memset(k->at, 1, HUGE);
	return true;
}

static bool keep_dmabuf(struct kept *k)
{
	struct tensor_alloc alloc;
	int dev = dev_open();

	if (dev_alloc(dev, 2 * PAGE, &alloc))
		return false;
	k->fd[0] = buf_export(dev, alloc.handle, TENSOR_EXPORT_DMABUF);
	if (k->fd[0] == -EOPNOTSUPP)
		k->fd[0] = buf_export(dev, alloc.handle, 0);
	close(dev);
	return k->fd[0] >= 0;
}

static bool keep_message(struct kept *k)
{
	int fd = buf_new_fd(PAGE);

	if (fd < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, k->fd) || send_fd(k->fd[0], fd))
		return false;
	close(fd);
	return true;
}

/* More buffers than a part of a dump holds; they are then freed, so that only the dump remains. */
static bool keep_dump(struct kept *k)
{
	struct tensor_alloc alloc;
	struct nl_msg *msg;
	int family, i, dev = dev_open();
	bool sent;

	for (i = 0; i < 200; i++) {
		if (dev_alloc(dev, PAGE, &alloc))
			return false;
	}
	k->nl = nl_open(&family);
	if (!k->nl)
		return false;
	msg = request(family, NLM_F_DUMP, TENSOR_CMD_BUF_GET, 0, NULL, 0);
	sent = nl_send_auto(k->nl, msg) > 0;
	nlmsg_free(msg);
	close(dev);
	return sent;
}

static bool keep_process(struct kept *k)
{
	struct tensor_alloc alloc;
	int ready[2];
	char byte;

	if (pipe(ready))
		return false;
	k->pid = fork();
	if (!k->pid) {
		int dev = dev_open(), fd;

		dev_alloc(dev, HUGE, &alloc);
		fd = buf_export(dev, alloc.handle, 0);
		memset(map_shared(fd, HUGE, PROT_READ | PROT_WRITE, 0), 1, HUGE);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return false;
	close(ready[0]);
	return true;
}

static bool (*const keepers[])(struct kept *k) = {
	keep_device, keep_handle,  keep_buffer, keep_mapping,
	keep_dmabuf, keep_message, keep_dump,	keep_process,
};

static void release_kept(struct kept *k)
{
	int i;

	if (k->pid) {
		kill(k->pid, SIGKILL);
		waitpid(k->pid, NULL, 0);
	}
	if (k->at)
		munmap(k->at, HUGE);
	nl_socket_free(k->nl);
	for (i = 0; i < 2; i++) {
		if (k->fd[i] >= 0)
			close(k->fd[i]);
	}
}

/* Opens and closes the device repeatedly; it must not affect the result. */
static pid_t start_other_user(void)
{
	struct tensor_alloc alloc;
	pid_t pid = fork();
	int dev, family;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		struct nl_sock *nl = nl_open(&family);

		if (nl && family >= 0)
			dump(nl, family, TENSOR_CMD_CLIENT_GET);
		nl_socket_free(nl);
		dev = dev_open();
		if (dev >= 0) {
			dev_alloc(dev, PAGE, &alloc);
			close(dev);
		}
		sleep_ms(3);
	}
}

/**
 * struct counts - numbers of unload attempts in all cycles
 * @held: refused while in use: expected
 * @let: succeeded while in use: a defect
 * @late: unloaded only at a later attempt, since another process used it
 * @stuck: never succeeded: a defect
 * @broken: cycles that failed before
 */
struct counts {
	unsigned long held, let, late, stuck, broken;
};

static bool run_cycle(unsigned long n, struct counts *c)
{
	struct kept k = { .fd = { -1, -1 } };
	int tries;

	if (load() || !keepers[n % (sizeof(keepers) / sizeof(keepers[0]))](&k)) {
		c->broken++;
		release_kept(&k);
		return false;
	}
	if (unload() == -EWOULDBLOCK)
		c->held++;
	else
		c->let++;
	release_kept(&k);
	for (tries = 0; unload(); tries++) {
		if (tries == 400) {
			c->stuck++;
			return false;
		}
		sleep_ms(5);
	}
	c->late += tries > 0;
	return true;
}

static void run_cycles(unsigned long n, struct counts *c)
{
	pid_t pid[2] = { start_other_user(), start_other_user() };
	unsigned long i;

	for (i = 0; i < n && run_cycle(i, c); i++) {
		if (i % 100 == 0) {
			printf("# %lu cycles\n", i);
			fflush(stdout);
		}
	}
	kill(pid[0], SIGKILL);
	kill(pid[1], SIGKILL);
	waitpid(pid[0], NULL, 0);
	waitpid(pid[1], NULL, 0);
}

int main(void)
{
	unsigned long n = env_number("CYCLES", 1000);
	struct counts warm = { 0 }, c = { 0 };
	int64_t before, after, slab;
	bool good = true;

	printf("KTAP version 1\n1..4\n");
	if (unload())
		return 1;
	run_cycles(n / 20 + 8, &warm);
	before = pages_free();
	slab = read_number("/proc/meminfo", "Slab");
	run_cycles(n, &c);
	printf("# %lu refused, %lu wrongly unloaded, %lu late, %lu stuck, %lu broken\n", c.held,
	       c.let, c.late, c.stuck, c.broken);
	good &= tap_result(c.held == n && !c.let, "unload.is_refused_while_in_use");
	good &= tap_result(!c.stuck && !c.broken, "unload.succeeds_when_unused");
	after = pages_free();
	printf("# slab %ld KiB before, %ld KiB after\n", slab,
	       read_number("/proc/meminfo", "Slab"));
	good &= tap_result(pages_agree(before, after, n), "unload.memory_is_freed");
	good &= tap_result(!load(), "unload.module_loads_again");
	return !good;
}
