/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Checks of texts that the program or a file gives. */
#ifndef TENSOR_TEXT_H
#define TENSOR_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* True if the n bytes are UTF-8 without a NUL. */
bool text_is_utf8(const char *s, size_t n);
/* True for UTF-8 without control characters and without the characters that JSON escapes: a name for tables, error
 * texts and traces. */
bool text_is_name(const char *s);

#endif
