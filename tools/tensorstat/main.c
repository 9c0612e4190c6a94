// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The command line: options, objects, filters. */
#include "tensorstat.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: tensorstat [OPTIONS] OBJECT {COMMAND | help}\n"
	"\n"
	"  tensorstat buffer show [ID] [dtype DTYPE] [minsize SIZE] [owner PID] [shared]\n"
	"  tensorstat client show [pid PID]\n"
	"  tensorstat help | version\n"
	"\n"
	"Options:\n"
	"  -j, --json        a JSON array\n"
	"  -p, --pretty      the same, indented\n"
	"  -H, --no-header   rows without a header\n"
	"  -r, --raw         sizes in bytes\n"
	"  -n, --numeric     owners without their names\n"
	"  -b, --backend B   device (the module) or memfd; the module if it is loaded\n"
	"  -h, --help        this text\n"
	"  -V, --version     the version\n";

/* What a row must be. 0, or false: any. */
struct filter {
	bool has_id, shared;
	uint64_t id, min_bytes;
	uint32_t dtype;
	pid_t pid;
};

static const struct backend *const backends[] = {&device_backend, &memfd_backend};

/* ---- arguments -------------------------------------------------------------------------------- */

static enum status bad(const char *what, const char *text)
{
	complain("%s \"%s\"; see tensorstat help", what, text);
	return STATUS_USAGE;
}

/* As iproute2: a word may be cut short. */
static bool is(const char *arg, const char *word)
{
	size_t n = strlen(arg);

	return n && !strncmp(arg, word, n);
}

static bool parse_u64(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool parse_pid(const char *text, pid_t *pid)
{
	uint64_t value;

	if (!parse_u64(text, &value) || !value || value > INT32_MAX)
		return false;
	*pid = (pid_t)value;
	return true;
}

/* 4096, 64K, 1.5M, 2GiB: units of 1024. */
static bool parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGTPE";
	double value;
	char *end;
	const char *u;

	value = strtod(text, &end);
	if (end == text || !(value >= 0))
		return false;
	u = *end ? strchr(units, *end >= 'a' ? *end - 32 : *end) : NULL;
	if (u) {
		value *= (double)(1ull << 10 * (u - units + 1));
		end++;
		if (*end == 'i')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end || value >= 0x1p64)
		return false;
	*bytes = (uint64_t)value;
	return true;
}

static enum status parse_buffer_filter(char **arg, struct filter *f)
{
	if (*arg && parse_u64(*arg, &f->id)) {
		f->has_id = true;
		arg++;
	}
	for (; *arg; arg++) {
		const char *word = *arg;

		if (is(word, "shared")) {
			f->shared = true;
			continue;
		}
		if (!is(word, "dtype") && !is(word, "minsize") && !is(word, "owner"))
			return bad("what is", word);
		if (!*++arg)
			return bad("a value is missing after", word);
		if (is(word, "dtype"))
			f->dtype = dtype_by_name(*arg);
		if ((is(word, "dtype") && !f->dtype) ||
		    (is(word, "minsize") && !parse_size(*arg, &f->min_bytes)) ||
		    (is(word, "owner") && !parse_pid(*arg, &f->pid)))
			return bad(word, *arg);
	}
	return STATUS_OK;
}

static enum status parse_client_filter(char **arg, struct filter *f)
{
	if (!*arg)
		return STATUS_OK;
	if (!is(*arg, "pid"))
		return bad("what is", *arg);
	if (!arg[1])
		return bad("a value is missing after", *arg);
	if (!parse_pid(arg[1], &f->pid))
		return bad("pid", arg[1]);
	return arg[2] ? bad("what is", arg[2]) : STATUS_OK;
}

/* ---- show --------------------------------------------------------------------------------------- */

static bool owned_by(const struct buffer *b, pid_t pid)
{
	for (size_t i = 0; i < b->n_owners; i++)
		if (b->owners[i].pid == pid)
			return true;
	return false;
}

static bool wanted(const struct buffer *b, const struct filter *f)
{
	return (!f->has_id || b->id == f->id) && (!f->dtype || b->dtype == f->dtype) &&
	       b->bytes >= f->min_bytes && (!f->pid || owned_by(b, f->pid)) &&
	       (!f->shared || b->shared);
}

static enum status show_buffers(const struct backend *b, char **arg, const struct options *o)
{
	struct buffers list = {0}, left;
	struct filter f = {0};
	enum status status = parse_buffer_filter(arg, &f);

	if (!status)
		status = b->buffers(&list);
	if (status)
		goto out;
	left = list;
	left.n = 0;
	for (size_t i = 0; i < list.n; i++) {
		struct buffer row = list.row[i];

		if (wanted(&row, &f)) {
			list.row[i] = left.row[left.n]; /* so that each is freed once */
			left.row[left.n++] = row;
		}
	}
	if (f.has_id && !left.n) {
		complain("there is no buffer %s that you may see", arg[0]);
		status = STATUS_NOT_FOUND;
		goto out;
	}
	(o->json ? json_buffers : table_buffers)(&left, b, o);
out:
	buffers_clear(&list);
	return status;
}

static enum status show_clients(const struct backend *b, char **arg, const struct options *o)
{
	struct clients list = {0};
	struct filter f = {0};
	enum status status = parse_client_filter(arg, &f);
	size_t n = 0;

	if (!status)
		status = b->clients(&list);
	if (status)
		goto out;
	for (size_t i = 0; i < list.n; i++)
		if (!f.pid || list.row[i].owner.pid == f.pid)
			list.row[n++] = list.row[i];
	list.n = n;
	if (f.pid && !n) {
		complain("process %s is no client that you may see", arg[1]);
		status = STATUS_NOT_FOUND;
		goto out;
	}
	(o->json ? json_clients : table_clients)(&list, b, o);
out:
	clients_clear(&list);
	return status;
}

static enum status choose_backend(const char *name, const struct backend **b)
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

static enum status run_object(char **arg, const char *backend, const struct options *o)
{
	enum status (*show)(const struct backend *, char **, const struct options *);
	const struct backend *b;
	enum status status;

	if (is(*arg, "buffer"))
		show = show_buffers;
	else if (is(*arg, "client"))
		show = show_clients;
	else
		return bad("there is no object", *arg);
	if (arg[1] && is(arg[1], "help")) {
		fputs(usage, stdout);
		return STATUS_OK;
	}
	if (arg[1] && !is(arg[1], "show") && !is(arg[1], "list"))
		return bad("there is no command", arg[1]);
	status = choose_backend(backend, &b);
	return status ? status : show(b, arg + (arg[1] ? 2 : 1), o);
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"json", no_argument, NULL, 'j'},	{"pretty", no_argument, NULL, 'p'},
		{"no-header", no_argument, NULL, 'H'},	{"raw", no_argument, NULL, 'r'},
		{"numeric", no_argument, NULL, 'n'},	{"backend", required_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},	{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	const char *backend = NULL, *word;
	struct options o = {0};
	enum status status;
	int c;

	while ((c = getopt_long(argc, argv, "jpHrnb:hV", long_options, NULL)) != -1) {
		o.json |= c == 'j' || c == 'p';
		o.pretty |= c == 'p';
		o.no_header |= c == 'H';
		o.raw |= c == 'r';
		o.numeric |= c == 'n';
		if (c == 'b')
			backend = optarg;
		if (c == '?') {
			fputs(usage, stderr);
			return STATUS_USAGE;
		}
		if (c == 'h' || c == 'V')
			argv[--optind] = c == 'h' ? "help" : "version";
		if (c == 'h' || c == 'V')
			break;
	}
	word = argv[optind];
	if (!word) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(word, "help") || !strcmp(word, "version")) {
		fputs(*word == 'h' ? usage : "tensorstat " TENSOR_RELEASE "\n", stdout);
		return STATUS_OK;
	}
	status = run_object(argv + optind, backend, &o);
	if (fflush(stdout) == EOF && status == STATUS_OK) {
		complain("standard output: %s", strerror(errno));
		status = STATUS_ERROR;
	}
	return status;
}
