// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The operators' reference, and the test that it is true.
 *
 *   reference              runs every example, TAP; a family of operators is one test
 *   reference --pages DIR  writes a page a family and an index
 *   reference --show OP    prints what an example gives
 */
#include "inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT 4096

enum tensor_dtype example_dtype = TENSOR_F32;

/* What the results print, one after the other; -1 when the call failed. */
static int run(const struct example *e, char *text, size_t size)
{
	tensor *results[EXAMPLE_RESULTS] = { NULL };
	size_t at = 0;
	int n;

	*text = 0;
	tensor_clear_error();
	tensor_manual_seed(0);
	n = e->run(results);
	for (int i = 0; i < n; i++) {
		if (i && at + 1 < size)
			text[at++] = '\n';
		at += results[i] ? tensor_format(results[i], text + at, size - at) :
				   snprintf(text + at, size - at, "none");
		if (at >= size)
			at = size - 1;
	}
	return n;
}

static const struct example *find(const char *op)
{
	for (int i = 0; i < examples_count; i++)
		if (!strcmp(examples[i].op, op))
			return &examples[i];
	return NULL;
}

/* ---- the test ---- */

/* The example gives what it says; with inputs of any other dtype it works or says why not. */
static int check(const struct example *e)
{
	static char text[TEXT];
	int bad = 0;

	if (!e->run) {
		printf("# %s has no example\n", e->op);
		return 1;
	}
	tensor_scope {
		int n = run(e, text, sizeof(text));

		/* A plugin that was not built. */
		if (n < 0 && tensor_last_error()->code == ENOSYS) {
			printf("# skipped: %s\n", tensor_last_error()->text);
		} else if (n < 0) {
			printf("# %s: %s\n", e->op, tensor_last_error()->text);
			bad = 1;
		} else if (strcmp(text, e->gives)) {
			printf("# %s gives\n%s\n# not\n%s\n", e->op, text, e->gives);
			bad = 1;
		}
	}
	for (int d = TENSOR_BOOL; !bad && d < TENSOR_DTYPE_COUNT; d++) {
		example_dtype = d;
		tensor_scope {
			if (run(e, text, sizeof(text)) < 0 && !*tensor_last_error()->text) {
				printf("# %s failed for %s without a word\n", e->op,
				       tensor_dtype_name(d));
				bad = 1;
			}
		}
	}
	example_dtype = TENSOR_F32;
	return bad;
}

static int check_all(void)
{
	int failed = 0, families = 0, bad = 0, n = 0;

	for (int i = 0; i < examples_count; i++) {
		bad += check(&examples[i]);
		n++;
		if (i + 1 < examples_count && !strcmp(examples[i].family, examples[i + 1].family))
			continue;
		printf("%sok %d - %s: %d operators, %d of them without a true example\n",
		       bad ? "not " : "", ++families, examples[i].family, n, bad);
		failed += bad;
		bad = n = 0;
	}
	printf("1..%d\n", families);
	return failed != 0;
}

/* ---- the pages ---- */

static void write_dtypes(FILE *f, const struct example *e)
{
	static char text[TEXT];
	int n = 0, fits = 0;

	for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++) {
		example_dtype = d;
		tensor_scope {
			fits |= (run(e, text, sizeof(text)) >= 0) << d;
		}
	}
	example_dtype = TENSOR_F32;
	fprintf(f, "Dtypes: ");
	for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++)
		if (fits >> d & 1)
			fprintf(f, "%s%s", n++ ? ", " : "", tensor_dtype_name(d));
	fprintf(f, ".");
}

static bool has_tag(const struct tensor_schema *s, const char *tag)
{
	for (const char *const *t = s->tags; *t; t++)
		if (!strcmp(*t, tag))
			return true;
	return false;
}

static void write_shapes(FILE *f, const struct tensor_schema *s)
{
	if (has_tag(s, "pointwise"))
		fprintf(f, " Shapes broadcast; EINVAL where they do not.");
	else if (has_tag(s, "view"))
		fprintf(f, " The result shares memory with its argument.");
}

static void write_example(FILE *f, const struct example *e)
{
	fprintf(f, "\n```c\n%s\n", e->code);
	for (const char *line = e->gives; *line;) {
		int len = (int)strcspn(line, "\n");

		fprintf(f, "// %.*s\n", len, line);
		line += len + (line[len] == '\n');
	}
	fprintf(f, "```\n");
}

static void write_operator(FILE *f, const struct example *e)
{
	const tensor_op *op = tensor_op_find(e->op);
	const struct tensor_schema *s = tensor_op_schema(op);

	fprintf(f, "\n## %s\n\n```c\n%s\n```\n\n`%s`\n\n", e->op, e->prototypes, s->text);
	if (*e->text)
		fprintf(f, "%s ", e->text);
	if (*e->rule)
		fprintf(f, "%s ", e->rule);
	if (e->run)
		write_dtypes(f, e);
	write_shapes(f, s);
	fprintf(f, " %s\n",
		e->composite				      ? "Made of other operators." :
		tensor_op_has_kernel(op, TENSOR_KEY_AUTOGRAD) ? "Differentiable." :
								"Not differentiable.");
	if (e->run)
		write_example(f, e);
}

static const char head[] =
	"Errors common to all operators: EINVAL for arguments that do not fit (the text names the "
	"operator, the argument, what was expected and what came), EOPNOTSUPP where a dtype, layout "
	"or device has no kernel, ENOMEM, EACCES for writing to read-only memory. A failed call "
	"returns NULL, or a negative errno where it returns an int, and changes nothing.\n\n"
	"In the examples `vector(...)` has one dimension, `matrix(rows, ...)` two, `counting(2, 3)` "
	"is 0, 1, 2 ... in that shape; they are f32. `ints(...)` are i64, `bools(...)` bool. The "
	"list of dtypes is of those with which the example runs. Random numbers are those of seed 0.\n";

static int write_pages(const char *dir)
{
	char path[512];
	FILE *f = NULL, *index;

	snprintf(path, sizeof(path), "%s/index.md", dir);
	index = fopen(path, "w");
	if (!index) {
		perror(path);
		return 1;
	}
	fprintf(index, "# Operators\n\n%s", head);
	for (int i = 0; i < examples_count; i++) {
		const struct example *e = &examples[i];

		if (!f || strcmp(e->family, e[-1].family)) {
			if (f)
				fclose(f);
			snprintf(path, sizeof(path), "%s/%s.md", dir, e->family);
			f = fopen(path, "w");
			if (!f) {
				perror(path);
				fclose(index);
				return 1;
			}
			fprintf(f, "# Operators: %s\n\n%s", e->family, head);
			fprintf(index, "\n## [%s](%s.md)\n\n", e->family, e->family);
		}
		fprintf(index, "- %s\n", e->op);
		write_operator(f, e);
	}
	if (f)
		fclose(f);
	return fclose(index) != 0;
}

int main(int argc, char **argv)
{
	static char text[TEXT];

	if (argc == 3 && !strcmp(argv[1], "--pages"))
		return write_pages(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "--show")) {
		const struct example *e = find(argv[2]);

		if (!e || !e->run || run(e, text, sizeof(text)) < 0) {
			fprintf(stderr, "%s: %s\n", argv[2],
				!e	? "no such operator" :
				!e->run ? "no example" :
					  tensor_last_error()->text);
			return 1;
		}
		return puts(text) < 0;
	}
	if (argc > 1) {
		fprintf(stderr, "usage: reference [--pages DIR | --show OPERATOR]\n");
		return 2;
	}
	return check_all();
}
