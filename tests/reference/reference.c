// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Runs the examples of the operators' reference.
 *
 *   reference              runs every example as a test (TAP); a family of operators is one test
 *   reference --facts      prints the facts that the pages take from the library
 *   reference --show OP    prints the result of an example
 */
#include "inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT 4096

enum tensor_dtype example_dtype = TENSOR_F32;
unsigned example_unwanted;

/* Prints all results of an example into `text`; -1 if the call failed. */
static int run_example(const struct example *e, char *text, size_t size)
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

/* The results that are wanted have the values of a call that wants all of them; the others are not stored. */
static int check_wanted(const struct example *e, unsigned unwanted, char (*all)[TEXT])
{
	static char text[TEXT];
	tensor *results[EXAMPLE_RESULTS] = { NULL };
	int n, bad;

	example_unwanted = unwanted;
	tensor_manual_seed(0);
	n = e->run(results);
	example_unwanted = 0;
	bad = n != e->pointers;
	for (int i = 0; i < e->pointers && !bad; i++) {
		if (unwanted >> i & 1) {
			bad = results[i] != NULL;
		} else if (results[i]) {
			tensor_format(results[i], text, sizeof(text));
			bad = strcmp(text, all[i]) != 0;
		}
	}
	if (bad)
		printf("# %s: %s without results %#x: %s\n", e->place, e->op, unwanted,
		       tensor_last_error()->text);
	return bad;
}

/* NULL in place of the pointers to results. */
static int check_pointers(const struct example *e)
{
	static char all[EXAMPLE_RESULTS][TEXT];
	tensor *results[EXAMPLE_RESULTS] = { NULL };
	int bad = 0, n = 0;

	tensor_clear_error();
	tensor_manual_seed(0);
	example_unwanted = e->needs_pointer;
	if (e->pointers || e->needs_pointer)
		n = e->run(results);
	example_unwanted = 0;
	if (e->needs_pointer && tensor_last_error()->code != EINVAL) {
		printf("# %s: %s succeeds without a result\n", e->place, e->op);
		return 1;
	}
	/* Of a plugin that was not built. */
	if (!e->pointers || tensor_last_error()->code == ENOSYS)
		return 0;
	for (int i = 0; i < n; i++)
		if (results[i])
			tensor_format(results[i], all[i], TEXT);
	for (unsigned unwanted = 1; unwanted < 1u << e->pointers && !bad; unwanted++)
		tensor_scope
			bad = check_wanted(e, unwanted, all);
	return bad;
}

/*
 * The result equals the recorded one; with any other dtype of the inputs the call succeeds or fails
 * with an error text.
 */
static int check_example(const struct example *e)
{
	static char text[TEXT];
	int bad = 0;

	if (!e->run) {
		printf("# %s: %s has no example\n", e->place, e->op);
		return 1;
	}
	tensor_scope {
		int n = run_example(e, text, sizeof(text));

		/* The plugin was not built. */
		if (n < 0 && tensor_last_error()->code == ENOSYS) {
			printf("# skipped: %s\n", tensor_last_error()->text);
		} else if (n < 0) {
			printf("# %s: %s: %s\n", e->place, e->op, tensor_last_error()->text);
			bad = 1;
		} else if (strcmp(text, e->gives)) {
			printf("# %s: %s gives\n%s\n# not\n%s\n", e->place, e->op, text, e->gives);
			bad = 1;
		}
	}
	for (int d = TENSOR_BOOL; !bad && d < TENSOR_DTYPE_COUNT; d++) {
		example_dtype = d;
		tensor_scope {
			if (run_example(e, text, sizeof(text)) < 0 && !*tensor_last_error()->text) {
				printf("# %s failed for %s without a word\n", e->op,
				       tensor_dtype_name(d));
				bad = 1;
			}
		}
	}
	example_dtype = TENSOR_F32;
	tensor_scope
		bad += check_pointers(e);
	return bad;
}

static int check_family(void)
{
	int failed = 0, families = 0, bad = 0, n = 0;

	for (int i = 0; i < examples_count; i++) {
		bad += check_example(&examples[i]);
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

/* ---- facts for the pages ---- */

/* Prints the dtypes with which the example succeeds, separated by commas. */
static void print_dtypes(const struct example *e)
{
	static char text[TEXT];
	int n = 0;

	for (int d = TENSOR_BOOL; e->run && d < TENSOR_DTYPE_COUNT; d++) {
		example_dtype = d;
		tensor_scope {
			if (run_example(e, text, sizeof(text)) >= 0)
				printf("%s%s", n++ ? ", " : "", tensor_dtype_name(d));
		}
	}
	example_dtype = TENSOR_F32;
}

/* A line for each operator: name, dtypes, whether it has a derivative; separated by tabs. */
static int print_facts(void)
{
	for (int i = 0; i < examples_count; i++) {
		const tensor_op *op = tensor_op_find(examples[i].op);

		printf("%s\t", examples[i].op);
		print_dtypes(&examples[i]);
		printf("\t%d\n", tensor_op_has_kernel(op, TENSOR_KEY_AUTOGRAD));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char text[TEXT];

	if (argc == 2 && !strcmp(argv[1], "--facts"))
		return print_facts();
	if (argc == 3 && !strcmp(argv[1], "--show")) {
		const struct example *e = find(argv[2]);

		if (!e || !e->run || run_example(e, text, sizeof(text)) < 0) {
			fprintf(stderr, "%s: %s\n", argv[2],
				!e	? "no such operator" :
				!e->run ? "no example" :
					  tensor_last_error()->text);
			return 1;
		}
		return puts(text) < 0;
	}
	if (argc > 1) {
		fprintf(stderr, "usage: reference [--facts | --show OPERATOR]\n");
		return 2;
	}
	return check_family();
}
