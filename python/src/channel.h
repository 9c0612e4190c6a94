/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Channel: channel.c has the object, messages.c sends and receives. */
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
} PyChannel;

/* The channel for a call, which ends with users--; NULL with ValueError if it was closed. */
PyChannel *channel_use(PyObject *self);

bool is_channel(PyObject *o);

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
