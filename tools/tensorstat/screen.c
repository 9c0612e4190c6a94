// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The terminal under `top`. A picture is made in memory, cut to the window and written at once over
 * the last one: the cursor goes home, each line ends by erasing what is left of it. Nothing is
 * cleared first, so nothing flickers. The alternate screen keeps what was there before, and every
 * way out, signals included, puts it back.
 */
#include "screen.h"

#include "tensorstat.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"

static struct termios before;
static volatile sig_atomic_t is_open, has_keys;

static char *picture;
static size_t picture_size;
static FILE *picture_file;

static void write_all(const char *text, size_t n)
{
	while (n) {
		ssize_t done = write(STDOUT_FILENO, text, n);

		if (done < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (done > 0) {
			text += done;
			n -= done;
		}
	}
}

/* Also called by signal handlers. */
static void restore(void)
{
	if (!is_open)
		return;
	is_open = 0;
	write_all(LEAVE, sizeof(LEAVE) - 1);
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void draw_here(void)
{
	struct termios raw = before;

	is_open = 1;
	if (has_keys) {
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 1;
		raw.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	write_all(ENTER, sizeof(ENTER) - 1);
}

static void on_signal(int sig, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigemptyset(&action.sa_mask);
	sigaction(sig, &action, NULL);
}

/* Puts the terminal back, then does what the signal does by itself: end or stop. */
static void on_end(int sig)
{
	int saved = errno;
	sigset_t only;

	restore();
	signal(sig, SIG_DFL);
	raise(sig);
	sigemptyset(&only);
	sigaddset(&only, sig);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	/* Only SIGTSTP comes here, when it goes on or was never stopped. */
	on_signal(sig, on_end);
	draw_here();
	errno = saved;
}

/* A shell may have set up the terminal for itself meanwhile. */
static void on_continue(int sig)
{
	int saved = errno;

	if (is_open)
		draw_here();
	errno = saved;
}

/* Only to wake whoever waits. */
static void on_resize(int sig)
{
}

bool screen_open(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP,  SIGQUIT, SIGABRT, SIGSEGV,
				    SIGBUS, SIGFPE,  SIGPIPE, SIGALRM, SIGTSTP };

	if (!isatty(STDOUT_FILENO))
		return false;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		on_signal(ends[i], on_end);
	on_signal(SIGCONT, on_continue);
	on_signal(SIGWINCH, on_resize);
	atexit(restore);
	has_keys = tcgetattr(STDIN_FILENO, &before) == 0;
	draw_here();
	return true;
}

void screen_close(void)
{
	restore();
	free(picture);
	picture = NULL;
}

void screen_size(int *rows, int *columns)
{
	struct winsize size;

	*rows = 24;
	*columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
		*rows = size.ws_row;
		*columns = size.ws_col;
	}
}

FILE *screen_begin(void)
{
	free(picture);
	picture = NULL;
	picture_file = open_memstream(&picture, &picture_size);
	if (!picture_file) {
		complain("out of memory");
		exit(STATUS_ERROR);
	}
	return picture_file;
}

/* One line, as far as it fits. Sequences of colours take no room. */
static const char *put_line(FILE *out, const char *at, int columns)
{
	int used = 0;

	for (; *at && *at != '\n'; at++) {
		if (*at == '\033') {
			const char *end = at + strcspn(at, "m");

			fwrite(at, 1, end - at + 1, out);
			at = end;
			continue;
		}
		used += ((unsigned char)*at & 0xc0) != 0x80;
		if (used <= columns)
			fputc(*at, out);
	}
	fputs("\033[0m\033[K", out);
	return *at ? at + 1 : at;
}

void screen_show(void)
{
	int rows, columns;
	size_t size;
	char *text;
	FILE *out;

	fclose(picture_file);
	out = open_memstream(&text, &size);
	if (!out)
		return;
	screen_size(&rows, &columns);
	fputs("\033[H", out);
	for (const char *at = picture; *at && rows; rows--) {
		at = put_line(out, at, columns);
		if (*at && rows > 1)
			fputs("\r\n", out);
	}
	/* The last line stays without a newline: it would scroll. */
	if (rows)
		fputs("\033[J", out);
	fclose(out);
	write_all(text, size);
	free(text);
}

int screen_key(double seconds)
{
	struct pollfd in = { .fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN };
	unsigned char key;
	int n = poll(&in, 1, seconds > 2e6 ? -1 : (int)(seconds * 1000));

	if (n <= 0)
		return 0;
	/* An orphaned terminal reads as its end. */
	return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}
