/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Numbers in files have a decimal point, whatever setlocale() the program called. Between numeric_locale_begin()
 * and numeric_locale_end() printf() and strtod() of the calling thread use that of the C locale.
 */
#ifndef TENSOR_NUMERIC_LOCALE_H
#define TENSOR_NUMERIC_LOCALE_H

#include <locale.h>

struct numeric_locale {
	locale_t own, before;
};

/* glibc allocates nothing for the C locale. */
static inline struct numeric_locale numeric_locale_begin(void)
{
	struct numeric_locale l = { .own = newlocale(LC_ALL_MASK, "C", (locale_t)0) };

	if (l.own)
		l.before = uselocale(l.own);
	return l;
}

static inline void numeric_locale_end(const struct numeric_locale *l)
{
	if (!l->own)
		return;
	uselocale(l->before);
	freelocale(l->own);
}

#endif
