// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * tensorstat top in a pseudo terminal. A small terminal emulator keeps the screen; it fails on all
 * sequences that top does not use, so that text of another process cannot send any. Over 500 lines,
 * because the emulator belongs to it.
 */
#include "tensorstat.h"

#include "../../lib/storage/descriptor.h"

#include <sys/mman.h>

#define ROWS_MAX    64
#define COLUMNS_MAX 256
#define BUFFERS	    40

/* ---- the emulator ---- */

static struct {
	int rows, columns, row, column;
	char cell[ROWS_MAX][COLUMNS_MAX][5]; /* one UTF-8 character each; "" after a wide one */
	bool alternate, hidden;
	size_t read; /* bytes of `out` that were interpreted */
} screen;

static void screen_erase(int row, int from)
{
	for (int c = from; c < COLUMNS_MAX; c++)
		strcpy(screen.cell[row][c], " ");
}

static void screen_reset(int rows, int columns)
{
	screen.rows = rows;
	screen.columns = columns;
	screen.row = screen.column = 0;
	screen.alternate = screen.hidden = false;
	screen.read = 0;
	for (int r = 0; r < ROWS_MAX; r++)
		screen_erase(r, 0);
	*out = '\0';
}

/* Interprets the control sequence at s, without ESC [. Returns its length. */
static size_t screen_control(const char *s)
{
	size_t n = strspn(s, "?;0123456789") + 1;

	if (!strncmp(s, "?1049", 5))
		screen.alternate = s[5] == 'h';
	else if (!strncmp(s, "?25", 3))
		screen.hidden = s[3] == 'l';
	else if (*s == 'H')
		screen.row = screen.column = 0;
	else if (*s == 'K')
		screen_erase(screen.row, screen.column);
	else if (*s == 'J')
		for (int r = screen.row; r < ROWS_MAX; r++)
			screen_erase(r, r == screen.row ? screen.column : 0);
	else
		assert_int_equal(s[n - 1], 'm');
	return n;
}

static int screen_width(const char *s)
{
	/* The only wide characters of these tests are CJK. */
	return (unsigned char)*s >= 0xe4 && (unsigned char)*s <= 0xe9 ? 2 : 1;
}

static size_t screen_character(const char *s)
{
	size_t n = label_char((const unsigned char *)s);
	int width = screen_width(s);

	if (!n)
		fprintf(stderr, "byte 0x%02x in: %.200s\n", (unsigned char)*s, s);
	assert_true(n > 0);
	assert_true(screen.row < screen.rows);
	assert_true(screen.column + width <= screen.columns);
	memcpy(screen.cell[screen.row][screen.column], s, n);
	screen.cell[screen.row][screen.column][n] = '\0';
	if (width == 2)
		*screen.cell[screen.row][screen.column + 1] = '\0';
	screen.column += width;
	return n;
}

/* Whether the sequence or character at s is incomplete. */
static bool is_incomplete(const char *s)
{
	if (*s == '\033')
		return !s[1] || (s[1] == '[' && !s[2 + strspn(s + 2, "?;0123456789")]);
	return (unsigned char)*s >= 0xc2 && strlen(s) < 4 && !label_char((const unsigned char *)s);
}

/* Interprets the output since the last call. */
static void screen_update(void)
{
	const char *s;

	while (*(s = out + screen.read) && !is_incomplete(s)) {
		if (!strncmp(s, "\033[", 2))
			screen.read += 2 + screen_control(s + 2);
		else if (*s == '\r')
			screen.column = 0, screen.read++;
		else if (*s == '\n')
			screen.row++, screen.read++;
		else
			screen.read += screen_character(s);
	}
}

static const char *screen_line(int row)
{
	static char line[COLUMNS_MAX * 4 + 1];

	*line = '\0';
	for (int c = 0; c < screen.columns; c++)
		strcat(line, screen.cell[row][c]);
	return line;
}

static bool screen_has(const char *words)
{
	for (int r = 0; r < screen.rows; r++)
		if (strstr(screen_line(r), words))
			return true;
	return false;
}

static void screen_dump(void)
{
	for (int r = 0; r < screen.rows; r++)
		fprintf(stderr, "|%s|\n", screen_line(r));
}

/* ---- top ---- */

static int terminal;
static pid_t top;

static void top_start(int rows, int columns, char *const *argv)
{
	screen_reset(rows, columns);
	top = run_in_terminal(&terminal, rows, columns, argv);
}

/* Waits until the words are on the screen, or no longer on it. */
static void wait_for(const char *words, bool there)
{
	double end = seconds_of(CLOCK_MONOTONIC) + 10;

	while (screen_has(words) != there && seconds_of(CLOCK_MONOTONIC) < end) {
		read_terminal(terminal, 20);
		screen_update();
	}
	if (screen_has(words) != there) {
		fprintf(stderr, "\"%s\" is %s the screen:\n", words, there ? "not on" : "on");
		screen_dump();
		fail();
	}
}

#define assert_shows(words) wait_for(words, true)
#define assert_hides(words) wait_for(words, false)

static void press(const char *keys)
{
	assert_int_equal(write(terminal, keys, strlen(keys)), strlen(keys));
}

static void top_quit(void)
{
	press("q");
	assert_int_equal(terminal_end(terminal, top), 0);
	screen_update();
	assert_false(screen.alternate);
	assert_false(screen.hidden);
}

static char owner[32];
static char *const own[] = { tool, "-w", "0.2", "--sort", "name:desc", "top", "owner", owner, NULL };

/* ---- buffers ---- */

static tensor *buffer[BUFFERS];

static int make_buffers(void **state)
{
	char label[16];

	snprintf(owner, sizeof(owner), "%d", getpid());
	for (int i = 0; i < BUFFERS; i++) {
		buffer[i] = tensor_zeros(TENSOR_INTS(4096 * (i + 1)), SHAREABLE(TENSOR_F32));
		snprintf(label, sizeof(label), "b%02d", i);
		if (tensor_set_label(buffer[i], label))
			return -1;
	}
	return 0;
}

static int drop_buffers(void **state)
{
	for (int i = 0; i < BUFFERS; i++)
		tensor_release(buffer[i]);
	return 0;
}

/* ---- tests ---- */

static void rows_scroll_by_line_page_and_to_the_ends(void **state)
{
	top_start(16, 80, own);
	assert_shows("buffer by name reversed: 40, rows 1-10");
	assert_shows("b39");
	assert_hides("b29");
	press("\033[B");
	assert_shows("rows 2-11");
	assert_hides("b39");
	press("\033[A");
	assert_shows("rows 1-10");
	press("\033[6~");
	assert_shows("rows 10-19");
	press("\033[5~");
	assert_shows("rows 1-10");
	press("\033[F");
	assert_shows("rows 31-40");
	assert_shows("b00");
	press("\033OB");
	assert_shows("rows 31-40");
	press("\033[1~");
	assert_shows("rows 1-10");
	press("jjj");
	assert_shows("rows 4-13");
	press("G");
	assert_shows("rows 31-40");
	press("g");
	assert_shows("rows 1-10");
	press("\033[C");
	assert_shows("DTYPE");
	assert_hides("ID  NAME");
	press("\033[D");
	assert_shows("ID  NAME");
	top_quit();
}

static void sequence_in_two_parts_is_one_key(void **state)
{
	top_start(16, 80, own);
	assert_shows("rows 1-10");
	press("\033");
	press("[");
	press("B");
	assert_shows("rows 2-11");
	/* Unknown sequences are ignored, and their letters are not keys. */
	press("\033[200q\033[1;5q\033Oq\033[99~");
	press("\033[A");
	assert_shows("rows 1-10");
	top_quit();
}

static void text_filter_is_typed_shown_and_removed(void **state)
{
	top_start(16, 80, own);
	assert_shows("buffer by name reversed: 40");
	press("/b1");
	assert_shows("text: b1_");
	press("7x\177\n");
	assert_shows("buffer by name reversed: 1  text \"b17\"");
	assert_shows("b17");
	assert_hides("b39");
	press("/\025B2\n");
	assert_shows("buffer by name reversed: 10");
	press("/zzz\033");
	assert_shows("buffer by name reversed: 10");
	press("/\025nothing at all\n");
	assert_shows("buffer by name reversed: 0");
	press("\033");
	assert_hides("text \"");
	top_quit();
}

static void owner_filter_takes_a_number_or_a_name(void **state)
{
	char *argv[] = { tool, "-w", "0.2", "top", "owner", "no such process", NULL };
	char text[64];

	top_start(16, 80, argv);
	assert_shows("buffer by size: 0");
	snprintf(text, sizeof(text), "o\025%d\n", getpid());
	press(text);
	assert_shows("buffer by size: 40");
	press("o\025TEST_TENSORSTAT\n");
	assert_shows("owner TEST_TENSORSTAT");
	assert_shows("b39");
	press("p");
	assert_shows("process by size");
	assert_shows("test_tensorstat");
	press("u");
	assert_shows("user by size");
	assert_shows("ORPHANS");
	top_quit();
}

static void filters_are_options_without_a_terminal(void **state)
{
	assert_int_equal(tensorstat_run("top owner %d text b17 1"), 0);
	assert_says("buffer by size: 1  text \"b17\"");
	assert_says("b17");
	assert_silent_about("b18");
	assert_silent_about("\033");
	assert_int_equal(tensorstat_run("top owner"), 2);
	assert_int_equal(tensorstat_run("top process owner %d 1"), 0);
	assert_says("process by size: 1");
}

static void order_is_chosen_by_keys(void **state)
{
	top_start(16, 80, own);
	assert_shows("buffer by name reversed");
	assert_shows("b39");
	press("r");
	assert_shows("buffer by name: 40");
	assert_shows("b05");
	assert_hides("b39");
	press("5");
	assert_shows("buffer by size: 40");
	press("r");
	assert_shows("buffer by size reversed");
	assert_shows("b00");
	press("2");
	assert_shows("buffer by name: 40");
	press("s");
	assert_shows("buffer by dtype");
	press("SS");
	assert_shows("buffer by id");
	press("S");
	assert_shows("buffer by state");
	top_quit();
}

static void bar_and_history_are_drawn(void **state)
{
	top_start(24, 100, own);
	assert_shows("% of ");
	assert_shows("used   [");
	assert_shows("peak ");
	/* One sample every 0.2 s. */
	assert_shows("in 1s");
	top_quit();
	/* ASCII if the locale is not UTF-8. */
	setenv("LC_ALL", "C", 1);
	top_start(24, 100, own);
	assert_shows("@@@]");
	unsetenv("LC_ALL");
	for (int r = 0; r < screen.rows; r++)
		for (const char *p = screen_line(r); *p; p++)
			assert_true((unsigned char)*p < 0x80);
	top_quit();
}

static void help_is_shown_and_scrolls(void **state)
{
	top_start(10, 60, own);
	assert_shows("buffer by");
	press("?");
	assert_shows("tensorstat top: keys");
	assert_hides("buffer by");
	assert_hides("Space");
	press("\033[6~");
	assert_hides("top: keys");
	press("\033[F");
	assert_shows("its last minutes.");
	press("x");
	assert_shows("buffer by");
	top_quit();
}

static void pause_keeps_the_rows(void **state)
{
	tensor *t;

	top_start(16, 80, own);
	assert_shows("buffer by name reversed: 40");
	press(" ");
	assert_shows("PAUSED");
	t = ok(tensor_zeros(TENSOR_INTS(8), SHAREABLE(TENSOR_F32)));
	assert_done(tensor_set_label(t, "new"));
	read_terminal(terminal, 700);
	screen_update();
	assert_true(screen_has("buffer by name reversed: 40"));
	press(" ");
	assert_shows("buffer by name reversed: 41");
	tensor_release(t);
	tensor_cache_trim();
	top_quit();
}

/* The emulator fails on a character outside of the window. */
static void all_window_sizes_are_filled_and_not_exceeded(void **state)
{
	static const int sizes[][2] = { { 5, 20 }, { 1, 1 },   { 2, 10 },  { 3, 200 }, { 6, 40 },
					{ 7, 21 }, { 10, 80 }, { 24, 80 }, { 50, 200 } };
	char *slow[] = { tool, "-w", "600", "--sort", "name:desc", "top", "owner", owner, NULL };
	struct winsize size;

	top_start(24, 80, slow);
	assert_shows("buffer by");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		/* Nothing is drawn before the size changes: the interval is 600 s. */
		read_terminal(terminal, 300);
		screen_update();
		screen_reset(sizes[i][0], sizes[i][1]);
		size = (struct winsize){ .ws_row = sizes[i][0], .ws_col = sizes[i][1] };
		assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
		if (sizes[i][1] >= 20 && sizes[i][0] >= 3)
			assert_shows("buffer by name");
		if (sizes[i][0] >= 5 && sizes[i][1] >= 20)
			assert_shows("b39");
		press("?");
		read_terminal(terminal, 100);
		press("x");
		read_terminal(terminal, 300);
		screen_update();
	}
	top_quit();
}

static void resize_is_drawn_at_once(void **state)
{
	char *argv[] = { tool, "-w", "600", "top", "owner", owner, NULL };
	struct winsize size = { .ws_row = 12, .ws_col = 60 };

	top_start(24, 80, argv);
	assert_shows("rows 1-18");
	read_terminal(terminal, 200);
	screen_reset(12, 60);
	assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
	assert_shows("rows 1-6");
	top_quit();
}

static void dumb_terminal_gets_plain_tables(void **state)
{
	static const char *const terms[] = { "dumb", "" };

	for (int i = 0; i < 2; i++) {
		char *argv[] = { "sh", "-c", NULL, NULL };
		char command[PATH_MAX + 64];
		int master, status;
		pid_t pid;

		snprintf(command, sizeof(command), "TERM=%s exec %s -w 0.1 top owner %d 2",
			 terms[i], tool, getpid());
		argv[2] = command;
		*out = '\0';
		pid = forkpty(&master, NULL, NULL, NULL);
		if (!pid) {
			execv("/bin/sh", argv);
			_exit(127);
		}
		while (read_terminal(master, 200))
			;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(master);
		assert_int_equal(status, 0);
		assert_int_equal(count("buffer by size: 40"), 2);
		assert_says("b00");
		assert_silent_about("\033");
	}
}

static void top_works_without_keys(void **state)
{
	char *argv[] = { "sh", "-c", NULL, NULL };
	char command[PATH_MAX + 64];
	int master;

	/* Standard input is not a terminal: prints COUNT frames and exits. */
	snprintf(command, sizeof(command), "TERM=xterm exec %s -w 0.1 top owner %d 3 </dev/null",
		 tool, getpid());
	argv[2] = command;
	screen_reset(24, 80);
	top = forkpty(&master, NULL, NULL, &(struct winsize){ .ws_row = 24, .ws_col = 80 });
	if (!top) {
		execv("/bin/sh", argv);
		_exit(127);
	}
	assert_int_equal(terminal_end(master, top), 0);
	assert_int_equal(count("buffer by size: 40"), 3);
	screen_update();
	assert_false(screen.alternate);
}

static void interrupt_key_restores_the_terminal(void **state)
{
	struct termios after;

	top_start(16, 80, own);
	assert_shows("buffer by");
	assert_true(screen.alternate && screen.hidden);
	press("/abc\003");
	read_terminal(terminal, 300);
	assert_int_equal(tcgetattr(terminal, &after), 0);
	assert_int_equal(terminal_end(terminal, top), 128 + SIGINT);
	screen_update();
	assert_false(screen.alternate || screen.hidden);
	assert_int_equal(after.c_lflag & (ICANON | ECHO), ICANON | ECHO);
}

/* A memfd of a buffer with this label, which the library would refuse. */
static int imitation(const char *label)
{
	struct descriptor_page page = { .d = { .dtype = TENSOR_F32, .ndim = 1, .sizes = { 7 } } };
	int fd = memfd_create("tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	memcpy(page.magic, DESCRIPTOR_MAGIC, 8);
	memcpy(page.d.label, label, strnlen(label, sizeof(page.d.label)));
	assert_int_equal(ftruncate(fd, (1 << 30) + 4096), 0);
	assert_int_equal(pwrite(fd, &page, sizeof(page), 1 << 30), sizeof(page));
	return fd;
}

static void control_characters_in_names_are_replaced(void **state)
{
	char *argv[] = { tool, "-b", "memfd", "-w", "0.2", "top", "owner", owner, NULL };
	int fds[] = {
		imitation("\033[2J\033]0;owned\007\rX"),
		imitation("bad \xff\xfe\xc0\x80 \xed\xa0\x80 utf"),
		imitation("\xe2\x80\xae reversed \xc2\x9b"),
		imitation("0123456789abcdef0123456789abcdef"), /* without a terminating zero */
		imitation("\xe6\xbc\xa2\xe5\xad\x97 wide"),
	};

	top_start(16, 80, argv);
	assert_shows("?[2J?]0;owned??X");
	assert_shows("bad ???? ??? utf");
	assert_shows("??? reversed ??");
	assert_shows("0123456789abcdef0123456789abcde ");
	assert_shows("\xe6\xbc\xa2\xe5\xad\x97 wide");
	press("/\xe5\xad\x97\n");
	assert_shows("buffer by size: 1  text \"\xe5\xad\x97\"");
	press("/\025\001\002\xff\xfe\n");
	assert_shows("text \"??\"");
	top_quit();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_scroll_by_line_page_and_to_the_ends),
		cmocka_unit_test(sequence_in_two_parts_is_one_key),
		cmocka_unit_test(text_filter_is_typed_shown_and_removed),
		cmocka_unit_test(owner_filter_takes_a_number_or_a_name),
		cmocka_unit_test(filters_are_options_without_a_terminal),
		cmocka_unit_test(order_is_chosen_by_keys),
		cmocka_unit_test(bar_and_history_are_drawn),
		cmocka_unit_test(help_is_shown_and_scrolls),
		cmocka_unit_test(pause_keeps_the_rows),
		cmocka_unit_test(all_window_sizes_are_filled_and_not_exceeded),
		cmocka_unit_test(resize_is_drawn_at_once),
		cmocka_unit_test(dumb_terminal_gets_plain_tables),
		cmocka_unit_test(top_works_without_keys),
		cmocka_unit_test(interrupt_key_restores_the_terminal),
		cmocka_unit_test(control_characters_in_names_are_replaced),
	};

	tool_find();
	setenv("LC_CTYPE", "C.UTF-8", 1);
	return cmocka_run_group_tests_name("tensorstat_top", tests, make_buffers, drop_buffers);
}
