/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Waits that signals and timeouts end: the library waits for a moment at a time, without the lock of the interpreter. */
#ifndef DEVTENSOR_WAITING_H
#define DEVTENSOR_WAITING_H

#include "internal.h"

#include <math.h>
#include <time.h>

#define MOMENT_NS 50000000 /* until the next look for signals */
#define SPIN_NS	  100000   /* in which the library may spin, before poll() */

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time at which a wait ends, from seconds or None: HUGE_VAL for no end. */
static inline int as_deadline(PyObject *timeout, double *deadline)
{
	double seconds;

	*deadline = HUGE_VAL;
	if (!timeout || timeout == Py_None)
		return 0;
	seconds = PyFloat_AsDouble(timeout);
	if (seconds == -1 && PyErr_Occurred())
		return -1;
	if (!(seconds >= 0)) {
		PyErr_SetString(PyExc_ValueError, "timeout must be seconds, not negative, or None");
		return -1;
	}
	*deadline = now() + seconds;
	return 0;
}

static inline int64_t ns_until(double deadline, int64_t most)
{
	double left = (deadline - now()) * 1e9;

	return left < 0 ? 0 : left < (double)most ? (int64_t)left : most;
}

static inline int64_t moment_ns(double deadline)
{
	return ns_until(deadline, MOMENT_NS);
}

static inline int64_t spin_ns(double deadline)
{
	return ns_until(deadline, SPIN_NS);
}

/* After a moment: -1 with TimeoutError, or with the exception of a signal handler. */
static inline int wait_over(double deadline)
{
	if (PyErr_CheckSignals() < 0)
		return -1;
	if (now() < deadline)
		return 0;
	PyErr_SetString(PyExc_TimeoutError, "timed out");
	return -1;
}

#endif
