// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A tensor to another machine, and its sum back; without arguments both are this one. MILLISECONDS until a silent peer is gone.
 *	transfer receive ucx://0.0.0.0:4711 MILLISECONDS	transfer send ucx://host:4711 MILLISECONDS MIB
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tensor/remote.h>
#include <tensor/tensor.h>
#include <unistd.h>

/* Or a negative errno as result, which ends the transfer. */
static int show(void *s, bool sending, uint64_t done, uint64_t total)
{
	return dprintf(2, "\r%s %.0f%%", sending ? "sent" : (char *)s, 100. * done / total) < 0;
}

static int receive(const char *address, const struct tensor_remote_options *o, int announce)
{
	tensor_channel_listener *listener = tensor_channel_listen(address, o);
	tensor_channel *channel;
	int err;

	if (!listener)
		return tensor_perror("listen");
	dprintf(announce, "%s\n", tensor_channel_listener_address(listener));
	channel = tensor_channel_accept(listener, -1);
	tensor_channel_listener_close(listener);
	tensor_channel_set_progress(channel, show, "received");
	tensor_scope
		err = tensor_send(channel, tensor_sum(tensor_recv(channel)), 0);
	if (err < 0)
		tensor_perror("receive");
	tensor_channel_close(channel);
	return err;
}

static int transmit(const char *address, const struct tensor_remote_options *o, int64_t mib)
{
	tensor_channel *channel = tensor_channel_connect(address, o, -1);
	double mine, back;
	int err = -1;

	if (!channel)
		return tensor_perror("connect");
	tensor_channel_set_progress(channel, show, NULL);
	tensor_scope {
		tensor *t = tensor_ones(TENSOR_SHAPE(mib << 18), (tensor_options){ 0 });

		if (tensor_send(channel, t, 0) == 0 && !tensor_item(tensor_recv(channel), &back))
			err = tensor_item(tensor_sum(t), &mine) || mine != back;
	}
	err ? tensor_perror("send") : dprintf(1, "sent %d MiB, and the sum came back\n", (int)mib);
	tensor_channel_close(channel);
	return err;
}

int main(int argc, char **argv)
{
	struct tensor_remote_options o = { .timeout_ns = argc > 3 ? atoi(argv[3]) * 1000000LL : 0 };
	char at[64] = "";
	int ends[2], err, status = 1;

	if (argc > 3)
		return !!(argc > 4 ? transmit(argv[2], &o, atoi(argv[4])) :
				     receive(argv[2], &o, 1));
	if (pipe(ends) < 0)
		return 1;
	if (!fork()) { /* before UCX is used: it does not survive a fork */
		close(ends[1]);
		_exit(read(ends[0], at, 63) <= 0 || transmit(strtok(at, "\n"), &o, 64));
	}
	err = receive("ucx://127.0.0.1:0", &o, ends[1]);
	close(ends[1]);
	wait(&status);
	return err == -ENOTSUP ? 0 : err || status; /* UCX is not installed */
}
