// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * plot: memory over time as SVG or HTML, from samples that it takes or from what `tensorstat -j
 * stat DELAY` recorded. A signal ends the sampling early; what was sampled is drawn.
 */
#include "args.h"
#include "commands/commands.h"
#include "output/file.h"
#include "plot/svg.h"
#include "rows/text.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

struct plot {
	double seconds, every; /* 0: not given */
	const char *to;	       /* NULL: standard output */
	char title[128];
	struct recording recording;
};

static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	ended = 1;
}

/* ---- samples ---- */

/* A second signal has its default action. */
static void catch_signals(void)
{
	const struct sigaction action = { .sa_handler = on_end, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static enum status take_samples(struct plot *p, const struct backend *b)
{
	double begin = seconds_now(), next = begin;
	enum status status = STATUS_OK;

	catch_signals();
	while (!ended) {
		status = recording_sample(&p->recording, b);
		next += p->every;
		if (status || next > begin + p->seconds + p->every / 2)
			break;
		sleep_seconds(next > seconds_now() ? next - seconds_now() : 0);
	}
	recording_trim(&p->recording, SERIES_MAX);
	return status;
}

/* ---- arguments ---- */

static enum status unknown_word(const char *arg)
{
	static const char *const words[] = { "seconds", "every", "from", "to", "title", NULL };

	return usage_unknown("plot expects seconds, every, from, to or title, not", arg, words);
}

static enum status take_seconds(const char *word, const char *value, double *seconds)
{
	char what[64];

	if (parse_seconds(value, seconds))
		return STATUS_OK;
	snprintf(what, sizeof(what), "%s expects seconds, not", word);
	return usage_error(what, value);
}

static enum status take_file(struct plot *p, const char *path)
{
	if (p->recording.series.n == SERIES_MAX)
		return usage_error("at most 8 files have a colour; one too many is", path);
	return recording_read(&p->recording, path);
}

static enum status parse(char **arg, struct plot *p)
{
	enum status status = STATUS_OK;

	for (; *arg && !status; arg += 2) {
		const char *word = *arg, *value = arg[1];

		if (!matches(word, "seconds") && !matches(word, "every") &&
		    !matches(word, "from") && !matches(word, "to") && !matches(word, "title"))
			return unknown_word(word);
		if (!value)
			return usage_error("a value is missing after", word);
		if (matches(word, "seconds"))
			status = take_seconds("seconds", value, &p->seconds);
		else if (matches(word, "every"))
			status = take_seconds("every", value, &p->every);
		else if (matches(word, "from"))
			status = take_file(p, value);
		else if (matches(word, "to"))
			p->to = value;
		else
			copy_text(p->title, sizeof(p->title), value);
	}
	if (!status && p->recording.series.n && (p->seconds || p->every))
		status = usage_error("a file has samples already; without from only:",
				     p->seconds ? "seconds" : "every");
	return status;
}

/* ---- output ---- */

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

static enum status put_plot(FILE *out, const void *arg)
{
	const struct plot *p = arg;

	svg_write(out, &p->recording, p->title, p->to && ends_with(p->to, ".html"));
	return STATUS_OK;
}

static enum status sample(struct plot *p, const struct options *o)
{
	const struct backend *b;
	enum status status = choose_backend(o->backend, &b);

	if (status)
		return status;
	if (!p->every)
		p->every = o->watch ? o->watch : 1;
	if (!p->seconds)
		p->seconds = 60;
	if (!*p->title)
		snprintf(p->title, sizeof(p->title), "Tensor memory, %s",
			 b == &memfd_backend ? "memfds" : "/dev/tensor");
	return take_samples(p, b);
}

enum status cmd_plot(char **arg, const struct options *o)
{
	struct plot p = { 0 };
	enum status status;

	recording_init(&p.recording);
	if (o->json || o->oneline)
		return usage_error("plot has no JSON and no --oneline; use", "-j stat DELAY");
	status = parse(arg, &p);
	if (!status && !p.to && isatty(STDOUT_FILENO))
		status = usage_error("standard output is a terminal; add for instance",
				     "to memory.svg");
	if (!status && !p.recording.series.n)
		status = sample(&p, o);
	if (!*p.title)
		copy_text(p.title, sizeof(p.title), "Tensor memory");
	if (!status)
		status = p.to ? file_replace(p.to, put_plot, &p) : put_plot(stdout, &p);
	recording_clear(&p.recording);
	return status;
}
