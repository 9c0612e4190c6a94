// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The watcher: maps the weights of the trainer read-only and evaluates the held-out images after
 * every epoch, on the memory that the trainer updates.
 *
 * usage: digits-watcher SOCKET [--half COMMAND]
 *     COMMAND runs once, in the middle of training
 *
 * The last line is "held out: 97.5 %"; the exit status is 1 below 96 %.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GOAL 96.0

struct watcher {
	int fd;
	tensor *images, *labels, *weights[PARAMETERS];
	const char *half_command;
};

static int receive_tensors(struct watcher *w, tensor_channel *channel)
{
	tensor **all[2 + PARAMETERS] = { &w->images, &w->labels };

	for (int i = 0; i < PARAMETERS; i++)
		all[2 + i] = &w->weights[i];
	for (int i = 0; i < 2 + PARAMETERS; i++) {
		*all[i] = tensor_recv(channel);
		if (!*all[i])
			return tensor_perror("watcher");
	}
	return 0;
}

/* Percentage of held-out images that are classified correctly; -1 on failure. */
static double evaluate(struct watcher *w)
{
	double right = -1;

	tensor_scope {
		tensor *scores = digits_forward(w->images, w->weights);
		tensor *hits = tensor_eq(tensor_argmax(scores, 1, false), w->labels);
		tensor *share = tensor_mean(tensor_to(hits, TENSOR_OPTIONS(.dtype = TENSOR_F32)));

		if (tensor_item(share, &right) < 0) {
			tensor_perror("watcher");
			return -1;
		}
	}
	return 100 * right;
}

static void show(const struct digits_report *r, double percent)
{
	char bar[31];
	int filled = 30 * r->epoch / r->epochs;

	/* Prints about a dozen lines, the first and the last epoch among them. */
	if (r->epoch != 1 && r->epoch != r->epochs && r->epoch % (r->epochs / 10 + 1))
		return;
	memset(bar, '.', 30);
	memset(bar, '#', filled);
	bar[30] = '\0';
	printf("watcher: epoch %3d  [%s]  loss %.4f  held out %.1f %%\n", r->epoch, bar, r->loss,
	       percent);
	fflush(stdout);
}

static int watch(struct watcher *w)
{
	struct digits_report r = { 0 };
	double percent = -1;
	int got;

	while ((got = digits_receive(w->fd, &r, sizeof(r))) == 1) {
		percent = evaluate(w);
		if (percent < 0)
			return EXIT_FAILURE;
		show(&r, percent);
		if (w->half_command && r.epoch == (r.epochs + 1) / 2 &&
		    system(w->half_command) != 0)
			fprintf(stderr, "watcher: %s failed\n", w->half_command);
		if (digits_send(w->fd, "k", 1) < 0)
			break;
		if (r.epoch == r.epochs) {
			printf("held out: %.1f %%\n", percent);
			return percent >= GOAL ? EXIT_SUCCESS : EXIT_FAILURE;
		}
	}
	if (got < 0)
		return EXIT_FAILURE;
	fprintf(stderr, "watcher: the trainer is gone after epoch %d\n", r.epoch);
	return EXIT_PEER_GONE;
}

int main(int argc, char **argv)
{
	struct watcher w = { 0 };
	tensor_channel *channel;
	int status = EXIT_FAILURE;

	if (argc == 4 && !strcmp(argv[2], "--half")) {
		w.half_command = argv[3];
	} else if (argc != 2) {
		fprintf(stderr, "usage: digits-watcher SOCKET [--half COMMAND]\n");
		return 2;
	}
	w.fd = digits_connect(argv[1], ROLE_WATCHER);
	if (w.fd < 0)
		return EXIT_FAILURE;
	channel = tensor_channel_open(w.fd);
	if (channel && receive_tensors(&w, channel) == 0)
		status = watch(&w);
	for (int i = 0; i < PARAMETERS; i++)
		tensor_release(w.weights[i]);
	tensor_release(w.images);
	tensor_release(w.labels);
	tensor_channel_close(channel);
	close(w.fd);
	return status;
}
