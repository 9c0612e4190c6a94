// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Buffers are registered with the network once, by their first send, and until they are closed. */
#include "remote/remote.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct transport *registers; /* of all buffers */

static void unregister(struct tensor_buffer *b)
{
	/* In a child of fork() the network is the parent's. */
	if (b->registration && !serve_is_parents())
		registers->unregister_memory(b->registration);
	b->registration = NULL;
}

void memory_register(const struct transport *transport, struct tensor_storage *s)
{
	const struct storage_ops *ops = storage_ops_of(s);
	struct tensor_buffer *b =
		tensor_storage_buffer(ops && ops->base && ops->base(s) ? ops->base(s) : s);

	if (!b || !b->map)
		return;
	pthread_mutex_lock(&lock);
	if (!b->on_unregister) {
		registers = transport;
		b->registration = transport->register_memory(b->map, b->size);
		b->on_unregister = unregister;
	}
	pthread_mutex_unlock(&lock);
}
