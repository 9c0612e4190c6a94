// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The trainer: maps the tensors of the loader and trains 64-128-10 with relu, cross entropy and SGD
 * with momentum. Its weights are shareable; the watcher reads them after every epoch without a
 * copy.
 *
 * usage: digits-trainer SOCKET [EPOCHS [BATCH]]
 */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEARNING_RATE 0.1
#define MOMENTUM      0.9

struct peer {
	int fd;
	tensor_channel *channel;
};

struct trainer {
	struct peer loader, watcher; /* fd -1: not connected */
	tensor *weights[PARAMETERS], *velocity[PARAMETERS];
	tensor *test_images, *test_labels;
	int epoch, epochs, batch; /* epoch counts from 1 */
};

/* Accepts a loader and a watcher, in any order. */
static int accept_peers(struct trainer *t, const char *path)
{
	int listener = digits_listen(path);

	if (listener < 0)
		return -1;
	while (t->loader.fd < 0 || t->watcher.fd < 0) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		struct peer *p;
		char role;

		if (fd < 0) {
			perror("trainer: accept");
			break;
		}
		if (digits_receive(fd, &role, 1) != 1) {
			close(fd);
			continue;
		}
		p = role == ROLE_LOADER ? &t->loader : &t->watcher;
		if ((role != ROLE_LOADER && role != ROLE_WATCHER) || p->fd >= 0) {
			fprintf(stderr, "trainer: an unexpected peer (role %d)\n", role);
			close(fd);
			continue;
		}
		p->fd = fd;
		p->channel = tensor_channel_open(fd);
		if (!p->channel)
			return tensor_perror("trainer");
	}
	close(listener);
	unlink(path);
	return t->loader.fd >= 0 && t->watcher.fd >= 0 ? 0 : -1;
}

static void drop_peer(struct peer *p)
{
	tensor_channel_close(p->channel);
	if (p->fd >= 0)
		close(p->fd);
	*p = (struct peer){ .fd = -1 };
}

/* Uniform in +-sqrt(6 / fan_in) for weights, zero for biases. */
static int make_weights(struct trainer *t)
{
	static const int64_t shape[PARAMETERS][2] = {
		{ PIXELS, HIDDEN }, { HIDDEN, 0 }, { HIDDEN, CLASSES }, { CLASSES, 0 }
	};
	static const char *const label[PARAMETERS] = { "w1", "b1", "w2", "b2" };
	uint64_t seed = 42;

	for (int i = 0; i < PARAMETERS; i++) {
		tensor_ints size = { shape[i], shape[i][1] ? 2 : 1 };
		tensor *w =
			tensor_zeros(size, TENSOR_OPTIONS(.dtype = TENSOR_F32, .shareable = true));
		float *p, bound = sqrtf(6.0f / shape[i][0]);

		if (!w)
			return tensor_perror("trainer");
		p = tensor_mutable_data(w);
		for (int64_t k = 0; size.len == 2 && k < tensor_numel(w); k++)
			p[k] = bound * ((digits_random(&seed) >> 40) * 0x1p-23f - 1);
		tensor_set_label(w, label[i]);
		t->weights[i] = w;
		t->velocity[i] = tensor_zeros_like(w, TENSOR_OPTIONS(0));
		if (!t->velocity[i] || tensor_set_requires_grad(w, true) < 0)
			return tensor_perror("trainer");
	}
	return 0;
}

static int greet_watcher(struct trainer *t)
{
	if (tensor_send(t->watcher.channel, t->test_images, TENSOR_SEND_READONLY) < 0 ||
	    tensor_send(t->watcher.channel, t->test_labels, TENSOR_SEND_READONLY) < 0)
		return tensor_perror("trainer: watcher");
	for (int i = 0; i < PARAMETERS; i++)
		if (tensor_send(t->watcher.channel, t->weights[i], TENSOR_SEND_READONLY) < 0)
			return tensor_perror("trainer: watcher");
	return 0;
}

/* v = momentum * v + grad; w -= rate * v; the rate decreases linearly to zero */
static int update(struct trainer *t)
{
	double rate = LEARNING_RATE * (1 - (double)(t->epoch - 1) / t->epochs);

	tensor_no_grad {
		for (int i = 0; i < PARAMETERS; i++) {
			tensor *v = tensor_mul_scalar_(t->velocity[i], TENSOR_SCALAR(MOMENTUM));

			v = tensor_add_(v, tensor_grad(t->weights[i]));
			if (!tensor_add_opt_(t->weights[i], v, TENSOR_SCALAR(-rate)))
				return -1;
			tensor_set_grad(t->weights[i], NULL);
		}
	}
	return 0;
}

static int step(struct trainer *t, tensor *images, tensor *labels, double *loss_sum)
{
	double value;

	tensor_scope {
		tensor *loss = tensor_cross_entropy(digits_forward(images, t->weights), labels);

		if (tensor_backward(loss) < 0 || tensor_item(loss, &value) < 0 || update(t) < 0)
			return tensor_perror("trainer");
		*loss_sum += value;
	}
	return 0;
}

/* Trains on all tensors of the loader once. Returns the mean loss, or -1. */
static double train_epoch(struct trainer *t, tensor *images, tensor *labels)
{
	int64_t n = tensor_size(images, 0);
	double sum = 0;
	int steps = 0;

	for (int64_t at = 0; at < n; at += t->batch, steps++) {
		int64_t count = n - at < t->batch ? n - at : t->batch;
		int err = 0;

		tensor_scope {
			err = step(t, tensor_narrow(images, 0, at, count),
				   tensor_narrow(labels, 0, at, count), &sum);
		}
		if (err < 0)
			return -1;
	}
	return sum / steps;
}

/*
 * Sends a report to the watcher and waits until it has evaluated; training continues if the watcher
 * died.
 */
static void report(struct trainer *t, int epoch, double loss)
{
	struct digits_report r = { epoch, t->epochs, (float)loss };
	char answer;

	if (t->watcher.fd < 0)
		return;
	if (digits_send(t->watcher.fd, &r, sizeof(r)) < 0 ||
	    digits_receive(t->watcher.fd, &answer, 1) != 1) {
		fprintf(stderr, "trainer: the watcher is gone after epoch %d; going on\n", epoch);
		drop_peer(&t->watcher);
	}
}

static int train(struct trainer *t)
{
	for (t->epoch = 1; t->epoch <= t->epochs; t->epoch++) {
		int epoch = t->epoch;
		double loss = -1;

		tensor_scope {
			tensor *images = tensor_recv(t->loader.channel);
			tensor *labels = images ? tensor_recv(t->loader.channel) : NULL;

			if (!labels) {
				fprintf(stderr, "trainer: the loader is gone after epoch %d: %s\n",
					epoch - 1, tensor_last_error()->text);
				return EXIT_PEER_GONE;
			}
			loss = train_epoch(t, images, labels);
		}
		if (loss < 0)
			return EXIT_FAILURE;
		report(t, epoch, loss);
		if (digits_send(t->loader.fd, epoch < t->epochs ? "n" : "e", 1) < 0) {
			fprintf(stderr, "trainer: the loader is gone after epoch %d\n", epoch);
			return epoch < t->epochs ? EXIT_PEER_GONE : EXIT_SUCCESS;
		}
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct trainer t = {
		.loader = { .fd = -1 }, .watcher = { .fd = -1 }, .epochs = 30, .batch = 32
	};
	int status = EXIT_FAILURE;

	if (argc > 2)
		t.epochs = atoi(argv[2]);
	if (argc > 3)
		t.batch = atoi(argv[3]);
	if (argc < 2 || argc > 4 || t.epochs < 1 || t.batch < 1) {
		fprintf(stderr, "usage: digits-trainer SOCKET [EPOCHS [BATCH]]\n");
		return 2;
	}
	if (make_weights(&t) == 0 && accept_peers(&t, argv[1]) == 0) {
		t.test_images = tensor_recv(t.loader.channel);
		t.test_labels = t.test_images ? tensor_recv(t.loader.channel) : NULL;
		if (!t.test_labels) {
			tensor_perror("trainer: the loader is gone");
			status = EXIT_PEER_GONE;
		} else if (greet_watcher(&t) == 0) {
			status = train(&t);
		}
	}
	drop_peer(&t.loader);
	drop_peer(&t.watcher);
	for (int i = 0; i < PARAMETERS; i++) {
		tensor_release(t.weights[i]);
		tensor_release(t.velocity[i]);
	}
	tensor_release(t.test_images);
	tensor_release(t.test_labels);
	return status;
}
