/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The descriptor of a buffer, for tools: dtype, geometry, label. With the device provider the
 * kernel checks it. The memfd provider stores it in the last page of the file, where tensorstat
 * reads it through /proc/PID/fd; its content is not trusted.
 */
#ifndef TENSOR_DESCRIPTOR_H
#define TENSOR_DESCRIPTOR_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <tensor/types.h>

#define TENSOR_LABEL_MAX 32 /* bytes, the final NUL included */

struct tensor_descriptor {
	uint32_t dtype, ndim;
	int64_t sizes[TENSOR_MAX_DIMS];
	int64_t strides[TENSOR_MAX_DIMS]; /* elements */
	int64_t offset;			  /* bytes */
	char label[TENSOR_LABEL_MAX];
};

#define DESCRIPTOR_PAGE	 4096	      /* last page of a memfd */
#define DESCRIPTOR_MAGIC "tensor\0\1" /* first 8 bytes; the last one is the version */

struct descriptor_page {
	char magic[8];
	struct tensor_descriptor d;
	_Atomic uint32_t writes; /* in-place operators of all processes */
	_Atomic uint32_t alone;	 /* 1: each process counts its own */
};

/*
 * Bytes of the UTF-8 character at s; 0 if it is malformed or a control character, because tools
 * print labels to terminals. The kernel applies the same rule.
 */
static inline bool label_marks_direction(uint32_t c)
{
	return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

static inline size_t label_char(const unsigned char *s)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t first;
	} forms[] = { { 0x80, 0, 0x20 },
		      { 0xe0, 0xc0, 0xa0 },
		      { 0xf0, 0xe0, 0x800 },
		      { 0xf8, 0xf0, 0x10000 } };
	size_t n = 0;
	uint32_t c;

	while ((s[0] & forms[n].mask) != forms[n].lead)
		if (++n == sizeof(forms) / sizeof(*forms))
			return 0;
	c = s[0] & (unsigned char)~forms[n].mask;
	for (size_t i = 1; i <= n; i++) {
		if ((s[i] & 0xc0) != 0x80) /* with the final NUL */
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < forms[n].first || c == 0x7f || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ||
	    label_marks_direction(c))
		return 0;
	return n + 1;
}

#endif
