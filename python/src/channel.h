/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Channel: channel.c has the object, messages.c sends and receives, remote.c makes those to other machines. */
#ifndef DEVTENSOR_CHANNEL_H
#define DEVTENSOR_CHANNEL_H

#include "internal.h"
#include "waiting.h"

#include <tensor/channel.h>

typedef struct {
	PyObject_HEAD tensor_channel *channel; /* NULL: closed */
	PyObject *socket;		       /* keeps the descriptor open */
	int fd;
	int users; /* calls that run, and tasks that wait: close() waits for none, it refuses */
	bool is_remote;
	PyObject *progress; /* of a remote one: called with (sending, done, total), or NULL */
} PyChannel;

/* A Channel, or an object of a subclass, on a channel, which it consumes. NULL with an exception. */
PyChannel *channel_wrap(PyTypeObject *type, tensor_channel *channel, PyObject *socket);

/* The channel for a call, which ends with users--; NULL with ValueError if it was closed. */
PyChannel *channel_use(PyObject *self);

bool is_channel(PyObject *o);

/* The time that a wait spins, in seconds; 0: never, None: the library chooses. */
int as_spin(PyObject *o, int64_t *ns);

/* Methods. */
PyObject *channel_send(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *channel_send_many(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *channel_recv_many(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *channel_try_recv_many(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *channel_recv(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *channel_try_send(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *channel_try_recv(PyObject *self, PyObject *unused);
/* recv(), until a time. */
PyObject *channel_receive(PyObject *self, double deadline);

#endif
