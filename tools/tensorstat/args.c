// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Parsing of the command line's words, and suggestions for mistyped ones. */
#include "args.h"

#include "rows/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 48

bool matches(const char *arg, const char *word)
{
	size_t n = strlen(arg);

	return n && !strncmp(arg, word, n);
}

/* ---- errors ---- */

enum status usage_error(const char *what, const char *text)
{
	char safe[128];

	copy_text(safe, sizeof(safe), text);
	complain("%s \"%s\"; see tensorstat help", what, safe);
	return STATUS_USAGE;
}

enum status usage_unknown(const char *what, const char *text, const char *const *known)
{
	const char *near = nearest_word(text, known);
	char safe[128];

	if (!near)
		return usage_error(what, text);
	copy_text(safe, sizeof(safe), text);
	complain("%s \"%s\"; did you mean \"%s\"?", what, safe, near);
	return STATUS_USAGE;
}

/* ---- suggestions ---- */

static int min3(int a, int b, int c)
{
	int least = a < b ? a : b;

	return least < c ? least : c;
}

/* Optimal string alignment; both words are shorter than WORD_MAX. */
static int edit_distance(const char *a, const char *b)
{
	int d[WORD_MAX + 1][WORD_MAX + 1];
	int n = (int)strlen(a), m = (int)strlen(b);

	for (int i = 0; i <= n; i++)
		d[i][0] = i;
	for (int j = 0; j <= m; j++)
		d[0][j] = j;
	for (int i = 1; i <= n; i++)
		for (int j = 1; j <= m; j++) {
			int x = tolower((unsigned char)a[i - 1]);
			int y = tolower((unsigned char)b[j - 1]);

			d[i][j] =
				min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (x != y));
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    y == tolower((unsigned char)a[i - 2]) && d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	return d[n][m];
}

const char *nearest_word(const char *text, const char *const *known)
{
	const char *best = NULL;
	size_t n = strlen(text);
	int least;

	if (!n || n > WORD_MAX)
		return NULL;
	/* At most a third of the letters may differ; a word of one or two letters may differ in one. */
	least = n < 4 ? 2 : (int)n / 3 + 1;
	for (; *known; known++) {
		int distance;

		if (strlen(*known) > WORD_MAX)
			continue;
		distance = edit_distance(text, *known);
		/* A distance of the whole word is no similarity. */
		if (distance < least && distance < (int)n) {
			least = distance;
			best = *known;
		}
	}
	return best;
}

/* ---- numbers of options ---- */

bool parse_u64(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

bool parse_pid(const char *text, pid_t *pid)
{
	uint64_t value;

	if (!parse_u64(text, &value) || !value || value > INT32_MAX)
		return false;
	*pid = (pid_t)value;
	return true;
}

bool parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGTPE";
	double value;
	char *end;
	const char *u;

	value = strtod(text, &end);
	if (end == text || !(value >= 0))
		return false;
	u = *end ? strchr(units, *end >= 'a' ? *end - 32 : *end) : NULL;
	if (u) {
		value *= (double)(1ull << 10 * (u - units + 1));
		end++;
		if (*end == 'i')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end || value >= 0x1p64)
		return false;
	*bytes = (uint64_t)value;
	return true;
}

bool parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return end != text && !*end && *seconds > 0 && *seconds <= 86400 * 365;
}
