// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A tensor to another machine, with the progress, and its sum back:
 *	transfer receive ucx://0.0.0.0:4711 MILLISECONDS	transfer send ucx://host:4711 MILLISECONDS MIB
 *
 * A peer that is silent for so long is gone. Without arguments both ends are processes of this machine.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tensor/remote.h>
#include <tensor/tensor.h>
#include <unistd.h>

static int show(void *context, bool sending, uint64_t done, uint64_t total)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%s %3d %%", sending ? "sent" : "received",
			(int)(100 * done / total));
	return 0; /* or a negative errno, which ends the transfer */
}

static int receive(const char *address, const struct tensor_remote_options *options, int announce)
{
	tensor_channel_listener *listener = tensor_channel_listen(address, options);
	tensor_channel *channel;
	int err;

	if (!listener)
		return tensor_perror("listen");
	dprintf(announce, "%s\n", tensor_channel_listener_address(listener));
	channel = tensor_channel_accept(listener, -1);
	tensor_channel_listener_close(listener);
	tensor_channel_set_progress(channel, show, NULL);
	tensor_scope
		err = tensor_send(channel, tensor_sum(tensor_recv(channel)), 0);
	if (err < 0)
		tensor_perror("receive");
	tensor_channel_close(channel);
	return err;
}

static int transmit(const char *address, const struct tensor_remote_options *options, int mib)
{
	tensor_channel *channel = tensor_channel_connect(address, options, -1);
	double mine, theirs;
	bool same;

	if (!channel)
		return tensor_perror("connect");
	tensor_channel_set_progress(channel, show, NULL);
	tensor_scope {
		tensor *t = tensor_ones(TENSOR_SHAPE(mib, 1 << 18),
					TENSOR_OPTIONS(.dtype = TENSOR_F32));

		same = tensor_send(channel, t, 0) == 0 &&
		       tensor_item(tensor_recv(channel), &theirs) == 0 &&
		       tensor_item(tensor_sum(t), &mine) == 0 && mine == theirs;
	}
	same ? dprintf(1, "sent %d MiB, and the sum came back\n", mib) : tensor_perror("send");
	tensor_channel_close(channel);
	return same ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct tensor_remote_options options = { .timeout_ns =
							 argc > 3 ? atoi(argv[3]) * 1000000LL : 0 };
	char address[64] = "";
	int ends[2], status = 0, err;

	if (argc > 3)
		return (argc > 4 ? transmit(argv[2], &options, atoi(argv[4])) :
				   receive(argv[2], &options, 1)) < 0;
	if (pipe(ends) < 0)
		return 1;
	if (!fork()) /* before UCX is used: it does not survive a fork */
		_exit(read(ends[0], address, sizeof(address)) <= 0 ||
		      transmit(strtok(address, "\n"), &options, 64));
	err = receive("ucx://127.0.0.1:0", &options, ends[1]);
	close(ends[1]);
	wait(&status);
	return err == -ENOTSUP ? 0 : err || status; /* UCX is not installed */
}
