// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The line of a training program's progress, see <tensor/progress.h>. */
#include "train/progress.h"

#include "base/error.h"
#include "base/file_limit.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_NS INT64_C(100000000)
#define BAR	  30
#define LINE	  512

struct tensor_progress {
	struct tensor_progress_options options;
	char label[32];
	FILE *out;
	bool terminal, colour, open;  /* open: the line has no newline yet */
	int64_t epoch, step, samples; /* epoch from 0, the others of the epoch */
	int64_t start, drawn;	      /* ns */
	double last, sum;	      /* losses of the epoch */
	int64_t finite;
	struct curve curve;
	pthread_mutex_t lock;
};

/* ---- the curve ---- */

static void merge_points(struct curve *c)
{
	for (int i = 0; i < CURVE_POINTS / 2; i++) {
		const struct curve_point *a = &c->points[2 * i], *b = a + 1;

		c->points[i] = (struct curve_point){ fmin(a->least, b->least),
						     fmax(a->most, b->most), a->sum + b->sum,
						     a->n + b->n };
	}
	for (int i = CURVE_POINTS / 2; i < CURVE_POINTS; i++)
		c->points[i] = (struct curve_point){ .least = NAN, .most = NAN };
	c->width *= 2;
}

void curve_add(struct curve *c, double loss)
{
	struct curve_point *p;

	if (c->steps == c->width * CURVE_POINTS)
		merge_points(c);
	p = &c->points[c->steps / c->width];
	if (isfinite(loss)) {
		/* fmin() and fmax() ignore the NaN of an empty point. */
		*p = (struct curve_point){ fmin(p->least, loss), fmax(p->most, loss), p->sum + loss,
					   p->n + 1 };
	} else if (c->bad < 0) {
		c->bad = c->steps;
	}
	c->steps++;
}

/* ---- text ---- */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Appends to a line, as far as it fits. */
static void put(char line[LINE], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(char line[LINE], const char *fmt, ...)
{
	size_t n = strlen(line);
	va_list args;

	va_start(args, fmt);
	vsnprintf(line + n, LINE - n, fmt, args);
	va_end(args);
}

static void put_time(char line[LINE], double seconds)
{
	long long s = seconds < 1e9 ? (long long)(seconds + 0.5) : 999999999;

	if (s >= 3600)
		put(line, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
	else
		put(line, "%lld:%02lld", s / 60, s % 60);
}

static void put_rate(char line[LINE], const tensor_progress *p, double seconds)
{
	double n = (double)(p->samples ? p->samples : p->step),
	       rate = seconds > 0 ? n / seconds : 0;

	put(line, rate < 100 ? "  %.1f %s/s" : "  %.0f %s/s", rate,
	    p->samples ? "samples" : "steps");
}

static void put_epoch(char line[LINE], const tensor_progress *p)
{
	put(line, "epoch %lld", (long long)p->epoch + 1);
	if (p->options.epochs)
		put(line, "/%lld", (long long)p->options.epochs);
}

static void put_bar(char line[LINE], const tensor_progress *p, int cells)
{
	double part = (double)p->step / (double)p->options.steps;
	int full = (int)(cells * (part < 1 ? part : 1));

	put(line, " %s[", p->colour ? "\033[32m" : "");
	for (int i = 0; i < cells; i++)
		put(line, "%c", i < full ? '=' : i == full ? '>' : ' ');
	put(line, "]%s", p->colour ? "\033[0m" : "");
}

/* Columns of the text that are not part of a colour. */
static int columns_of(const char *line)
{
	int n = 0;

	for (; *line; line++) {
		if (*line == '\033')
			line = strchr(line, 'm');
		else
			n++;
	}
	return n;
}

/* The line, with a bar of so many cells. */
static void compose(char line[LINE], const tensor_progress *p, int cells, double seconds)
{
	line[0] = '\0';
	put_epoch(line, p);
	if (p->options.steps && cells > 0)
		put_bar(line, p, cells);
	put(line, " %lld", (long long)p->step);
	if (p->options.steps)
		put(line, "/%lld", (long long)p->options.steps);
	put(line, "  %s %.4g", p->label, p->last);
	put_rate(line, p, seconds);
	if (p->options.steps > p->step && p->step) {
		put(line, "  ");
		put_time(line, seconds * (double)(p->options.steps - p->step) / (double)p->step);
		put(line, " left");
	}
}

/* ---- output ---- */

static int terminal_width(FILE *f)
{
	struct winsize size = { 0 };
	const char *columns = getenv("COLUMNS");

	if (ioctl(fileno(f), TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return columns && atoi(columns) > 0 ? atoi(columns) : 80;
}

static int print(tensor_progress *p, const char *before, const char *line, const char *after)
{
	struct file_limit limit = file_limit_begin();
	int err = 0;

	if (fprintf(p->out, "%s%s%s", before, line, after) < 0 || fflush(p->out))
		err = errno ? errno : EIO;
	errno = err;
	file_limit_end(&limit, err);
	if (!err)
		return 0;
	clearerr(p->out);
	return tensor_fail(err, "progress: %s", strerror(err));
}

/* Draws the line within the width, without a bar or cut if it is too long. */
static int draw(tensor_progress *p, int64_t now)
{
	double seconds = (double)(now - p->start) * 1e-9;
	int width = terminal_width(p->out) - 1, cells = BAR, over;
	char line[LINE];

	compose(line, p, cells, seconds);
	over = columns_of(line) - width;
	if (over > 0) {
		cells = over <= cells - 5 ? cells - over : 0;
		compose(line, p, cells, seconds);
	}
	/* A line without a bar has no colour. */
	if (!cells && width >= 0 && width < LINE)
		line[width] = '\0';
	p->drawn = now;
	p->open = true;
	return print(p, "\r", line, "\033[K");
}

static int print_epoch(tensor_progress *p, const char *note)
{
	double seconds = (double)(now_ns() - p->start) * 1e-9;
	char line[LINE] = "";

	put_epoch(line, p);
	put(line, "  %lld steps  mean %s %.4g", (long long)p->step, p->label,
	    p->finite ? p->sum / (double)p->finite : NAN);
	put_rate(line, p, seconds);
	put(line, "  ");
	put_time(line, seconds);
	if (note)
		put(line, "  %s", note);
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	p->open = false;
	return print(p, p->terminal ? "\r\033[K" : "", line, "\n");
}

/* ---- public functions ---- */

static void begin_epoch(tensor_progress *p)
{
	p->step = p->samples = p->finite = 0;
	p->last = p->sum = 0;
	p->start = now_ns();
}

static void inspect_stream(tensor_progress *p)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	int fd = fileno(p->out), before = errno;

	p->terminal = fd >= 0 && isatty(fd) && !(term && !strcmp(term, "dumb"));
	p->colour = p->terminal && !(no_colour && *no_colour);
	errno = before;
}

TENSOR_EXPORT tensor_progress *tensor_progress_new(const struct tensor_progress_options *options)
{
	static const struct tensor_progress_options none;
	const struct tensor_progress_options *o = options ? options : &none;
	tensor_progress *p;

	if (o->epochs < 0 || o->steps < 0) {
		tensor_fail(EINVAL, "progress_new: %lld epochs of %lld steps", (long long)o->epochs,
			    (long long)o->steps);
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(o->reserved); i++)
		if (o->reserved[i]) {
			tensor_fail(EINVAL, "progress_new: reserved is not 0");
			return NULL;
		}
	p = calloc(1, sizeof(*p));
	if (!p) {
		tensor_fail(ENOMEM, "progress_new: no memory");
		return NULL;
	}
	p->options = *o;
	snprintf(p->label, sizeof(p->label), "%s", o->label ? o->label : "loss");
	for (char *c = p->label; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	p->out = o->stream ? o->stream : stderr;
	p->curve.width = 1;
	p->curve.bad = -1;
	for (int i = 0; i < CURVE_POINTS; i++)
		p->curve.points[i] = (struct curve_point){ .least = NAN, .most = NAN };
	pthread_mutex_init(&p->lock, NULL);
	inspect_stream(p);
	begin_epoch(p);
	return p;
}

TENSOR_EXPORT int tensor_progress_step(tensor_progress *p, double loss, int64_t samples)
{
	int64_t now = now_ns();
	int err = 0;

	if (!p)
		return null_argument_code("progress_step");
	if (samples < 0)
		return tensor_fail(EINVAL, "progress_step: %lld samples", (long long)samples);
	pthread_mutex_lock(&p->lock);
	curve_add(&p->curve, loss);
	p->step++;
	p->samples = p->samples > INT64_MAX - samples ? INT64_MAX : p->samples + samples;
	p->last = loss;
	if (isfinite(loss)) {
		p->sum += loss;
		p->finite++;
	}
	if (p->terminal && !p->options.quiet && now - p->drawn >= REDRAW_NS)
		err = draw(p, now);
	pthread_mutex_unlock(&p->lock);
	return err;
}

TENSOR_EXPORT int tensor_progress_end_epoch(tensor_progress *p, const char *note)
{
	int err = 0;

	if (!p)
		return null_argument_code("progress_end_epoch");
	pthread_mutex_lock(&p->lock);
	if (!p->options.quiet)
		err = print_epoch(p, note);
	p->epoch++;
	begin_epoch(p);
	pthread_mutex_unlock(&p->lock);
	return err;
}

TENSOR_EXPORT int tensor_progress_save_svg(tensor_progress *p, const char *path, const char *title)
{
	struct curve *copy;
	int err;

	if (!p || !path)
		return null_argument_code("progress_save_svg");
	copy = malloc(sizeof(*copy));
	if (!copy)
		return tensor_fail(ENOMEM, "progress_save_svg: no memory");
	pthread_mutex_lock(&p->lock);
	*copy = p->curve;
	pthread_mutex_unlock(&p->lock);
	err = curve_save(copy, path, title, p->label);
	free(copy);
	return err;
}

TENSOR_EXPORT void tensor_progress_free(tensor_progress *p)
{
	if (!p)
		return;
	if (p->open)
		print(p, "", "", "\n");
	pthread_mutex_destroy(&p->lock);
	free(p);
}
