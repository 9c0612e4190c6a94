/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What loader, trainer and watcher agree on: the socket, who says what on it, and the network.
 *
 * The trainer listens on a unix seqpacket socket. The first byte of a connection is the role.
 *
 *   loader  -> trainer   tensors: held-out images and labels; then for each epoch images, labels
 *   trainer -> loader    'n': an epoch's tensors are free again; 'e': training has ended
 *   trainer -> watcher   tensors: held-out images and labels, then the weights, read-only;
 *                        struct digits_report after each epoch
 *   watcher -> trainer   'k': evaluated
 *
 * End of file without 'e' or a last report means that the peer died.
 */
#ifndef DIGITS_COMMON_H
#define DIGITS_COMMON_H

#include <stdint.h>
#include <tensor/tensor.h>

#define PIXELS	   64
#define HIDDEN	   128
#define CLASSES	   10
#define PARAMETERS 4 /* w1 [64, 128], b1 [128], w2 [128, 10], b2 [10] */

#define ROLE_LOADER  'L'
#define ROLE_WATCHER 'W'

/* Exit status of a program whose peer died. */
#define EXIT_PEER_GONE 3

struct digits_report {
	int32_t epoch, epochs; /* epoch counts from 1 */
	float loss;	       /* mean of the epoch's batches */
};

/* A listening socket, or a connected one that has said its role; -1 with a message on stderr. */
int digits_listen(const char *path);
int digits_connect(const char *path, char role);

/* One byte or one report from the peer: 1, 0 when it is gone, -1 with a message on stderr. */
int digits_receive(int fd, void *data, size_t size);
/* 0, or -1 when the peer is gone. */
int digits_send(int fd, const void *data, size_t size);

/* Scores [n, 10] of images [n, 64]. */
tensor *digits_forward(tensor *images, tensor *const *weights);

/* A small repeatable generator (xorshift64*). */
uint64_t digits_random(uint64_t *state);

#endif
