// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Progress: lines of terminals and of files, and the curve. */
#include "check.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <tensor/progress.h>
#include <unistd.h>

static tensor_progress *progress_of(const struct tensor_progress_options *o)
{
	tensor_progress *p = tensor_progress_new(o);

	assert_non_null(p);
	return p;
}

static void file_gets_one_line_an_epoch(void **state)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct tensor_progress_options o = { .epochs = 2, .steps = 100, .stream = f };
	tensor_progress *p = progress_of(&o);

	for (int epoch = 0; epoch < 2; epoch++) {
		for (int i = 0; i < 100; i++)
			assert_done(tensor_progress_step(p, epoch ? 0.5 : 2, 8));
		assert_done(tensor_progress_end_epoch(p, epoch ? "accuracy 0.5\033[2J" : NULL));
	}
	tensor_progress_free(p);
	fclose(f);
	assert_contains(text, "epoch 1/2  100 steps  mean loss 2  ");
	assert_contains(text, "\nepoch 2/2  100 steps  mean loss 0.5  ");
	assert_contains(text, " samples/s  0:00");
	assert_contains(text, "accuracy 0.5?[2J\n");
	assert_null(strchr(text, '\r'));
	assert_null(strchr(text, '\033'));
	free(text);
}

/* A pseudo terminal with this width; the stream of the program and the other side. */
static FILE *terminal(int width, int *master)
{
	struct winsize size = { .ws_col = (unsigned short)width, .ws_row = 24 };
	int slave;

	assert_int_equal(openpty(master, &slave, NULL, NULL, &size), 0);
	fcntl(*master, F_SETFL, O_NONBLOCK);
	return fdopen(slave, "w");
}

/* Reads the text that was written; the caller has closed the stream. Returns the number of redrawn lines. */
static int read_lines(int master, char *text, size_t size, int width)
{
	size_t n = 0;
	ssize_t k;
	int lines = 0;

	while (n < size - 1 && (k = read(master, text + n, size - 1 - n)) > 0)
		n += (size_t)k;
	text[n] = '\0';
	for (const char *line = strchr(text, '\r'); line; line = strchr(line + 1, '\r')) {
		int columns = 0;

		for (const char *c = line + 1; *c && *c != '\r' && *c != '\n'; c++) {
			if (*c == '\033')
				while (!strchr("mK", *c))
					c++;
			else
				columns++;
		}
		assert_in_range(columns, 0, width - 1);
		lines++;
	}
	return lines;
}

static void terminal_line_is_drawn_ten_times_a_second_within_the_width(void **state)
{
	static const int widths[] = { 200, 80, 60, 40, 20, 2 };
	static char text[1 << 16];

	for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
		struct tensor_progress_options o = { .epochs = 3, .steps = 1 << 20 };
		tensor_progress *p;
		struct timespec a, b;
		int master, lines;
		FILE *f = terminal(widths[i], &master);

		unsetenv("NO_COLOR");
		setenv("TERM", "xterm", 1);
		o.stream = f;
		p = progress_of(&o);
		clock_gettime(CLOCK_MONOTONIC, &a);
		do {
			assert_done(tensor_progress_step(p, 0.25, 32));
			clock_gettime(CLOCK_MONOTONIC, &b);
		} while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 350);
		lines = read_lines(master, text, sizeof(text), widths[i]);
		assert_in_range(lines, 2, 5);
		if (widths[i] == 200) {
			assert_contains(text, "epoch 1/3 \033[32m[");
			assert_contains(text, "/1048576  loss 0.25");
			assert_contains(text, " samples/s");
			assert_contains(text, " left");
		}
		tensor_progress_free(p);
		fclose(f);
		close(master);
	}
}

static void no_color_and_dumb_terminals_are_respected(void **state)
{
	static char text[4096];

	for (int dumb = 0; dumb < 2; dumb++) {
		struct tensor_progress_options o = { .steps = 10 };
		tensor_progress *p;
		int master;
		FILE *f = terminal(100, &master);

		setenv("NO_COLOR", "1", 1);
		setenv("TERM", dumb ? "dumb" : "xterm", 1);
		o.stream = f;
		p = progress_of(&o);
		assert_done(tensor_progress_step(p, 1, 0));
		read_lines(master, text, sizeof(text), 100);
		assert_null(strstr(text, "\033[32m"));
		assert_int_equal(*text != 0, !dumb);
		tensor_progress_free(p);
		fclose(f);
		close(master);
		unsetenv("NO_COLOR");
	}
}

/* ---- the curve ---- */

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 200000);

	assert_non_null(f);
	(void)!fread(text, 1, 199999, f);
	fclose(f);
	return text;
}

static void curve_of_a_million_steps_is_a_small_valid_file(void **state)
{
	char path[] = "/tmp/progress-XXXXXX", command[300];
	struct tensor_progress_options o = { .quiet = true, .label = "loss <a&b>" };
	tensor_progress *p = progress_of(&o);
	struct stat st;
	char *text;
	int fd = mkstemp(path);

	for (int i = 0; i < 1000000; i++)
		assert_done(tensor_progress_step(
			p, i == 500000 ? 99 : 2 * exp(-i / 2e5) + 0.1 * sin(i), 1));
	assert_done(tensor_progress_save_svg(p, path, "a \"title\" & <more>\n"));
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 10000, 100000);
	text = read_file(path);
	assert_contains(text, "prefers-color-scheme:dark");
	assert_contains(text, ">step</text>");
	assert_contains(text, "loss &lt;a&amp;b>");
	assert_contains(text, ">800000</text>");
	/* The single large loss is in the picture. */
	assert_contains(text, ">100</text>");
	free(text);
	snprintf(command, sizeof(command),
		 "/usr/bin/python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' %s",
		 path);
	assert_int_equal(system(command), 0);
	tensor_progress_free(p);
	close(fd);
	unlink(path);
}

static void curve_has_gaps_where_losses_are_not_finite(void **state)
{
	static const double losses[][4] = {
		{ NAN, NAN, NAN, NAN }, { 1, INFINITY, 2, 3 },	     { 0, 0, 0, 0 },
		{ -5, -5, -5, -5 },	{ 1e308, -1e308, 1e308, 0 }, { 1e-300, 2e-300, 1e-310, 0 }
	};
	char path[] = "/tmp/progress-XXXXXX";
	int fd = mkstemp(path);

	for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
		for (int n = 0; n <= 4; n++) {
			struct tensor_progress_options o = { .quiet = true };
			tensor_progress *p = progress_of(&o);
			char *text;

			for (int k = 0; k < n; k++)
				assert_done(tensor_progress_step(p, losses[i][k], 0));
			assert_done(tensor_progress_save_svg(p, path, NULL));
			text = read_file(path);
			assert_contains(text, "</svg>");
			assert_null(strstr(text, "nan "));
			assert_null(strstr(text, "inf"));
			if (i == 1 && n == 4)
				assert_contains(text, "not finite from step 1 on");
			free(text);
			tensor_progress_free(p);
		}
	close(fd);
	unlink(path);
}

static void hostile_arguments_are_refused(void **state)
{
	struct tensor_progress_options o = { .steps = -1 };
	tensor_progress *p;
	FILE *full = fopen("/dev/full", "w");

	assert_fails(tensor_progress_new(&o), EINVAL, "-1 steps");
	o = (struct tensor_progress_options){ .reserved = { 1 } };
	assert_fails(tensor_progress_new(&o), EINVAL, "reserved");
	assert_fails(tensor_progress_step(NULL, 1, 1), EINVAL, "NULL");
	assert_fails(tensor_progress_end_epoch(NULL, NULL), EINVAL, "NULL");
	assert_fails(tensor_progress_save_svg(NULL, "x", NULL), EINVAL, "NULL");
	o = (struct tensor_progress_options){ .stream = full };
	p = progress_of(&o);
	assert_fails(tensor_progress_step(p, 1, -1), EINVAL, "-1 samples");
	assert_done(tensor_progress_step(p, 1, INT64_MAX));
	assert_done(tensor_progress_step(p, 1, INT64_MAX));
	assert_fails(tensor_progress_end_epoch(p, NULL), ENOSPC, "No space left");
	assert_fails(tensor_progress_save_svg(p, NULL, NULL), EINVAL, "NULL");
	assert_fails(tensor_progress_save_svg(p, "/nowhere/x.svg", NULL), ENOENT, "/nowhere");
	tensor_progress_free(p);
	tensor_progress_free(NULL);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_gets_one_line_an_epoch),
		cmocka_unit_test(terminal_line_is_drawn_ten_times_a_second_within_the_width),
		cmocka_unit_test(no_color_and_dumb_terminals_are_respected),
		cmocka_unit_test(curve_of_a_million_steps_is_a_small_valid_file),
		cmocka_unit_test(curve_has_gaps_where_losses_are_not_finite),
		cmocka_unit_test(hostile_arguments_are_refused),
	};

	return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
