// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The terminal of `top`. A picture is composed in memory, cut to the window and written at once over
 * the last one: the cursor moves home, and each line ends with an erase to its end. The screen is
 * never cleared, so it does not flicker. The alternate screen preserves the previous content; every
 * exit, including one by a signal, restores the terminal.
 */
#include "top/screen.h"

#include "rows/text.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
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
static sigset_t waiting; /* signals that are let in while waiting for a key */
static bool utf8;

static char *picture;
static size_t picture_size;
static FILE *picture_file;

static void write_all(const char *text, size_t n)
{
	while (n) {
		ssize_t done = write(STDOUT_FILENO, text, n);

		if (done < 0 && errno == EAGAIN)
			poll(&(struct pollfd){ .fd = STDOUT_FILENO, .events = POLLOUT }, 1, -1);
		else if (done < 0 && errno != EINTR)
			return;
		if (done > 0) {
			text += done;
			n -= done;
		}
	}
}

/* Called by signal handlers: only async-signal-safe functions. */
static void restore(void)
{
	if (!is_open)
		return;
	is_open = 0;
	write_all(LEAVE, sizeof(LEAVE) - 1);
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void take_terminal(void)
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

/* Restores the terminal, then takes the default action of the signal: to end or to stop. */
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
	/* Reached by SIGTSTP alone, after SIGCONT or if the process group is orphaned. */
	on_signal(sig, on_end);
	take_terminal();
	errno = saved;
}

/* The shell may have changed the terminal while this process was stopped. */
static void on_continue(int sig)
{
	int saved = errno;

	if (is_open)
		take_terminal();
	errno = saved;
}

/* The signal only has to interrupt ppoll(). */
static void on_resize(int sig)
{
}

bool screen_open(void)
{
	static const int ends[] = { SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGABRT,
				    SIGSEGV, SIGBUS,  SIGFPE, SIGPIPE, SIGALRM,
				    SIGUSR1, SIGUSR2, SIGILL, SIGXCPU, SIGTSTP };
	const char *term = getenv("TERM");
	sigset_t wake;

	if (!isatty(STDOUT_FILENO) || !term || !*term || !strcmp(term, "dumb"))
		return false;
	setlocale(LC_CTYPE, "");
	utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		on_signal(ends[i], on_end);
	on_signal(SIGCONT, on_continue);
	on_signal(SIGWINCH, on_resize);
	/* Blocked except in ppoll(): a change between drawing and waiting is not lost. */
	sigemptyset(&wake);
	sigaddset(&wake, SIGWINCH);
	sigaddset(&wake, SIGCONT);
	sigprocmask(SIG_BLOCK, &wake, &waiting);
	sigdelset(&waiting, SIGWINCH);
	sigdelset(&waiting, SIGCONT);
	atexit(restore);
	has_keys = tcgetattr(STDIN_FILENO, &before) == 0;
	complain_hold();
	take_terminal();
	return true;
}

void screen_close(void)
{
	restore();
	complain_release();
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
	picture_file = check_alloc(open_memstream(&picture, &picture_size));
	return picture_file;
}

/* Writes one line, cut to the window. The only control characters in it are colour sequences. */
static const char *put_line(FILE *out, const char *at, int columns)
{
	int used = 0;

	while (*at && *at != '\n') {
		size_t n = *at == '\033' ? strcspn(at, "m") + 1 : char_bytes(at);
		int width = *at == '\033' ? 0 : char_width(at);

		if (used + width <= columns) {
			if (n > 1 && *at != '\033' && !utf8)
				fputc('?', out);
			else
				fwrite(at, 1, n, out);
		}
		used += width;
		at += n;
	}
	fputs("\033[0m\033[K", out);
	return *at ? at + 1 : at;
}

bool screen_utf8(void)
{
	return utf8;
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
	/* No newline after the last line of the window: the screen would scroll. */
	if (rows)
		fputs("\033[J", out);
	fclose(out);
	write_all(text, size);
	free(text);
}

int screen_read(unsigned char *bytes, size_t room, double seconds)
{
	struct pollfd in = { .fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN };
	struct timespec wait = { (time_t)seconds,
				 (long)((seconds - (double)(time_t)seconds) * 1e9) };
	ssize_t n;

	if (ppoll(&in, 1, seconds < 0 ? NULL : &wait, &waiting) <= 0)
		return 0;
	n = read(STDIN_FILENO, bytes, room);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	/* A terminal that was closed reads as the end of a file. */
	return n > 0 ? (int)n : -1;
}
