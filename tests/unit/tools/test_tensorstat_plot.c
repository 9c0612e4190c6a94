// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tensorstat plot: samples of this process and of files, as SVG and HTML. */
#include "tensorstat.h"

#include <sys/prctl.h>
#include <sys/stat.h>

static char folder[32];

static int folder_new(void **state)
{
	strcpy(folder, "/tmp/plot.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int folder_drop(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	return system(command);
}

/* Runs tensorstat with FOLDER for each @ of the arguments; returns the exit status. */
static int plot_run(const char *args)
{
	char text[512], *to = text;

	for (; *args; args++)
		to += *args == '@' ? sprintf(to, "%s", folder) : sprintf(to, "%c", *args);
	return tensorstat_run(text);
}

static void write_file(const char *name, const char *content)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(content, f);
	assert_int_equal(fclose(f), 0);
}

/* Reads a file of the folder into `out`. */
static void read_file(const char *name)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = '\0';
	fclose(f);
}

#define LINE(seconds, bytes, buffers)                                       \
	"{\"backend\":\"device\",\"time_ms\":17954395" #seconds             \
	"000,\"clients\":1,\"buffers\":" #buffers ",\"bytes\":" #bytes      \
	",\"huge_bytes\":null,\"limit_bytes\":8388608,\"used_bytes\":null}" \
	"\n"

static void assert_well_formed(const char *name)
{
	char command[256];

	snprintf(
		command, sizeof(command),
		"/usr/bin/python3 -c 'import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])' "
		"%s/%s",
		folder, name);
	assert_int_equal(system(command), 0);
}

static void samples_of_processes_are_drawn(void **state)
{
	tensor *t = ok(tensor_zeros(TENSOR_INTS(1 << 20), SHAREABLE(TENSOR_F32)));
	char name[16] = "", legend[64];

	/* These characters must be escaped in XML. */
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "a<b>&c");
	assert_int_equal(plot_run("plot seconds 0.3 every 0.1 to @/now.svg title 'x < y & z'"), 0);
	prctl(PR_SET_NAME, name);
	assert_string_equal(out, "");
	assert_well_formed("now.svg");
	read_file("now.svg");
	assert_int_equal(strncmp(out, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39), 0);
	assert_says("<title>x &lt; y &amp; z</title>");
	assert_says(">all buffers, peak ");
	snprintf(legend, sizeof(legend), ">%d/a&lt;b&gt;&amp;c, peak 4MiB<", getpid());
	assert_says(legend);
	tensor_release(t);
}

static void recorded_files_are_drawn(void **state)
{
	write_file("one.json", LINE(10, 1048576, 1) LINE(11, 3145728, 2) "\n" LINE(12, 0, 0));
	write_file("two.json", LINE(12, 2097152, 7));
	assert_int_equal(plot_run("plot from @/one.json from @/two.json to @/both.svg"), 0);
	assert_well_formed("both.svg");
	read_file("both.svg");
	assert_says("peak 3MiB at ");
	assert_says(">one.json, peak 3MiB<");
	assert_says(">two.json, peak 2MiB<");
	assert_says(">limit 8MiB<");
	/* The axes: from 0 to the limit, and from 0 to 8 buffers. */
	assert_says(">8MiB</text>");
	assert_says(">8</text>");
	/* One step up and one down: 4 MiB are 130 of 260 pixels. */
	assert_says("d=\"M76.0 291.5H76.0V291.5H501.0V226.5H926.0V324.0\"");
}

/* The limit of the module is far above the values, which would be a flat line with it. */
static void far_limit_is_left_out(void **state)
{
	write_file("low.json", LINE(10, 1024, 1) LINE(11, 2048, 1));
	assert_int_equal(plot_run("plot from @/low.json"), 0);
	assert_says(">2KiB</text>");
	assert_silent_about("limit ");
}

static void standard_input_is_read(void **state)
{
	assert_int_equal(plot_run("-j stat 0.1 3 >@/stat.json"), 0);
	assert_int_equal(plot_run("plot from - <@/stat.json"), 0);
	assert_says(">standard input, peak ");
	assert_says("</svg>\n");
}

/* All samples of a pixel column are one vertical line. */
static void long_recording_keeps_peaks_and_stays_small(void **state)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/long.json", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 100000; i++)
		fprintf(f, "{\"time_ms\":%lld,\"buffers\":%d,\"bytes\":%d}\n",
			1795439500000LL + i * 1000LL, i % 7, i == 54321 ? 1 << 20 : i % 1000);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(plot_run("plot from @/long.json"), 0);
	assert_true(strlen(out) < 200000);
	assert_says("peak 1MiB at ");
	/* The upper edge of the panel. */
	assert_says("V64.0V");
}

static void page_has_the_picture_and_a_table(void **state)
{
	write_file("one.json", LINE(10, 1048576, 1) LINE(11, 3145728, 2));
	assert_int_equal(plot_run("plot from @/one.json to @/one.html title 'a & b'"), 0);
	read_file("one.html");
	assert_int_equal(strncmp(out, "<!DOCTYPE html>", 15), 0);
	assert_says("<title>a &amp; b</title>");
	assert_says("<svg ");
	assert_says("<tr><td>one.json</td><td>2</td><td>3MiB</td><td>3MiB</td><td>2</td></tr>");
}

static void file_is_replaced_or_kept(void **state)
{
	struct stat st;
	char path[64];

	write_file("kept.svg", "old");
	write_file("bad.json", LINE(10, 1, 1) "no samples\n");
	assert_int_equal(plot_run("plot from @/bad.json to @/kept.svg"), 1);
	assert_says("bad.json:2: not a line of tensorstat -j stat");
	read_file("kept.svg");
	assert_string_equal(out, "old");
	write_file("good.json", LINE(10, 1, 1));
	assert_int_equal(plot_run("plot from @/good.json to @/kept.svg"), 0);
	read_file("kept.svg");
	assert_says("</svg>");
	snprintf(path, sizeof(path), "%s/kept.svg", folder);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(plot_run("help >/dev/null; ls @ | wc -l"), 0);
	assert_string_equal(out, "3\n");
}

/* A device or a FIFO is written and not replaced, a link stays a link, and a file keeps its mode. */
static void only_regular_files_are_replaced(void **state)
{
	struct stat st;
	char path[64], target[64];

	write_file("good.json", LINE(10, 1, 1));
	snprintf(path, sizeof(path), "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(plot_run("help >/dev/null; (cat @/fifo >@/read.svg) & sleep 0.2; :"), 0);
	assert_int_equal(plot_run("plot from @/good.json to @/fifo"), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	unlink(path);
	write_file("private.svg", "old");
	snprintf(target, sizeof(target), "%s/private.svg", folder);
	assert_int_equal(chmod(target, 0600), 0);
	snprintf(path, sizeof(path), "%s/link.svg", folder);
	assert_int_equal(symlink("private.svg", path), 0);
	assert_int_equal(plot_run("plot from @/good.json to @/link.svg"), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	read_file("private.svg");
	assert_says("</svg>");
	assert_int_equal(plot_run("plot from @/good.json to -"), 0);
	assert_says("</svg>");
}

static void far_times_are_refused(void **state)
{
	write_file("far.json", LINE(9223372036854775807, 1, 1));
	assert_int_equal(plot_run("plot from @/far.json to @/far.svg"), 1);
	assert_says("far.json:1: not a line of tensorstat -j stat");
}

static void invalid_arguments_are_refused(void **state)
{
	write_file("late.json", LINE(11, 1, 1) LINE(10, 1, 1));
	write_file("empty.json", "");
	assert_int_equal(plot_run("plot from @/late.json"), 1);
	assert_says("late.json:2:");
	assert_int_equal(plot_run("plot from @/empty.json"), 1);
	assert_says("no samples");
	assert_int_equal(plot_run("plot from @/missing.json"), 1);
	assert_int_equal(plot_run("plot seconds never"), 2);
	assert_int_equal(plot_run("plot from"), 2);
	assert_int_equal(plot_run("plot form x"), 2);
	assert_says("did you mean \"from\"?");
	write_file("one.json", LINE(10, 1, 1));
	assert_int_equal(plot_run("plot from @/one.json seconds 3"), 2);
	assert_int_equal(plot_run("-j plot"), 2);
	assert_int_equal(plot_run("plot seconds 0.1 to /nowhere/x.svg"), 1);
}

static void terminal_gets_no_svg(void **state)
{
	char *argv[] = { tool, "plot", "seconds", "0.1", NULL };
	int master;
	pid_t pid;

	*out = '\0';
	pid = run_in_terminal(&master, 24, 80, argv);
	assert_int_equal(terminal_end(master, pid), 2);
	assert_says("standard output is a terminal");
	assert_silent_about("<svg");
}

static void interrupt_draws_what_was_sampled(void **state)
{
	assert_int_equal(plot_run("plot seconds 600 every 0.1 to @/part.svg & "
				  "sleep 0.5; kill -TERM $!; wait $!"),
			 0);
	read_file("part.svg");
	assert_says("</svg>\n");
}

/* SIGXFSZ, at the limit of a file's size, is a signal that arrives while the temporary file is written. */
static void signal_leaves_no_temporary_file(void **state)
{
	char command[2 * PATH_MAX];

	write_file("one.json", "{\"time_ms\":0,\"bytes\":1}\n{\"time_ms\":1000,\"bytes\":2}\n");
	snprintf(command, sizeof(command), "ulimit -f 1; %s plot from %s/one.json to %s/one.svg",
		 tool, folder, folder);
	assert_int_not_equal(system(command), 0);
	snprintf(command, sizeof(command), "[ \"$(ls %s)\" = one.json ]", folder);
	assert_int_equal(system(command), 0);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_new, folder_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(samples_of_processes_are_drawn),
		IN_FOLDER(recorded_files_are_drawn),
		IN_FOLDER(far_limit_is_left_out),
		IN_FOLDER(standard_input_is_read),
		IN_FOLDER(long_recording_keeps_peaks_and_stays_small),
		IN_FOLDER(page_has_the_picture_and_a_table),
		IN_FOLDER(file_is_replaced_or_kept),
		IN_FOLDER(only_regular_files_are_replaced),
		IN_FOLDER(signal_leaves_no_temporary_file),
		IN_FOLDER(far_times_are_refused),
		IN_FOLDER(invalid_arguments_are_refused),
		cmocka_unit_test(terminal_gets_no_svg),
		IN_FOLDER(interrupt_draws_what_was_sampled),
	};

	tool_find();
	return cmocka_run_group_tests_name("tensorstat_plot", tests, NULL, NULL);
}
