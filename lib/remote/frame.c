// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Checks of frames, whose sender may be hostile. */
#include "remote/frame.h"

#include "base/dtype.h"
#include "sharing/wire.h"
#include "storage/descriptor.h"

#include <string.h>

_Static_assert(FRAME_DIMS == TENSOR_MAX_DIMS && FRAME_DIMS == WIRE_DIMS &&
		       FRAME_LABEL == TENSOR_LABEL_MAX && FRAME_TENSORS == WIRE_PARTS,
	       "a tensor fits into the table, and a message into a group");

static const char *check_message(const struct frame *f, size_t bytes)
{
	uint64_t table = f->values[1] * sizeof(struct frame_tensor);

	if (f->values[1] > FRAME_TENSORS)
		return "a message has too many tensors";
	if (bytes != table + (f->values[2] <= FRAME_SHORT ? f->values[2] : 0))
		return "a message has more or less data than announced";
	return NULL;
}

const char *frame_check(const struct frame *f, size_t header_bytes, size_t bytes)
{
	if (header_bytes < offsetof(struct frame, kind) || f->magic != FRAME_MAGIC)
		return "it is no channel of this library, or on a machine with another byte order";
	if (f->version != FRAME_VERSION)
		return "it has another version of the protocol";
	if (header_bytes != sizeof(*f) || !f->kind || f->kind >= FRAME_KINDS)
		return "a frame is of an unknown kind";
	if (f->kind == FRAME_MESSAGE)
		return check_message(f, bytes);
	if (f->kind == FRAME_PIECE_OF ? !bytes || bytes > FRAME_PIECE : bytes)
		return "a frame has more or less data than its kind";
	return NULL;
}

static bool label_is_valid(const char *label)
{
	size_t n;

	if (strnlen(label, FRAME_LABEL) == FRAME_LABEL)
		return false;
	for (size_t i = 0; label[i]; i += n) {
		n = label_char((const unsigned char *)label + i);
		if (!n)
			return false;
	}
	return true;
}

static const char *check_tensor(const struct frame_tensor *t)
{
	struct wire_message m = { .ndim = t->ndim };

	if (!t->dtype || t->dtype >= TENSOR_DTYPE_COUNT)
		return "the dtype of a tensor is unknown";
	if (t->ndim > FRAME_DIMS || t->flags & ~FRAME_READONLY || t->zero)
		return "a tensor has too many dimensions, or an unknown flag";
	for (uint32_t i = 0; i < FRAME_DIMS; i++) {
		if (t->strides[i] < 0 || (i >= t->ndim && (t->sizes[i] || t->strides[i])))
			return "a tensor has a size or a stride that is not possible";
		m.sizes[i] = t->sizes[i];
		m.strides[i] = t->strides[i];
	}
	if (!wire_fits(&m, t->bytes, dtype_sizes[t->dtype]))
		return "a tensor does not fit its bytes";
	return label_is_valid(t->label) ? NULL : "the label of a tensor is no printable text";
}

const char *frame_check_table(const struct frame_tensor *table, uint64_t n, uint64_t bytes)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		const char *why = check_tensor(&table[i]);

		if (why)
			return why;
		if (__builtin_add_overflow(sum, table[i].bytes, &sum))
			return "the bytes of the tensors overflow";
	}
	return sum == bytes ? NULL : "the tensors have more or fewer bytes than the message";
}
