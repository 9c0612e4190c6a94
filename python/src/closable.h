/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Objects of the library that a program closes, in _Pool, _Group and _RemoteListener, which count the calls that run. */
#ifndef DEVTENSOR_CLOSABLE_H
#define DEVTENSOR_CLOSABLE_H

#include "internal.h"

#include <errno.h>

/* False with TypeError if there are keywords. */
static inline bool has_no_keywords(PyObject *kwargs, const char *type)
{
	if (!kwargs || !PyDict_Size(kwargs))
		return true;
	PyErr_Format(PyExc_TypeError, "%s takes no keywords", type);
	return false;
}

/* A call begins, which ends with --*users. False with ValueError if the object was closed: what it stands for is NULL. */
static inline bool call_begin(const void *of, int *users, const char *name)
{
	if (of) {
		++*users;
		return true;
	}
	PyErr_Format(PyExc_ValueError, "the %s is closed", name);
	return false;
}

/* False with RuntimeError while calls run. */
static inline bool close_begin(int users, const char *name)
{
	if (!users)
		return true;
	PyErr_Format(PyExc_RuntimeError, "close: another thread uses the %s", name);
	return false;
}

#endif
