// SPDX-License-Identifier: GPL-2.0-only
/*
 * Descriptors: the dtype and shape of a buffer's content, and the check of their bounds.
 *
 * A receiver may compute addresses from a descriptor without checking it again: all its elements
 * lie within the buffer, and its element count and bits fit into 63 bits. The kernel does not
 * interpret the type of an element, only its number of bits.
 */
#include <linux/kernel.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include "meta.h"

/*
 * UTF-8 sequences by length, with the first code point that a label may contain of each length:
 * only the shortest form is valid, and the control characters U+0000-1F and U+0080-9F are not.
 */
static const struct {
	u8 mask;
	u8 lead;
	u32 first;
} utf8_forms[] = {
	{ 0x80, 0x00, 0x20 },
	{ 0xe0, 0xc0, 0xa0 },
	{ 0xf0, 0xe0, 0x800 },
	{ 0xf8, 0xf0, 0x10000 },
};

/*
 * Length in bytes of the character at @text, of which @left bytes follow; 0 if a label must not
 * contain it.
 */
static size_t label_char(const u8 *text, size_t left)
{
	size_t i, form = 0;
	u32 c;

	if (text[0] >= ' ' && text[0] <= '~')
		return 1;
	while ((text[0] & utf8_forms[form].mask) != utf8_forms[form].lead) {
		if (++form == ARRAY_SIZE(utf8_forms))
			return 0;
	}
	if (form >= left)
		return 0;
	c = text[0] & ~utf8_forms[form].mask;
	for (i = 1; i <= form; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	if (c < utf8_forms[form].first || c == 0x7f || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return 0;
	return form + 1;
}

/* Labels are restricted because tools print them to a terminal, one per line. */
static bool label_ok(const char *label)
{
	size_t n, i, len = strnlen(label, TENSOR_UAPI_LABEL);

	if (len == TENSOR_UAPI_LABEL || memchr_inv(label + len, 0, TENSOR_UAPI_LABEL - len))
		return false;
	for (i = 0; i < len; i += n) {
		n = label_char((const u8 *)label + i, len - i);
		if (!n)
			return false;
	}
	return true;
}

/* Unused dimensions must be zero. */
static bool unused_dims_zero(const struct tensor_desc *desc)
{
	unsigned int i;

	for (i = desc->ndim; i < TENSOR_UAPI_MAX_DIMS; i++) {
		if (desc->sizes[i] || desc->strides[i])
			return false;
	}
	return true;
}

/* Return false if there are too many elements. *@empty: there is none. */
static bool count_ok(const struct tensor_desc *desc, bool *empty)
{
	s64 bits = desc->bits;
	unsigned int i;

	*empty = false;
	for (i = 0; i < desc->ndim; i++) {
		if (desc->sizes[i] < 0)
			return false;
		if (!desc->sizes[i])
			*empty = true;
		else if (check_mul_overflow(bits, desc->sizes[i], &bits))
			return false;
	}
	return true;
}

/* How far the elements reach before (*@low <= 0) and beyond (*@high > 0) the offset, in bits. */
static bool desc_extent(const struct tensor_desc *desc, s64 *low, s64 *high)
{
	s64 bits = desc->bits, step, *side;
	unsigned int i;

	*low = 0;
	*high = 1;
	for (i = 0; i < desc->ndim; i++) {
		if (check_mul_overflow(desc->sizes[i] - 1, desc->strides[i], &step))
			return false;
		side = step < 0 ? low : high;
		if (check_add_overflow(*side, step, side))
			return false;
	}
	return !check_mul_overflow(*low, bits, low) && !check_mul_overflow(*high, bits, high);
}

/* Check that a buffer of @bytes may have this descriptor. */
static int desc_check(const struct tensor_desc *desc, u64 bytes)
{
	s64 low, high;
	bool empty;

	if (desc->ndim > TENSOR_UAPI_MAX_DIMS || desc->__reserved || !unused_dims_zero(desc) ||
	    !label_ok(desc->label))
		return -EINVAL;
	if (!desc->bits)
		return desc->dtype || desc->ndim || desc->offset ? -EINVAL : 0;
	if (desc->offset > bytes || !count_ok(desc, &empty))
		return -EINVAL;
	if (empty)
		return 0;
	if (!desc_extent(desc, &low, &high))
		return -EINVAL;
	/* offset <= bytes <= TENSOR_MAX_BYTES: neither side can overflow */
	if ((s64)desc->offset * 8 + low < 0 || high > (s64)(bytes - desc->offset) * 8)
		return -EINVAL;
	return 0;
}

/**
 * tensor_desc_get_part() - read a descriptor relative to a part of the buffer
 * @hold: the buffer and the part
 * @desc: filled in; zeroed if the described elements do not lie within the part
 */
void tensor_desc_get_part(const struct tensor_hold *hold, struct tensor_desc *desc)
{
	u64 first = (u64)hold->first << PAGE_SHIFT;

	spin_lock(&hold->buf->spin);
	*desc = hold->buf->desc;
	spin_unlock(&hold->buf->spin);
	if (!tensor_hold_part(hold))
		return;
	if (desc->bits && desc->offset >= first) {
		desc->offset -= first;
		if (!desc_check(desc, (u64)hold->count << PAGE_SHIFT))
			return;
	}
	memset(desc, 0, sizeof(*desc));
}

/**
 * tensor_desc_set() - replace a descriptor
 * @buf: the buffer
 * @desc: the new one, from user space, not checked
 *
 * Return: 0; -EPERM: sealed; -EINVAL: it is not valid for this buffer.
 */
int tensor_desc_set(struct tensor_buf *buf, const struct tensor_desc *desc)
{
	int err = desc_check(desc, buf->bytes);

	if (err)
		return err;
	spin_lock(&buf->spin);
	if (buf->seals & TENSOR_SEAL_META)
		err = -EPERM;
	else
		buf->desc = *desc;
	spin_unlock(&buf->spin);
	return err;
}
