// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The tensors of a message that goes to another machine: in contiguous memory of the host, and described by a table. A tensor
 * whose elements lie side by side in any order of its dimensions is read in place; others, and those of devices, are packed.
 */
#include "remote/remote.h"

#include "family/copy.h"

#include <stdlib.h>

static int check_tensor(tensor *t)
{
	if (tensor_absent("send", t))
		return -thread()->error.code;
	if (t->ext || t->layout != TENSOR_STRIDED)
		return tensor_fail(
			EOPNOTSUPP,
			"send: a strided tensor of plain numbers is needed, got a %s one %s "
			"of another kind",
			tensor_layout_name(t->layout), SHAPE_STR(t));
	return 0;
}

/* The dimension with the smallest stride of those that repeat nothing and are not in done; -1: there is none. */
static int innermost(const tensor *t, uint32_t done)
{
	int best = -1;

	for (int i = 0; i < t->ndim; i++)
		if (!(done & 1u << i) && t->sizes[i] > 1 && t->strides[i] &&
		    (best < 0 || t->strides[i] < t->strides[best]))
			best = i;
	return best;
}

/* The number of elements in memory if they lie side by side, else -1. One that dimensions with stride 0 repeat is there once. */
static int64_t dense_elements(const tensor *t)
{
	uint32_t done = 0;
	int64_t n = 1;
	int i;

	if (!t->numel)
		return 0;
	while ((i = innermost(t, done)) >= 0) {
		if (t->strides[i] != n)
			return -1;
		n *= t->sizes[i];
		done |= 1u << i;
	}
	return n;
}

/* A contiguous copy in memory of the host; NULL with the error set. */
static tensor *packed(tensor *t)
{
	struct thread_modes before = thread_enter_plain();
	tensor *copy = tensor_new(TENSOR_DEVICE_CPU, t->dtype, t->sizes, t->ndim);

	if (copy && !call_copy_(copy, t)) {
		tensor_put(copy);
		copy = NULL;
	}
	thread()->modes = before;
	return copy;
}

static void set_label(struct frame_tensor *to, const tensor *t)
{
	struct tensor_buffer *b = tensor_storage_buffer(t->storage);
	struct tensor_descriptor d;

	if (!b || !b->described || b->provider->descriptor(b, &d) < 0)
		return;
	/* Another process may have written anything to the descriptor. */
	d.label[FRAME_LABEL - 1] = 0;
	for (size_t i = 0, n; d.label[i]; i += n) {
		n = label_char((const unsigned char *)d.label + i);
		if (!n || i + n >= FRAME_LABEL)
			return;
		memcpy(to->label + i, d.label + i, n);
	}
}

static int add(struct parcel *p, tensor *t, unsigned flags)
{
	struct frame_tensor *to = &p->table[p->n];
	int64_t n = t->device.type == TENSOR_CPU ? dense_elements(t) : -1;
	tensor *from = n < 0 ? packed(t) : tensor_get(t);

	if (!from)
		return -thread()->error.code;
	n = n < 0 ? from->numel : n;
	p->tensors[p->n] = from;
	p->from[p->n++] = from->data;
	to->dtype = t->dtype;
	to->ndim = t->ndim;
	to->flags = flags & TENSOR_SEND_READONLY || t->storage->readonly ? FRAME_READONLY : 0;
	to->bytes = (uint64_t)n * itemsize(t);
	for (int i = 0; i < t->ndim; i++) {
		to->sizes[i] = from->sizes[i];
		/* A negative one is of a dimension with one element, or of a tensor with none. */
		to->strides[i] = from->strides[i] < 0 ? 0 : from->strides[i];
	}
	if (t->device.type == TENSOR_CPU)
		set_label(to, t);
	if (__builtin_add_overflow(p->total, to->bytes, &p->total))
		return tensor_fail(EOVERFLOW, "send: the bytes of the tensors overflow");
	return 0;
}

static struct parcel *parcel_alloc(uint32_t n)
{
	struct parcel *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->table = calloc(1, n * sizeof(struct frame_tensor) + FRAME_SHORT);
	if (p->table)
		return p;
	free(p);
	return NULL;
}

struct parcel *parcel_new(const struct outgoing *o)
{
	struct parcel *p;
	int err = 0;

	for (int i = 0; i < o->n && !err; i++)
		err = check_tensor(o->tensors[i]);
	if (err < 0)
		return NULL;
	p = parcel_alloc((uint32_t)o->n);
	if (!p) {
		tensor_fail(ENOMEM, "send: no memory for a message");
		return NULL;
	}
	for (int i = 0; i < o->n && !err; i++)
		err = add(p, o->tensors[i], o->flags);
	if (!err)
		return p;
	parcel_free(p);
	return NULL;
}

size_t parcel_short(struct parcel *p)
{
	char *to = (char *)(p->table + p->n);

	for (uint32_t i = 0; i < p->n; to += p->table[i++].bytes)
		if (p->table[i].bytes)
			memcpy(to, p->from[i], p->table[i].bytes);
	return p->n * sizeof(*p->table) + p->total;
}

void parcel_free(struct parcel *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		tensor_put(p->tensors[i]);
	free(p->table);
	free(p);
}

static void free_left(struct serve_task *task)
{
	parcel_free((struct parcel *)task);
}

void parcel_sent(struct parcel *p, size_t bytes, int err)
{
	p->pending--;
	p->done += err < 0 ? 0 : bytes;
	if (p->is_left && !p->pending)
		serve_task(&p->left, free_left);
}
