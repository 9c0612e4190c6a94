// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Names of element types. The kernel stores the bits of an element and a tag that it does not
 * interpret; the library's tags are enum tensor_dtype. Any other combination is shown as both
 * numbers: "tag7/12b".
 */
#include "rows/rows.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	uint32_t bits;
} dtypes[] = {
	[TENSOR_DTYPE_NONE] = { NULL, 0 },
	[TENSOR_BOOL] = { "bool", 8 },
	[TENSOR_U8] = { "u8", 8 },
	[TENSOR_I8] = { "i8", 8 },
	[TENSOR_I16] = { "i16", 16 },
	[TENSOR_I32] = { "i32", 32 },
	[TENSOR_I64] = { "i64", 64 },
	[TENSOR_F16] = { "f16", 16 },
	[TENSOR_BF16] = { "bf16", 16 },
	[TENSOR_F32] = { "f32", 32 },
	[TENSOR_F64] = { "f64", 64 },
	[TENSOR_C64] = { "c64", 64 },
	[TENSOR_C128] = { "c128", 128 },
	[TENSOR_U16] = { "u16", 16 },
	[TENSOR_U32] = { "u32", 32 },
	[TENSOR_U64] = { "u64", 64 },
	[TENSOR_F8_E4M3FN] = { "f8_e4m3fn", 8 },
	[TENSOR_F8_E5M2] = { "f8_e5m2", 8 },
};

_Static_assert(sizeof(dtypes) / sizeof(*dtypes) == TENSOR_DTYPE_COUNT, "one name for each dtype");

uint32_t dtype_bits(uint32_t dtype)
{
	return dtype < TENSOR_DTYPE_COUNT ? dtypes[dtype].bits : 0;
}

const char *const *dtype_names(void)
{
	static const char *names[TENSOR_DTYPE_COUNT];

	/* Entry 0 of the table has no name, which leaves room for the NULL at the end. */
	for (uint32_t d = 1; d < TENSOR_DTYPE_COUNT; d++)
		names[d - 1] = dtypes[d].name;
	return names;
}

bool element_is_dtype(const struct element *e)
{
	return e->bits && dtype_bits(e->tag) == e->bits;
}

const char *element_name(char *text, size_t room, const struct element *e)
{
	if (!e->bits)
		return NULL;
	if (element_is_dtype(e))
		snprintf(text, room, "%s", dtypes[e->tag].name);
	else
		snprintf(text, room, "tag%u/%ub", e->tag, e->bits);
	return text;
}

/* Parses a decimal number; sets *end to the first character after it. */
static bool parse_u32(const char *text, char **end, uint32_t *value)
{
	unsigned long long n;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoull(text, end, 10);
	*value = (uint32_t)n;
	return n <= UINT32_MAX;
}

bool element_parse(const char *text, struct element *e)
{
	char *end;

	for (uint32_t d = 1; d < TENSOR_DTYPE_COUNT; d++) {
		if (strcmp(text, dtypes[d].name))
			continue;
		*e = (struct element){ .bits = dtypes[d].bits, .tag = d };
		return true;
	}
	return !strncmp(text, "tag", 3) && parse_u32(text + 3, &end, &e->tag) && *end == '/' &&
	       parse_u32(end + 1, &end, &e->bits) && e->bits && !strcmp(end, "b");
}
