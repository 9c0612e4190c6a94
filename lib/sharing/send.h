/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The message of one tensor (share.c), for the public functions (send.c). */
#ifndef TENSOR_SEND_H
#define TENSOR_SEND_H

#include "sharing/link.h"

/* Flags of channel_send_tensor() besides TENSOR_SEND_*. */
#define SEND_PART      (1u << 30) /* a part of a message */
#define SEND_BY_SOCKET (1u << 31) /* also if there is a ring */

/* A message to send. */
struct outgoing {
	tensor *const *tensors;
	int n;
	uint64_t tag;
	unsigned flags;
	int64_t until;
};

/* Checks an argument, and moves private memory into a buffer. 0, or -errno with the error set. */
int channel_send_check(tensor *t, unsigned flags);
/* Sends a tensor that was checked. The caller holds sending. 0, or -errno with the error set. */
int channel_send_tensor(tensor_channel *ch, tensor *t, unsigned flags, int64_t until);
/* Checks the arguments of a public function. 0, or -EINVAL with the error set. */
int outgoing_check(const char *function, const struct outgoing *o);
/* Whether a message of n tensors can be sent without waiting for the peer to receive others. */
bool channel_has_room(tensor_channel *ch, int n);
/*
 * Sends a message as tensor_send_many() does, with a lease also if no tensor is a loan; *lease: a reference to it.
 * 0, or -errno with the error set.
 */
int channel_send_leased(tensor_channel *ch, const struct outgoing *o, struct lease **lease);
/* Sets the error of link_send_socket() or link_send_ring(), and returns it. */
int send_error(int err);

#endif
