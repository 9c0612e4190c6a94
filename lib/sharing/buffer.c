// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * <tensor/buffer.h>: the buffer of a tensor. Each function finds the buffer, calls its provider and
 * converts an errno into an error text.
 */
#include "base/init.h"
#include "core/trace.h"
#include "sharing/sharing.h"

#include "sharing/wire.h"

#include <pthread.h>

/* Serializes changes of rights and seals, which read and write the same members. */
static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_control(void)
{
	pthread_mutex_lock(&control_lock);
}

static void unlock_control(void)
{
	pthread_mutex_unlock(&control_lock);
}

/*
 * Registered after the locks that are taken while this one is held: at a fork it is taken before
 * them.
 */
INIT(INIT_BUFFER) static void watch_forks(void)
{
	pthread_atfork(lock_control, unlock_control, unlock_control);
}

/* ---- errors ---- */

/* The text for an errno that only some functions return. */
struct reason {
	int code;
	const char *text;
};

static const struct reason common[] = {
	{ ESTALE, "it was the parent's before fork(), and this process has only its mapping" },
	{ EIDRM, "it was revoked" },
	{ EMFILE, "no file descriptor is free in this process" },
	{ ENFILE, "no file descriptor is free on this machine" },
	{ EACCES, "this process does not have the right, or may not open /dev/tensor" },
	{ EOPNOTSUPP, "its memory is not of a kind that can do this" },
};

static const char *find_reason(const struct reason *reasons, size_t n, int code)
{
	for (size_t i = 0; i < n; i++)
		if (reasons[i].code == code)
			return reasons[i].text;
	return NULL;
}

static int fail_on(const char *function, const tensor *t, int err, const struct reason *reasons,
		   size_t n)
{
	const char *text = find_reason(reasons, n, -err);

	if (!text)
		text = find_reason(common, ARRAY_SIZE(common), -err);
	if (!text)
		text = strerror(-err);
	return tensor_fail(-err, "%s: the buffer of the tensor %s: %s", function, SHAPE_STR(t),
			   text);
}

#define FAIL_ON(function, t, err, reasons) fail_on(function, t, err, reasons, ARRAY_SIZE(reasons))

static int unsupported(const char *function, const struct tensor_buffer *b, const char *what)
{
	return tensor_fail(
		ENOTSUP,
		"%s: storage of the %s provider has no %s: load the tensor module, or set "
		"TENSOR_PROVIDER=device",
		function, b->provider->name, what);
}

/* Stores the buffer that t has to itself. 0, or -errno with the error set. */
static int buffer_of(const char *function, const tensor *t, struct tensor_buffer **b)
{
	if (!tensor_given(t))
		return null_argument_code(function);
	if (t->device.type != TENSOR_CPU || t->ext)
		return tensor_fail(
			ENOTSUP,
			"%s: a strided tensor of plain numbers in host memory is needed, "
			"got a %s one %s of another kind or on another device",
			function, tensor_layout_name(t->layout), SHAPE_STR(t));
	*b = tensor_storage_buffer(t->storage);
	if (!*b)
		return tensor_fail(EINVAL,
				   "%s: the tensor %s has no buffer to itself: "
				   "tensor_share_memory() gives it one",
				   function, SHAPE_STR(t));
	return 0;
}

static int check_rights(const char *function, unsigned rights)
{
	if (!rights || rights & ~TENSOR_BUFFER_ALL)
		return tensor_fail(EINVAL,
				   "%s: rights are one or more of TENSOR_BUFFER_*, got 0x%x",
				   function, rights);
	return 0;
}

/* ---- descriptors ---- */

static const struct reason export_reasons[] = {
	{ EACCES, "these rights are more than this process has, or it may not open /dev/tensor" },
	{ EBUSY, "it is purgeable" },
	{ EPERM, "it is sealed against writing" },
};

/* *b: the buffer of t, which may be exported with these rights. */
static int buffer_to_export(const char *function, tensor *t, unsigned rights,
			    struct tensor_buffer **b)
{
	int err = buffer_of(function, t, b);

	if (!err)
		err = check_rights(function, rights);
	if (!err)
		describe_once(*b, t);
	return err;
}

TENSOR_EXPORT int tensor_buffer_fd(tensor *t, unsigned rights)
{
	static const char function[] = "tensor_buffer_fd";
	struct tensor_buffer *b;
	int err = buffer_to_export(function, t, rights, &b);

	TRACE_SPAN("sharing", function);
	trace_tensor(&trace_span, err < 0 ? NULL : t);
	if (err < 0)
		return err;
	share_mark(b);
	err = b->provider->export(b, rights);
	if (err == -EOPNOTSUPP && b->provider == &memfd_provider)
		return tensor_fail(
			ENOTSUP,
			"%s: storage of the memfd provider gives READ, or READ and WRITE, "
			"with or without EXPORT, got rights 0x%x: load the tensor module, "
			"or set TENSOR_PROVIDER=device",
			function, rights);
	return err < 0 ? FAIL_ON(function, t, err, export_reasons) : err;
}

TENSOR_EXPORT int tensor_buffer_dmabuf(tensor *t, unsigned rights)
{
	static const char function[] = "tensor_buffer_dmabuf";
	struct tensor_buffer *b;
	int err = buffer_to_export(function, t, rights, &b);

	TRACE_SPAN("sharing", function);
	trace_tensor(&trace_span, err < 0 ? NULL : t);
	if (err < 0)
		return err;
	if (!b->provider->dmabuf)
		return unsupported(function, b, "dma-buf");
	share_mark(b);
	err = b->provider->dmabuf(b, rights);
	return err < 0 ? FAIL_ON(function, t, err, export_reasons) : err;
}

TENSOR_EXPORT int tensor_buffer_handle(const tensor *t, uint32_t *handle)
{
	static const char function[] = "tensor_buffer_handle";
	struct tensor_buffer *b;
	int err = buffer_of(function, t, &b);

	if (err < 0)
		return err;
	if (!handle)
		return tensor_fail(EINVAL, "%s: handle is NULL", function);
	if (!b->provider->handle)
		return unsupported(function, b, "handle");
	/* The library does not see what the caller does with the fd. */
	share_mark(b);
	err = b->provider->handle(b, handle);
	return err < 0 ? FAIL_ON(function, t, err, common) : 0;
}

/* ---- properties ---- */

_Static_assert(sizeof(struct tensor_buffer_info) == 128, "its layout is an ABI: add at the end");
#define INFO_V1 128

TENSOR_EXPORT int tensor_buffer_info(const tensor *t, struct tensor_buffer_info *info)
{
	static const char function[] = "tensor_buffer_info";
	struct tensor_buffer_info full;
	struct tensor_buffer *b;
	uint32_t size;
	int err = buffer_of(function, t, &b);

	if (err < 0)
		return err;
	if (!info || info->size < INFO_V1)
		return tensor_fail(EINVAL, "%s: info must have its size set to %d or more",
				   function, INFO_V1);
	size = info->size;
	err = b->provider->info(b, &full);
	if (err < 0)
		return FAIL_ON(function, t, err, common);
	full.size = size;
	memset(info, 0, size);
	memcpy(info, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

/* ---- rights and seals ---- */

TENSOR_EXPORT int tensor_buffer_seal(tensor *t)
{
	static const struct reason reasons[] = {
		{ EACCES, "this process does not have the right to seal it" },
		{ EBUSY, "it could still be written to: by another process or device, by another "
			 "tensor of this process that received it again, or it is purgeable" },
		{ EPERM, "no seal can be added to it" },
		{ EOPNOTSUPP, "only memory that the tensor module allocated can be sealed" },
	};
	static const char function[] = "tensor_buffer_seal";
	struct tensor_buffer *b;
	int err = buffer_of(function, t, &b);

	if (err < 0)
		return err;
	lock_control();
	describe_once(b, t);
	share_mark(b);
	err = import_buffer(t->storage) ? import_seal(t->storage) : b->provider->seal(b);
	t->storage->readonly = b->readonly;
	unlock_control();
	return err < 0 ? FAIL_ON(function, t, err, reasons) : 0;
}

TENSOR_EXPORT int tensor_buffer_revoke(tensor *t)
{
	static const struct reason reasons[] = {
		{ EACCES, "this process does not have the right to revoke it" },
		{ EOPNOTSUPP, "only memory that the tensor module allocated can be revoked" },
	};
	static const char function[] = "tensor_buffer_revoke";
	struct tensor_buffer *b;
	int err = buffer_of(function, t, &b);

	if (err < 0)
		return err;
	if (!b->provider->revoke)
		return unsupported(function, b, "revocation");
	lock_control();
	share_mark(b);
	err = b->provider->revoke(b);
	unlock_control();
	return err < 0 ? FAIL_ON(function, t, err, reasons) : 0;
}

TENSOR_EXPORT int tensor_buffer_purgeable(tensor *t, bool purgeable)
{
	static const struct reason reasons[] = {
		{ EACCES, "only the process that allocated it can make it purgeable" },
		{ EBUSY, "it has another holder: a handle, a descriptor, a dma-buf or a mapping" },
		{ EPERM, "it is sealed" },
		{ ENOMEM, "its memory was taken, and there is none to bring it back" },
		{ EDQUOT, "its memory was taken, and the limit of the tensor module is reached" },
		{ EOPNOTSUPP, "only memory that the tensor module allocated can be purgeable" },
	};
	static const char function[] = "tensor_buffer_purgeable";
	struct tensor_buffer *b;
	int err = buffer_of(function, t, &b);

	if (err < 0)
		return err;
	if (!b->provider->purgeable)
		return unsupported(function, b, "purgeable memory");
	lock_control();
	err = b->provider->purgeable(b, purgeable);
	if (err >= 0)
		b->purgeable = purgeable;
	unlock_control();
	return err < 0 ? FAIL_ON(function, t, err, reasons) : err;
}

int sync_check(const char *function, unsigned flags)
{
	unsigned access = TENSOR_BUFFER_SYNC_READ | TENSOR_BUFFER_SYNC_WRITE;

	if (flags & ~(access | TENSOR_BUFFER_SYNC_END) || !(flags & access))
		return tensor_fail(EINVAL,
				   "%s: flags are READ or WRITE or both, and END, of "
				   "TENSOR_BUFFER_SYNC_*, got 0x%x",
				   function, flags);
	return 0;
}

TENSOR_EXPORT int tensor_buffer_sync(tensor *t, unsigned flags, int64_t timeout_ns)
{
	static const struct reason reasons[] = {
		{ EACCES, "this process does not have the right to read it, or to write to it" },
		{ EPERM, "it is sealed against writing" },
		{ ETIMEDOUT, "a device still uses it" },
	};
	static const char function[] = "tensor_buffer_sync";
	struct tensor_buffer *b;
	int err = buffer_of(function, t, &b);

	if (!err)
		err = sync_check(function, flags);
	if (err < 0)
		return err;
	if (!b->provider->sync)
		return unsupported(function, b, "devices to wait for");
	err = b->provider->sync(b, flags, timeout_ns);
	return err < 0 ? FAIL_ON(function, t, err, reasons) : 0;
}

/* ---- from a descriptor ---- */

/* The geometry as a message, so that it is checked like one. */
static int given_geometry(const char *function, struct wire_message *m, enum tensor_dtype dtype,
			  tensor_ints size, int64_t offset, size_t bytes)
{
	int64_t whole;

	if (dtype < TENSOR_DTYPE_NONE || dtype >= TENSOR_DTYPE_COUNT || size.len > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: dtype %d with %lld dimensions is unknown", function,
				   (int)dtype, (long long)size.len);
	whole = offset < 0 || (uint64_t)offset > bytes ?
			0 :
			(int64_t)((bytes - (uint64_t)offset) / dtype_sizes[dtype]);
	m->dtype = dtype;
	m->offset = offset;
	m->ndim = size.len < 0 ? 1 : (uint32_t)size.len;
	if (size.len < 0)
		m->sizes[0] = whole;
	for (int64_t i = 0; i < size.len; i++) {
		if (size.data[i] < 0)
			return tensor_fail(EINVAL, "%s: size %lld of dimension %lld is negative",
					   function, (long long)size.data[i], (long long)i);
		m->sizes[i] = size.data[i];
	}
	contiguous_strides(m->sizes, (int)m->ndim, m->strides);
	return 0;
}

static int described_geometry(const char *function, struct wire_message *m, tensor_ints size,
			      int64_t offset, const struct tensor_buffer *b)
{
	struct tensor_descriptor d;
	int err;

	if (size.len >= 0 || offset)
		return tensor_fail(EINVAL, "%s: sizes and an offset need a dtype", function);
	err = b->provider->descriptor(b, &d);
	if (err < 0)
		return tensor_fail(-err, "%s: the descriptor cannot be read: %s", function,
				   strerror(-err));
	if (!d.dtype || d.dtype >= TENSOR_DTYPE_COUNT || d.ndim > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: the buffer has %s: a dtype and sizes are needed",
				   function,
				   d.dtype ? "a descriptor of another library's" : "no descriptor");
	m->dtype = d.dtype;
	m->ndim = d.ndim;
	m->offset = d.offset;
	memcpy(m->sizes, d.sizes, d.ndim * sizeof(d.sizes[0]));
	memcpy(m->strides, d.strides, d.ndim * sizeof(d.strides[0]));
	return 0;
}

TENSOR_EXPORT tensor *tensor_from_buffer_fd(int fd, enum tensor_dtype dtype, tensor_ints size,
					    int64_t offset)
{
	static const char function[] = "tensor_from_buffer_fd";
	struct wire_message m = { 0 };
	struct tensor_storage *s;
	char text[SHAPE_TEXT];
	int err;

	TRACE_SPAN("sharing", function);
	s = import_foreign(function, fd);
	if (!s)
		return NULL;
	err = dtype == TENSOR_DTYPE_NONE ?
		      described_geometry(function, &m, size, offset, import_buffer(s)) :
		      given_geometry(function, &m, dtype, size, offset, s->nbytes);
	if (err < 0)
		goto put_storage;
	if (!wire_fits(&m, s->nbytes, dtype_sizes[m.dtype])) {
		tensor_fail(EINVAL,
			    "%s: a tensor %s of %s at byte %lld does not fit into %zu bytes",
			    function, format_sizes(m.sizes, (int)m.ndim, text, sizeof(text)),
			    tensor_dtype_name(m.dtype), (long long)m.offset, s->nbytes);
		goto put_storage;
	}
	return scope_own(thread(),
			 tensor_new_on_storage(s, m.dtype, m.sizes, m.strides, (int)m.ndim,
					       m.offset / dtype_sizes[m.dtype]));
put_storage:
	storage_put(s);
	return NULL;
}
