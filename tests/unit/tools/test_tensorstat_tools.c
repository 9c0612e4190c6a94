// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tensorstat without lists: options, stat, top, metrics, and suggestions for mistyped words. */
#include "tensorstat.h"

#include <sys/stat.h>

static tensor *small, *large;

static int make_buffers(void **state)
{
	small = tensor_zeros(TENSOR_INTS(2), SHAREABLE(TENSOR_I32));
	large = tensor_zeros(TENSOR_INTS(1 << 19), SHAREABLE(TENSOR_F32));
	return tensor_set_label(small, "an ant") || tensor_set_label(large, "bear") ? -1 : 0;
}

static int drop_buffers(void **state)
{
	tensor_release(small);
	tensor_release(large);
	return 0;
}

static const char *assert_found(const char *words)
{
	const char *p = strstr(out, words);

	assert_non_null(p);
	return p;
}

/* ---- options ---- */

static void sort_orders_by_a_column(void **state)
{
	assert_int_equal(tensorstat_run("--sort size b sh owner %d"), 0);
	assert_true(assert_found("bear") < assert_found("an ant"));
	assert_int_equal(tensorstat_run("--sort size:asc b sh owner %d"), 0);
	assert_true(assert_found("bear") > assert_found("an ant"));
	assert_int_equal(tensorstat_run("--sort name b sh owner %d"), 0);
	assert_true(assert_found("bear") > assert_found("an ant"));
	assert_int_equal(tensorstat_run("-j --sort name:desc b sh owner %d"), 0);
	assert_true(assert_found("bear") < assert_found("an ant"));
	assert_int_equal(tensorstat_run("--sort colour b sh"), 2);
	assert_says("strides");
	assert_int_equal(tensorstat_run("--sort size:up b sh"), 2);
}

static void fields_choose_columns(void **state)
{
	assert_int_equal(tensorstat_run("--fields name,kind,strides b sh owner %d dtype i32"), 0);
	assert_says("NAME    KIND");
	assert_says("STRIDES");
	assert_says("[1]");
	assert_silent_about("DTYPE");
	assert_int_equal(tensorstat_run("--fields name,colour b sh"), 2);
	assert_says("colour");
	assert_int_equal(tensorstat_run("-j --fields name b sh"), 2);
}

static void one_line_output_is_names_and_values(void **state)
{
	assert_int_equal(tensorstat_run("-o b sh owner %d dtype i32"), 0);
	assert_says("name \"an ant\" dtype i32 shape [2] size ");
	assert_says(" strides [1]");
	assert_int_equal(count("\n"), 1);
}

static void colour_is_off_by_default(void **state)
{
	assert_int_equal(tensorstat_run("b sh"), 0);
	assert_silent_about("\033");
	assert_int_equal(tensorstat_run("-c b sh"), 0);
	assert_says("\033[1mID");
	assert_int_equal(tensorstat_run("--color=never b sh"), 0);
	assert_silent_about("\033");
	assert_int_equal(tensorstat_run("-c=always b sh"), 0);
	assert_says("\033[1m");
	assert_int_equal(tensorstat_run("-c=pink b sh"), 2);
}

static void terminal_is_coloured_unless_no_color_is_set(void **state)
{
	char *argv[] = { tool, "buffer", "show", NULL };
	int master;
	pid_t pid;

	*out = '\0';
	pid = run_in_terminal(&master, 24, 80, argv);
	assert_int_equal(terminal_end(master, pid), 0);
	assert_says("\033[1mID");
	setenv("NO_COLOR", "1", 1);
	*out = '\0';
	pid = run_in_terminal(&master, 24, 80, argv);
	assert_int_equal(terminal_end(master, pid), 0);
	unsetenv("NO_COLOR");
	assert_silent_about("\033");
	assert_says("ID");
}

static void watch_writes_one_json_object_per_line(void **state)
{
	assert_int_equal(tensorstat_run("-j -w 0.1 b sh owner %d | head -n 2"), 0);
	assert_int_equal(count("\n"), 2);
	assert_int_equal(count("{\"time_ms\":"), 2);
	assert_int_equal(count("\"bear\""), 2);
	assert_int_equal(tensorstat_run("-w never b sh"), 2);
}

/* ---- totals ---- */

static void stat_prints_the_requested_samples(void **state)
{
	assert_int_equal(tensorstat_run("stat"), 0);
	assert_says("BUFFERS");
	assert_int_equal(count("\n"), 3);
	assert_int_equal(tensorstat_run("stat 0.1 3"), 0);
	assert_int_equal(count("BUFFERS"), 1);
	assert_int_equal(count("\n"), 5);
	assert_int_equal(tensorstat_run("-j stat 0.1 2"), 0);
	assert_int_equal(count("\"buffers\":"), 2);
	assert_int_equal(count("\n"), 2);
	assert_int_equal(tensorstat_run("stat often"), 2);
	assert_int_equal(tensorstat_run("stat 1 0"), 2);
	assert_int_equal(tensorstat_run("stat 1 1 1"), 2);
}

static void device_is_shown(void **state)
{
	assert_int_equal(tensorstat_run("device show"), 0);
	assert_says("BUFFERS");
	assert_int_equal(tensorstat_run("device"), 0);
	assert_int_equal(tensorstat_run("-j device show"), 0);
	assert_says("\"parameters\":{");
	assert_int_equal(tensorstat_run("-o device show"), 0);
	assert_says(" buffers ");
	assert_int_equal(count("\n"), 1);
	assert_int_equal(tensorstat_run("device show all"), 2);
	assert_int_equal(tensorstat_run("device break"), 2);
	assert_int_equal(tensorstat_run("device set"), 2);
	if (access("/sys/module/tensor", F_OK) < 0) {
		assert_int_equal(tensorstat_run("device set limit_bytes 1G"), 9);
		assert_int_equal(tensorstat_run("monitor"), 9);
	}
	assert_int_equal(tensorstat_run("monitor earthquake"), 2);
	assert_int_equal(tensorstat_run("-b memfd monitor"), 3);
}

/* ---- top ---- */

static void top_in_a_pipe_writes_plain_tables(void **state)
{
	assert_int_equal(tensorstat_run("-w 0.1 top 2"), 0);
	assert_int_equal(count("buffer by size"), 2);
	assert_silent_about("\033");
	assert_true(assert_found("bear") < assert_found("an ant"));
	assert_int_equal(tensorstat_run("top process 1"), 0);
	assert_says("process by size");
	assert_says("BUFFERS");
	assert_int_equal(tensorstat_run("--sort name:asc top buffer 1"), 0);
	assert_says("buffer by name");
	assert_true(assert_found("bear") > assert_found("an ant"));
	assert_int_equal(tensorstat_run("top user 1"), 0);
	assert_says("ORPHANS");
	assert_int_equal(tensorstat_run("top galaxy"), 2);
	assert_int_equal(tensorstat_run("-j top 1"), 2);
}

static void top_fits_the_window_and_never_clears_it(void **state)
{
	char *argv[] = { tool, "-w", "0.1", "top", NULL };
	const char *last;
	int master, lines = 0;
	pid_t pid;

	*out = '\0';
	pid = run_in_terminal(&master, 8, 50, argv);
	assert_true(read_until(master, "buffer by size"));
	assert_int_equal(write(master, "p", 1), 1);
	assert_true(read_until(master, "process by size"));
	assert_int_equal(write(master, "bs", 2), 2);
	assert_true(read_until(master, "buffer by pinned"));
	assert_int_equal(write(master, "q", 1), 1);
	assert_int_equal(terminal_end(master, pid), 0);
	assert_says("\033[?1049h");
	assert_silent_about("\033[2J");
	/* the last frame: from cursor-home to the end; each line ends with erase-to-end-of-line */
	for (last = out; strstr(last + 1, "\033[H"); last = strstr(last + 1, "\033[H"))
		;
	for (const char *p = last; (p = strstr(p, "\033[K")); p++)
		lines++;
	assert_in_range(lines, 4, 8);
	assert_contains(last, "\033[?25h\033[?1049l");
}

static void top_leaves_the_terminal_as_it_was(void **state)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGSEGV };
	char *argv[] = { tool, "top", NULL };
	struct termios before, after;
	int master;
	pid_t pid;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		*out = '\0';
		pid = run_in_terminal(&master, 24, 80, argv);
		tcgetattr(master, &before);
		before.c_lflag |= ICANON | ECHO;
		assert_true(read_until(master, "buffer by size"));
		assert_says("\033[?1049h");
		tcgetattr(master, &after);
		assert_false(after.c_lflag & ICANON);
		kill(pid, signals[i]);
		read_terminal(master, 300);
		tcgetattr(master, &after);
		assert_int_equal(terminal_end(master, pid), 128 + signals[i]);
		assert_says("\033[?25h\033[?1049l");
		assert_int_equal(after.c_lflag & (ICANON | ECHO), ICANON | ECHO);
	}
}

static void top_stops_and_comes_back(void **state)
{
	char *argv[] = { tool, "-w", "0.2", "top", NULL };
	int master, status;
	pid_t pid;

	*out = '\0';
	pid = run_in_terminal(&master, 24, 80, argv);
	assert_true(read_until(master, "buffer by size"));
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	kill(pid, SIGCONT);
	read_terminal(master, 500);
	assert_int_equal(count("\033[?1049h"), 2);
	/* The leader of a session has an orphaned process group, which SIGTSTP does not stop. */
	kill(pid, SIGTSTP);
	read_terminal(master, 500);
	assert_int_equal(count("\033[?1049l"), 1);
	assert_int_equal(count("\033[?1049h"), 3);
	assert_int_equal(write(master, "q", 1), 1);
	assert_int_equal(terminal_end(master, pid), 0);
	assert_int_equal(count("\033[?1049l"), 2);
}

/* ---- metrics ---- */

/* The prefix of all names: memfds are never counted as buffers of the module. */
static const char *metrics_prefix(void)
{
	return strcmp(tensor_provider_name(), "memfd") ? "tensor_" : "tensor_memfd_";
}

static void metrics_contain_the_totals_and_sums(void **state)
{
	static const char *const names[] = { "buffers", "buffer_bytes", "shared_bytes",
					     "user_buffers", "dtype_bytes" };
	char text[128];

	assert_int_equal(tensorstat_run("metrics"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(text, sizeof(text), "# TYPE %s%s gauge\n", metrics_prefix(), names[i]);
		assert_says(text);
	}
	assert_says("dtype=\"f32\"} ");
	assert_says("uid=\"");
	/* The output ends with the end mark. */
	assert_string_equal(out + strlen(out) - 6, "# EOF\n");
	assert_int_equal(tensorstat_run("metrics now"), 2);
}

static void metrics_of_memfds_are_not_those_of_the_module(void **state)
{
	assert_int_equal(tensorstat_run("-b memfd metrics"), 0);
	for (const char *line = out; *line; line = strchr(line, '\n') + 1) {
		const char *name = *line == '#' ? strchr(line + 2, ' ') + 1 : line;
		const char *end = strchr(line, '\n');

		if (!strncmp(line, "# EOF", 5))
			break;
		assert_int_equal(strncmp(name, "tensor_memfd_", 13), 0);
		if (*line != '#') {
			const char *label = strstr(line, "{backend=\"memfd\"");

			assert_true(label && label < end);
		}
	}
	assert_silent_about("/dev/tensor");
	assert_silent_about("limit");
	assert_silent_about("pool");
	assert_silent_about("orphan");
	assert_says("\ntensor_memfd_processes{backend=\"memfd\"} ");
	assert_says("HELP tensor_memfd_buffers Memfd buffers");
}

static void metrics_are_read_by_parsers_of_both_formats(void **state)
{
	if (system("/usr/bin/python3 -c 'import prometheus_client.openmetrics' 2>/dev/null"))
		skip();
	setenv("PREFIX", metrics_prefix(), 1);
	assert_int_equal(
		tensorstat_run(
			"metrics | /usr/bin/python3 -c 'import os, sys;"
			"from prometheus_client.openmetrics import parser as new;"
			"from prometheus_client import parser as old;"
			"t = sys.stdin.read();"
			"n = [{m.name: m for m in p.text_string_to_metric_families(t)}"
			"     for p in (new, old)];"
			"b = [d[os.environ[\"PREFIX\"] + \"buffers\"].samples[0] for d in n];"
			"print([s.value >= 2 for s in b], {s.labels.get(\"backend\") for s in b})'"),
		0);
	assert_string_equal(out, strcmp(tensor_provider_name(), "memfd") ?
					 "[True, True] {None}\n" :
					 "[True, True] {'memfd'}\n");
}

static void textfile_is_renamed_into_place(void **state)
{
	char folder[] = "/tmp/metrics.XXXXXX", command[256];
	struct stat st;

	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command), "metrics --textfile %s/tensor.prom", folder);
	assert_int_equal(tensorstat_run(command), 0);
	assert_string_equal(out, "");
	snprintf(command, sizeof(command), "help >/dev/null; ls %s; cat %s/tensor.prom", folder,
		 folder);
	assert_int_equal(tensorstat_run(command), 0);
	assert_int_equal(strncmp(out, "tensor.prom\n# TYPE", 18), 0);
	snprintf(command, sizeof(command), "%s/tensor.prom", folder);
	assert_int_equal(stat(command, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	unlink(command);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(tensorstat_run("metrics --textfile /nowhere/tensor.prom"), 1);
}

/* ---- suggestions ---- */

/* The memfd backend needs no module, so the filter is parsed. */
static void mistyped_words_get_a_suggestion(void **state)
{
	static const struct {
		const char *args, *says;
	} cases[] = {
		{ "buffxr", "unknown object \"buffxr\"; did you mean \"buffer\"?" },
		{ "metricz", "did you mean \"metrics\"?" },
		{ "b shqw", "did you mean \"show\"?" },
		{ "device ste", "did you mean \"set\"?" },
		{ "--jsn b", "did you mean \"--json\"?" },
		{ "--color=alwayz b", "did you mean \"always\"?" },
		{ "--sort sixe b", "did you mean \"size\"?" },
		{ "--fields name,shqpe b", "did you mean \"shape\"?" },
		{ "b sh dtpye f32", "did you mean \"dtype\"?" },
		{ "b sh dtype f23", "did you mean \"f32\"?" },
		{ "client show pdi 1", "did you mean \"pid\"?" },
		{ "monitor aloc", "did you mean \"alloc\"?" },
		{ "-b memdf stat", "did you mean \"memfd\"?" },
		{ "top prqcess", "did you mean \"process\"?" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(tensorstat_run(cases[i].args), 2);
		assert_says(cases[i].says);
	}
	/* No similar word; control characters of the word are not printed. */
	assert_int_equal(tensorstat_run("xyzzy"), 2);
	assert_silent_about("did you mean");
	assert_says("see tensorstat help");
	assert_int_equal(tensorstat_run("\"$(printf 'bufe\\033[r')\""), 2);
	assert_silent_about("\033");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sort_orders_by_a_column),
		cmocka_unit_test(fields_choose_columns),
		cmocka_unit_test(one_line_output_is_names_and_values),
		cmocka_unit_test(colour_is_off_by_default),
		cmocka_unit_test(terminal_is_coloured_unless_no_color_is_set),
		cmocka_unit_test(watch_writes_one_json_object_per_line),
		cmocka_unit_test(stat_prints_the_requested_samples),
		cmocka_unit_test(device_is_shown),
		cmocka_unit_test(top_in_a_pipe_writes_plain_tables),
		cmocka_unit_test(top_fits_the_window_and_never_clears_it),
		cmocka_unit_test(top_leaves_the_terminal_as_it_was),
		cmocka_unit_test(top_stops_and_comes_back),
		cmocka_unit_test(metrics_contain_the_totals_and_sums),
		cmocka_unit_test(metrics_of_memfds_are_not_those_of_the_module),
		cmocka_unit_test(metrics_are_read_by_parsers_of_both_formats),
		cmocka_unit_test(textfile_is_renamed_into_place),
		cmocka_unit_test(mistyped_words_get_a_suggestion),
	};

	tool_find();
	return cmocka_run_group_tests_name("tensorstat_tools", tests, make_buffers, drop_buffers);
}
