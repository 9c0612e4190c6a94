// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The command line: options, and the choice of the command. */
#include "args.h"
#include "commands/commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: tensorstat [OPTIONS] OBJECT [COMMAND | help]\n"
	"\n"
	"  device show                              totals and parameters of the module\n"
	"  device set NAME VALUE [NAME VALUE]...    change parameters (root)\n"
	"  buffer show [ID] [dtype DTYPE] [minsize SIZE] [owner PID] [shared]\n"
	"  client show [pid PID]                    processes that use the device\n"
	"  export show [buffer ID] [owner PID]      descriptors and dma-bufs of buffers\n"
	"  user show                                memory charged to each user, and the limits\n"
	"  group show [ID] [owner PID]              ranks of process groups, and what they moved\n"
	"  stat [DELAY [COUNT]]                     totals, a line for each sample\n"
	"  top [buffer | process | user] [owner PID|NAME] [text TEXT] [COUNT]\n"
	"                                           live screen, the largest first; ? for help\n"
	"  monitor [KIND]...                        events: alloc free import export seal revoke\n"
	"                                           purge limit death\n"
	"  metrics [--textfile FILE]                OpenMetrics text, for node_exporter\n"
	"  plot [seconds N] [every SEC] [from FILE]... [to FILE] [title TEXT]\n"
	"                                           memory over time as SVG or HTML\n"
	"  doctor                                   check the installation and the limits\n"
	"  help | version\n"
	"\n"
	"Options:\n"
	"  -j, --json        a JSON array; with --watch, an object on each line\n"
	"  -p, --pretty      indented JSON\n"
	"  -o, --oneline     a line of names and values for each row\n"
	"  -H, --no-header   no header line\n"
	"  -r, --raw         sizes in bytes\n"
	"  -c, --color[=WHEN]  always, auto or never; -c alone: always\n"
	"  -n, --numeric     process IDs without names\n"
	"      --sort COLUMN[:asc|:desc]  order of the rows; numbers descend by default\n"
	"      --fields A,B,C    the columns to show\n"
	"  -w, --watch SEC   repeat every SEC seconds\n"
	"  -b, --backend B   device (the module) or memfd; default: the module if it is loaded\n"
	"  -h, --help        print this text\n"
	"  -V, --version     print the version\n";

/* ---- objects ---- */

static const struct object {
	const char *name;
	enum status (*command)(char **arg, const struct options *o);
	bool show; /* has the command "show", which may be omitted */
} objects[] = {
	/* The first match wins when a name is abbreviated. */
	{ "buffer", cmd_buffer, true },	   { "client", cmd_client, true },
	{ "device", cmd_device, false },   { "stat", cmd_stat, false },
	{ "top", cmd_top, false },	   { "monitor", cmd_monitor, false },
	{ "metrics", cmd_metrics, false }, { "doctor", cmd_doctor, false },
	{ "export", cmd_export, true },	   { "user", cmd_user, true },
	{ "plot", cmd_plot, false },	   { "group", cmd_group, true },
};

#define OBJECTS (sizeof(objects) / sizeof(*objects))

static bool is_show(const char *arg)
{
	return matches(arg, "show") || matches(arg, "list");
}

static enum status unknown_object(const char *arg)
{
	const char *names[OBJECTS + 3] = { "help", "version" };

	for (size_t i = 0; i < OBJECTS; i++)
		names[i + 2] = objects[i].name;
	return usage_unknown("unknown object", arg, names);
}

static enum status run_command(char **arg, const struct options *o)
{
	static const char *const device_words[] = { "show", "set", "list", "help", NULL };
	static const char *const show_words[] = { "show", "list", "help", NULL };
	const struct object *object = NULL;

	for (size_t i = 0; i < OBJECTS && !object; i++)
		if (matches(*arg, objects[i].name))
			object = &objects[i];
	if (!object)
		return unknown_object(*arg);
	if (arg[1] && !strcmp(arg[1], "help")) {
		fputs(usage, stdout);
		return STATUS_OK;
	}
	if (object->command == cmd_device && arg[1] && !is_show(arg[1]) && !matches(arg[1], "set"))
		return usage_unknown("unknown command", arg[1], device_words);
	if (!object->show || !arg[1])
		return object->command(arg + 1, o);
	if (!is_show(arg[1]))
		return usage_unknown("unknown command", arg[1], show_words);
	return object->command(arg + 2, o);
}

/* ---- options ---- */

static bool color_by_default(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(no && *no) && term && *term && strcmp(term, "dumb");
}

/* getopt passes the value of -c=WHEN with the "=", that of --color=WHEN without. */
static enum status take_color(struct options *o, const char *when)
{
	static const char *const words[] = { "always", "auto", "never", NULL };

	if (when && *when == '=')
		when++;
	if (!when || !strcmp(when, "always"))
		o->color = true;
	else if (!strcmp(when, "never"))
		o->color = false;
	else if (strcmp(when, "auto"))
		return usage_unknown("--color expects always, auto or never, not", when, words);
	return STATUS_OK;
}

enum { OPTION_SORT = 256, OPTION_FIELDS, OPTION_TEXTFILE };

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

#define LONG_OPTIONS (sizeof(long_options) / sizeof(*long_options))

/* The word is the one that getopt_long() rejected. */
static enum status unknown_option(const char *word)
{
	static char text[LONG_OPTIONS][24];
	const char *names[LONG_OPTIONS] = { NULL };
	char name[64];

	for (size_t i = 0; long_options[i].name; i++) {
		snprintf(text[i], sizeof(text[i]), "--%s", long_options[i].name);
		names[i] = text[i];
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	if (!strncmp(word, "--", 2))
		return usage_unknown("unknown or ambiguous option", name, names);
	snprintf(name, sizeof(name), "-%c", optopt);
	return usage_error("unknown option", name);
}

static enum status take_option(struct options *o, int c, const char *word)
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
		return parse_seconds(optarg, &o->watch) ?
			       STATUS_OK :
			       usage_error("--watch expects seconds, not", optarg);
	case OPTION_SORT:
		o->sort = optarg;
		break;
	case OPTION_TEXTFILE:
		o->textfile = optarg;
		break;
	case OPTION_FIELDS:
		o->fields = optarg;
		break;
	case ':':
		return usage_error("a value is missing after", word);
	default:
		return unknown_option(word);
	}
	return STATUS_OK;
}

/* Sets *words to the words after the options; for --help and --version, to that word. */
static enum status take_options(int argc, char **argv, struct options *o, char ***words)
{
	static char *help[] = { "help", NULL }, *version[] = { "version", NULL };
	enum status status = STATUS_OK;
	int c, at = 1;

	opterr = 0;
	while (!status &&
	       (c = getopt_long(argc, argv, ":jpoHrnc::b:w:hV", long_options, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			*words = c == 'h' ? help : version;
			return STATUS_OK;
		}
		/* Within a group of short options optind does not move: "-jx" is argv[at]. */
		if (optind > at)
			at = optind - 1;
		status = take_option(o, c, argv[at]);
	}
	*words = argv + optind;
	if (!status && o->json && (o->fields || o->oneline)) {
		complain("--json has all keys and its own lines; it excludes --fields and "
			 "--oneline");
		status = STATUS_USAGE;
	}
	return status;
}

static enum status run_words(char **word, const struct options *o)
{
	if (strcmp(*word, "help") != 0 && strcmp(*word, "version") != 0)
		return run_command(word, o);
	fputs(**word == 'h' ? usage : "tensorstat " TENSOR_RELEASE "\n", stdout);
	return STATUS_OK;
}

/* Every command ends here: what it printed may be in the buffer of stdout, and an earlier write may have failed. */
static enum status check_output(enum status status)
{
	bool failed;

	errno = 0;
	failed = fflush(stdout) == EOF || ferror(stdout);
	if (!failed || status != STATUS_OK)
		return status;
	complain("standard output: %s", errno ? strerror(errno) : "a write failed");
	return STATUS_ERROR;
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
	return check_output(run_words(word, &o));
}
