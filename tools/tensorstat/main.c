// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The command line: options, and who does what. */
#include "tensorstat.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: tensorstat [OPTIONS] OBJECT [COMMAND | help]\n"
	"\n"
	"  device show                              the module's totals and parameters\n"
	"  device set NAME VALUE [NAME VALUE]...    change parameters (root)\n"
	"  buffer show [ID] [dtype DTYPE] [minsize SIZE] [owner PID] [shared]\n"
	"  client show [pid PID]\n"
	"  export show [buffer ID] [owner PID]      fds and dma-bufs that were made of buffers\n"
	"  user show                                who pays how much\n"
	"  stat [DELAY [COUNT]]                     totals, again and again\n"
	"  top [buffer | process | user] [COUNT]    the largest, on a live screen\n"
	"  monitor [KIND]...                        what happens: alloc free import export seal\n"
	"                                           revoke purge limit death\n"
	"  metrics [--textfile FILE]                OpenMetrics, for node_exporter\n"
	"  doctor                                   what is wrong, and how to mend it\n"
	"  help | version\n"
	"\n"
	"Options:\n"
	"  -j, --json        a JSON array; an object a line when watching\n"
	"  -p, --pretty      the same, indented\n"
	"  -o, --oneline     a line of names and values a row\n"
	"  -H, --no-header   rows without a header\n"
	"  -r, --raw         sizes in bytes\n"
	"  -c, --color[=WHEN]  always, auto or never; -c alone: always\n"
	"  -n, --numeric     owners without their names\n"
	"      --sort KEY[:asc]  by a column; numbers begin with the largest\n"
	"      --fields A,B,C    these columns\n"
	"  -w, --watch SEC   again every SEC seconds\n"
	"  -b, --backend B   device (the module) or memfd; the module if it is loaded\n"
	"  -h, --help        this text\n"
	"  -V, --version     the version\n";

static const struct backend *const backends[] = { &device_backend, &memfd_backend };

enum status choose_backend(const char *name, const struct backend **b)
{
	enum status status = STATUS_NO_MODULE;

	for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++) {
		if (name && strcmp(name, backends[i]->name))
			continue;
		*b = backends[i];
		status = backends[i]->open();
		if (status != STATUS_NO_MODULE)
			return status;
	}
	if (name && strcmp(name, device_backend.name))
		return bad("backend", name);
	complain("the tensor module is not loaded");
	return status;
}

/* ---- objects ---- */

static const struct object {
	const char *name;
	enum status (*run)(char **arg, const struct options *o);
	bool show; /* has the command "show", which may be left out */
} objects[] = {
	{ "buffer", cmd_buffer, true },	   { "client", cmd_client, true },
	{ "device", cmd_device, false },   { "stat", cmd_stat, false },
	{ "top", cmd_top, false },	   { "monitor", cmd_monitor, false },
	{ "metrics", cmd_metrics, false }, { "doctor", cmd_doctor, false },
	{ "export", cmd_export, true },	   { "user", cmd_user, true },
};

static bool is_show(const char *arg)
{
	return is(arg, "show") || is(arg, "list");
}

static enum status run_object(char **arg, const struct options *o)
{
	const struct object *object = NULL;

	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects) && !object; i++)
		if (is(*arg, objects[i].name))
			object = &objects[i];
	if (!object)
		return bad("there is no object", *arg);
	if (arg[1] && !strcmp(arg[1], "help")) {
		fputs(usage, stdout);
		return STATUS_OK;
	}
	if (object->run == cmd_device && arg[1] && !is_show(arg[1]) && !is(arg[1], "set"))
		return bad("there is no command", arg[1]);
	if (!object->show || !arg[1])
		return object->run(arg + 1, o);
	if (!is_show(arg[1]))
		return bad("there is no command", arg[1]);
	return object->run(arg + 2, o);
}

/* ---- options ---- */

static bool color_by_default(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb");
}

/* -c=WHEN comes with its "=", --color=WHEN without. */
static enum status take_color(struct options *o, const char *when)
{
	if (when && *when == '=')
		when++;
	if (!when || !strcmp(when, "always"))
		o->color = true;
	else if (!strcmp(when, "never"))
		o->color = false;
	else if (strcmp(when, "auto"))
		return bad("color is always, auto or never, not", when);
	return STATUS_OK;
}

enum { OPTION_SORT = 256, OPTION_FIELDS, OPTION_TEXTFILE };

static enum status take_option(struct options *o, int c)
{
	switch (c) {
	case 'p':
		o->pretty = true;
		/* fall through */
	case 'j':
		o->json = true;
		break;
	case 'o':
		o->oneline = true;
		break;
	case 'H':
		o->no_header = true;
		break;
	case 'r':
		o->raw = true;
		break;
	case 'n':
		o->numeric = true;
		break;
	case 'c':
		return take_color(o, optarg);
	case 'b':
		o->backend = optarg;
		break;
	case 'w':
		return parse_seconds(optarg, &o->watch) ? STATUS_OK :
							  bad("--watch wants seconds, not", optarg);
	case OPTION_SORT:
		o->sort = optarg;
		break;
	case OPTION_TEXTFILE:
		o->textfile = optarg;
		break;
	case OPTION_FIELDS:
		o->fields = optarg;
		break;
	default:
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	return STATUS_OK;
}

/* Returns the words behind the options; "help" and "version" for those options. */
static enum status take_options(int argc, char **argv, struct options *o, char ***words)
{
	static const struct option long_options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "pretty", no_argument, NULL, 'p' },
		{ "oneline", no_argument, NULL, 'o' },
		{ "no-header", no_argument, NULL, 'H' },
		{ "raw", no_argument, NULL, 'r' },
		{ "numeric", no_argument, NULL, 'n' },
		{ "color", optional_argument, NULL, 'c' },
		{ "sort", required_argument, NULL, OPTION_SORT },
		{ "fields", required_argument, NULL, OPTION_FIELDS },
		{ "textfile", required_argument, NULL, OPTION_TEXTFILE },
		{ "watch", required_argument, NULL, 'w' },
		{ "backend", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	static char *help[] = { "help", NULL }, *version[] = { "version", NULL };
	enum status status = STATUS_OK;
	int c;

	while (!status &&
	       (c = getopt_long(argc, argv, "jpoHrnc::b:w:hV", long_options, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			*words = c == 'h' ? help : version;
			return STATUS_OK;
		}
		status = take_option(o, c);
	}
	*words = argv + optind;
	if (!status && o->json && (o->fields || o->oneline)) {
		complain("JSON has all keys, and lines of its own: no --fields and no --oneline");
		status = STATUS_USAGE;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct options o = { .color = color_by_default() };
	enum status status;
	char **word;

	status = take_options(argc, argv, &o, &word);
	if (status)
		return status;
	if (!*word) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(*word, "help") || !strcmp(*word, "version")) {
		fputs(**word == 'h' ? usage : "tensorstat " TENSOR_RELEASE "\n", stdout);
		return STATUS_OK;
	}
	status = run_object(word, &o);
	if (fflush(stdout) == EOF && status == STATUS_OK) {
		complain("standard output: %s", strerror(errno));
		status = STATUS_ERROR;
	}
	return status;
}
