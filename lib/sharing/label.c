// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Descriptors of buffers: dtype, geometry and label, for tools. */
#include "base/init.h"
#include "sharing/sharing.h"

#include <pthread.h>

/* Serializes writes of descriptors: several tensors may use one buffer. */
static pthread_mutex_t describe_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_describe(void)
{
	pthread_mutex_lock(&describe_lock);
}

static void unlock_describe(void)
{
	pthread_mutex_unlock(&describe_lock);
}

INIT(INIT_LABEL) static void watch_forks(void)
{
	pthread_atfork(lock_describe, unlock_describe, unlock_describe);
}

static int check_label(const char *label)
{
	size_t n;

	if (!label)
		return tensor_fail(EINVAL, "set_label: the label is NULL");
	if (strnlen(label, TENSOR_LABEL_MAX) == TENSOR_LABEL_MAX)
		return tensor_fail(EINVAL, "set_label: at most %d bytes, got \"%.40s...\"",
				   TENSOR_LABEL_MAX - 1, label);
	for (size_t i = 0; label[i]; i += n) {
		n = label_char((const unsigned char *)label + i);
		if (!n)
			return tensor_fail(EINVAL,
					   "set_label: byte %zu of the label is no "
					   "printable UTF-8",
					   i);
	}
	return 0;
}

/* The caller holds the lock. */
static int describe(struct tensor_buffer *b, const tensor *t, const char *label)
{
	struct tensor_descriptor d = { .dtype = t->dtype,
				       .ndim = t->ndim,
				       .offset = (const char *)t->data - (const char *)b->map };
	int err;

	memcpy(d.sizes, t->sizes, t->ndim * sizeof(d.sizes[0]));
	memcpy(d.strides, t->strides, t->ndim * sizeof(d.strides[0]));
	memcpy(d.label, label, strnlen(label, TENSOR_LABEL_MAX - 1));
	err = b->provider->describe(b, &d);
	if (!err)
		b->described = true;
	return err;
}

int describe_tensor(struct tensor_buffer *b, const tensor *t, const char *label)
{
	int err;

	lock_describe();
	err = describe(b, t, label);
	unlock_describe();
	return err;
}

void describe_once(struct tensor_buffer *b, const tensor *t)
{
	lock_describe();
	if (!b->described && !b->readonly)
		describe(b, t, "");
	unlock_describe();
}

TENSOR_EXPORT int tensor_set_label(tensor *t, const char *label)
{
	struct tensor_buffer *b;
	int err;

	if (tensor_absent("set_label", t))
		return -thread()->error.code;
	err = check_label(label);
	if (err < 0)
		return err;
	b = t->ext ? NULL : tensor_storage_buffer(t->storage);
	if (!b)
		return tensor_fail(EINVAL,
				   "set_label: the tensor %s has no buffer to itself: "
				   "tensor_share_memory() gives it one",
				   SHAPE_STR(t));
	err = describe_tensor(b, t, label);
	if (err == -EACCES)
		return tensor_fail(EACCES, "set_label: the tensor %s is read-only", SHAPE_STR(t));
	if (err == -ESTALE)
		return tensor_fail(ESTALE, "set_label: the tensor %s belongs to the parent process",
				   SHAPE_STR(t));
	if (err < 0)
		return tensor_fail(-err, "set_label: %s: %s", b->provider->name, strerror(-err));
	return 0;
}
