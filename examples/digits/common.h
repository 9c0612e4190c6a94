/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The protocol and the network that loader, trainer and watcher share.
 *
 * The trainer listens on a unix seqpacket socket. The first byte of a connection is the role.
 *
 *   loader  -> trainer   tensors: held-out images and labels; then for each epoch images, labels
 *   trainer -> loader    'n': the tensors of an epoch may be overwritten; 'e': training has ended
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

/*
 * Return a listening socket, or a connected one that has sent its role; -1 with a message on
 * stderr.
 */
int digits_listen(const char *path);
int digits_connect(const char *path, char role);

/* Receives one byte or one report: 1, 0 if the peer has exited, -1 with a message on stderr. */
int digits_receive(int fd, void *data, size_t size);
/* Returns 0, or -1 if the peer has exited. */
int digits_send(int fd, const void *data, size_t size);

/* Scores [n, 10] of images [n, 64]. */
tensor *digits_forward(tensor *images, tensor *const *weights);

/* xorshift64*: repeatable for a seed. */
uint64_t digits_random(uint64_t *state);

#endif
