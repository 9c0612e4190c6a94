// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sharing: a tensor goes to another process without a copy, between messages of the program's own on the same socket.
 * The child reads weights that the parent goes on changing, and cannot write them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tensor/tensor.h>
#include <unistd.h>

#define NAME 16 /* bytes of the program's own messages */

static bool say(int socket, const char *text)
{
	char message[NAME] = "";

	strncpy(message, text, NAME - 1);
	return send(socket, message, NAME, MSG_NOSIGNAL) == NAME;
}

static bool hear(int socket, const char *expected)
{
	char message[NAME];

	return recv(socket, message, NAME, MSG_WAITALL) == NAME && !strcmp(message, expected);
}

static int child(int socket)
{
	tensor_channel *channel = tensor_channel_open(socket);
	double before = 0, after = 0;
	int status = 1;

	if (!hear(socket, "weights"))
		return 1;
	tensor_scope {
		tensor *weights = tensor_recv(channel); /* its own message, no byte more */

		if (tensor_item(tensor_sum(weights), &before) < 0 || !say(socket, "seen") ||
		    !hear(socket, "changed") || tensor_item(tensor_sum(weights), &after) < 0)
			break;
		printf("the child sees %g, then %g\n", before, after);
		status = before != 12 || after != 24 ||
			 tensor_add_scalar_(weights, TENSOR_SCALAR(1)) ||
			 tensor_last_error()->code != EACCES;
	}
	tensor_channel_close(channel);
	return status;
}

int main(void)
{
	int ends[2], status = 1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || (pid = fork()) < 0)
		return 1;
	if (!pid)
		return child(ends[1]);
	close(ends[1]);
	tensor_channel *channel = tensor_channel_open(ends[0]);
	tensor_scope {
		tensor *weights =
			tensor_ones(TENSOR_SHAPE(3, 4), TENSOR_OPTIONS(.shareable = true));

		if (!say(ends[0], "weights") ||
		    tensor_send(channel, weights, TENSOR_SEND_READONLY) < 0) {
			tensor_perror("send");
			break;
		}
		if (hear(ends[0], "seen") && tensor_add_scalar_(weights, TENSOR_SCALAR(1)))
			say(ends[0], "changed");
	}
	tensor_channel_close(channel); /* the socket stays the program's */
	waitpid(pid, &status, 0);
	return status != 0;
}
