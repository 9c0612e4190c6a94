// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * monitor: a line for each event of the module. If the socket overflowed and events were lost, a
 * dump of all buffers is compared with the buffers known before; the differences are reported as
 * allocations and frees, marked as found by dump.
 */
#include "args.h"
#include "backend/backend.h"
#include "backend/netlink.h"
#include "commands/commands.h"
#include "output/cell.h"
#include "output/json.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/tensor.h>
#include <linux/tensor_netlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct event {
	int cmd;
	bool found; /* by comparing dumps, not received as an event */
	int64_t buf, client, pid, uid, bytes, state, handles, limit, user_limit, seals, kind,
		rights;
	char comm[COMM_MAX];
};

/* A buffer that exists according to the last dump and the events since. */
struct known {
	uint64_t id, bytes;
	int64_t client, pid, uid;
	char comm[COMM_MAX];
};

static const struct row_type known_rows = { "buffer", sizeof(struct known), NULL };

static const struct {
	const char *name;
	int cmd;
} kinds[] = {
	{ "alloc", TENSOR_CMD_EVENT_ALLOC },   { "free", TENSOR_CMD_EVENT_FREE },
	{ "import", TENSOR_CMD_EVENT_IMPORT }, { "export", TENSOR_CMD_EVENT_EXPORT },
	{ "seal", TENSOR_CMD_EVENT_SEAL },     { "revoke", TENSOR_CMD_EVENT_REVOKE },
	{ "purge", TENSOR_CMD_EVENT_PURGE },   { "limit", TENSOR_CMD_EVENT_LIMIT },
	{ "death", TENSOR_CMD_EVENT_DEATH },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

static struct {
	const struct options *o;
	struct nl_sock *sock;
	struct list known; /* by ascending id */
	bool wanted[KINDS];
	bool pids; /* process IDs of events are valid in this namespace */
} m = { .known.type = &known_rows };

static const char *kind_name(int cmd)
{
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].cmd == cmd)
			return kinds[i].name;
	return NULL;
}

static bool kind_wanted(int cmd)
{
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].cmd == cmd)
			return m.wanted[i];
	return false;
}

/* ---- writing ---- */

static const char *export_type(const struct event *e)
{
	if (e->kind == UNKNOWN)
		return NULL;
	return e->kind == TENSOR_EXPORT_KIND_DMABUF ? "dmabuf" : "fd";
}

static void put_seals(int64_t seals)
{
	if (seals != UNKNOWN)
		printf(" seals%s%s%s", seals & TENSOR_SEAL_WRITE ? " write" : "",
		       seals & TENSOR_SEAL_META ? " meta" : "",
		       seals & TENSOR_SEAL_SEAL ? " seal" : "");
}

static void write_json(const struct event *e)
{
	json_open(stdout, m.o->pretty);
	json_enter('{');
	json_u64("time_ms", now_ms());
	json_string("event", kind_name(e->cmd));
	json_bool("resync", e->found);
	json_known("buffer", e->buf);
	json_known("client", e->client);
	json_known("pid", e->pid);
	json_known("uid", e->uid);
	json_string("comm", e->comm);
	json_known("bytes", e->bytes);
	json_key("readonly");
	fputs(e->state == UNKNOWN	     ? "null" :
	      e->state & TENSOR_STATE_RDONLY ? "true" :
					       "false",
	      stdout);
	json_flags("rights", e->rights, right_names);
	json_known("handles", e->handles);
	json_known("limit_bytes", e->limit);
	json_known("user_limit_bytes", e->user_limit);
	json_known("seals", e->seals);
	json_string("type", export_type(e));
	json_leave('}');
	json_close();
}

static void put_number(const char *name, int64_t value)
{
	if (value != UNKNOWN)
		printf(" %s %" PRId64, name, value);
}

static void put_bytes(const char *name, int64_t bytes)
{
	char text[CELL];

	if (bytes == UNKNOWN)
		return;
	put_size(text, sizeof(text), (uint64_t)bytes, m.o);
	printf(" %s %s", name, text);
}

static void write_text(const struct event *e)
{
	int64_t now = now_ms();
	time_t seconds = now / 1000;
	enum tone tone = e->cmd == TENSOR_CMD_EVENT_LIMIT || e->cmd == TENSOR_CMD_EVENT_DEATH ?
				 TONE_WARN :
				 TONE_PLAIN;
	char clock[16], text[CELL];

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&seconds));
	printf("%s.%03d %s%-6s%s", clock, (int)(now % 1000), tone_begin(tone, m.o),
	       kind_name(e->cmd), tone_end(tone, m.o));
	put_number("buffer", e->buf);
	put_bytes("size", e->bytes);
	put_number("client", e->client);
	if (e->pid != UNKNOWN)
		printf(m.o->numeric ? " pid %" PRId64 : " pid %" PRId64 "/%s", e->pid, e->comm);
	put_number("uid", e->uid);
	if (e->rights != UNKNOWN) {
		put_rights(text, sizeof(text), (uint32_t)e->rights);
		printf(" rights %s", text);
	}
	put_number("handles", e->handles);
	put_bytes("limit", e->limit);
	put_bytes("user-limit", e->user_limit);
	put_seals(e->seals);
	if (export_type(e))
		printf(" %s", export_type(e));
	puts(e->found ? " (found by dump)" : "");
}

static void report(const struct event *e)
{
	if (kind_wanted(e->cmd))
		(m.o->json ? write_json : write_text)(e);
}

/* ---- known buffers ---- */

/* Index of the first known buffer whose ID is not below id. */
static size_t known_place(uint64_t id)
{
	size_t low = 0, high = m.known.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (((struct known *)list_row(&m.known, middle))->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct known *known_at(size_t place, uint64_t id)
{
	struct known *k = place < m.known.n ? list_row(&m.known, place) : NULL;

	return k && k->id == id ? k : NULL;
}

static void known_add(const struct known *k)
{
	size_t place = known_place(k->id);

	list_add(&m.known);
	memmove(list_row(&m.known, place + 1), list_row(&m.known, place),
		(m.known.n - 1 - place) * sizeof(*k));
	*(struct known *)list_row(&m.known, place) = *k;
}

static void known_remove(size_t place)
{
	m.known.n--;
	memmove(list_row(&m.known, place), list_row(&m.known, place + 1),
		(m.known.n - place) * sizeof(struct known));
}

static int take_known(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[TENSOR_A_BUF_MAX + 1];
	struct known *k;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_BUF_MAX, NULL) < 0)
		return NL_SKIP;
	k = list_add(arg);
	k->id = get_u64(a[TENSOR_A_BUF_ID]);
	k->bytes = get_u64(a[TENSOR_A_BUF_BYTES]);
	k->client = get_known(a[TENSOR_A_BUF_CLIENT]);
	k->pid = get_known(a[TENSOR_A_BUF_PID]);
	k->uid = get_known(a[TENSOR_A_BUF_UID]);
	get_text(a[TENSOR_A_BUF_COMM], k->comm, sizeof(k->comm));
	return NL_OK;
}

static enum status read_known(struct list *list)
{
	return netlink_dump("buffers", TENSOR_CMD_BUF_GET, take_known, list);
}

static void report_found(int cmd, const struct known *k)
{
	struct event e = {
		.cmd = cmd,
		.found = true,
		.buf = (int64_t)k->id,
		.client = k->client,
		.pid = k->pid,
		.uid = k->uid,
		.bytes = (int64_t)k->bytes,
		.state = UNKNOWN,
		.handles = UNKNOWN,
		.limit = UNKNOWN,
		.user_limit = UNKNOWN,
		.seals = UNKNOWN,
		.kind = UNKNOWN,
		.rights = UNKNOWN,
	};

	memcpy(e.comm, k->comm, sizeof(e.comm));
	report(&e);
}

/*
 * Reports the differences between the known buffers and a new dump; both lists are sorted. Events
 * that are still queued in the socket are older than the dump or repeat it: is_new() drops these.
 */
static enum status resync(void)
{
	struct list now = { .type = &known_rows };
	enum status status = read_known(&now);
	size_t i = 0, k = 0;

	complain("events were lost; reading the list again");
	while (!status && (i < m.known.n || k < now.n)) {
		const struct known *had = i < m.known.n ? list_row(&m.known, i) : NULL;
		const struct known *have = k < now.n ? list_row(&now, k) : NULL;

		if (!have || (had && had->id < have->id)) {
			report_found(TENSOR_CMD_EVENT_FREE, had);
			i++;
		} else if (!had || have->id < had->id) {
			report_found(TENSOR_CMD_EVENT_ALLOC, have);
			k++;
		} else {
			i++;
			k++;
		}
	}
	list_clear(&m.known);
	m.known = now;
	return status;
}

/* ---- events ---- */

static void parse_event(struct nlattr **a, struct event *e)
{
	e->buf = get_known(a[TENSOR_A_EVENT_BUF]);
	e->client = get_known(a[TENSOR_A_EVENT_CLIENT]);
	e->pid = m.pids ? get_known(a[TENSOR_A_EVENT_PID]) : UNKNOWN;
	e->uid = get_known(a[TENSOR_A_EVENT_UID]);
	e->bytes = get_known(a[TENSOR_A_EVENT_BYTES]);
	e->state = get_known(a[TENSOR_A_EVENT_STATE]);
	e->handles = get_known(a[TENSOR_A_EVENT_HANDLES]);
	e->limit = get_known(a[TENSOR_A_EVENT_LIMIT_BYTES]);
	e->user_limit = get_known(a[TENSOR_A_EVENT_USER_LIMIT_BYTES]);
	e->seals = get_known(a[TENSOR_A_EVENT_SEALS]);
	e->kind = get_known(a[TENSOR_A_EVENT_KIND]);
	e->rights = get_known(a[TENSOR_A_EVENT_RIGHTS]);
	get_text(a[TENSOR_A_EVENT_COMM], e->comm, sizeof(e->comm));
}

/* False for an allocation or a free that the last dump already includes. */
static bool is_new(const struct event *e)
{
	size_t place = known_place((uint64_t)e->buf);
	struct known *k = known_at(place, (uint64_t)e->buf);

	if (e->cmd == TENSOR_CMD_EVENT_ALLOC && !k) {
		struct known new = { (uint64_t)e->buf, (uint64_t)e->bytes,
				     e->client,	       e->pid,
				     e->uid,	       "" };

		memcpy(new.comm, e->comm, sizeof(new.comm));
		known_add(&new);
		return true;
	}
	if (e->cmd == TENSOR_CMD_EVENT_FREE && k)
		known_remove(place);
	return e->cmd == TENSOR_CMD_EVENT_ALLOC ? false :
	       e->cmd == TENSOR_CMD_EVENT_FREE	? !!k :
						  true;
}

static int take_event(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *a[TENSOR_A_EVENT_MAX + 1];
	struct event e = { .cmd = g->cmd };

	if (!kind_name(e.cmd) || genlmsg_parse(nlmsg_hdr(msg), 0, a, TENSOR_A_EVENT_MAX, NULL) < 0)
		return NL_SKIP;
	parse_event(a, &e);
	if (is_new(&e))
		report(&e);
	return NL_OK;
}

static enum status receive_events(void)
{
	enum status status = STATUS_OK;

	nl_socket_modify_cb(m.sock, NL_CB_VALID, NL_CB_CUSTOM, take_event, NULL);
	while (!status) {
		int err = nl_recvmsgs_default(m.sock);

		/* libnl reports ENOBUFS, a full socket buffer, with the code of ENOMEM. */
		if (err == -NLE_NOMEM)
			status = resync();
		else if (err < 0 && err != -NLE_INTR && err != -NLE_AGAIN) {
			complain("events: %s", nl_geterror(err));
			status = STATUS_ERROR;
		}
		if (fflush(stdout) == EOF)
			return STATUS_ERROR;
	}
	return status;
}

static enum status unknown_kind(const char *arg)
{
	const char *names[KINDS + 1] = { NULL };

	for (size_t i = 0; i < KINDS; i++)
		names[i] = kinds[i].name;
	return usage_unknown("unknown kind of event", arg, names);
}

static enum status parse(char **arg)
{
	bool all = !*arg;
	size_t i;

	for (i = 0; i < KINDS; i++)
		m.wanted[i] = all;
	for (; *arg; arg++) {
		for (i = 0; i < KINDS && !matches(*arg, kinds[i].name); i++)
			;
		if (i == KINDS)
			return unknown_kind(*arg);
		m.wanted[i] = true;
	}
	return STATUS_OK;
}

/* Events have process IDs of the initial PID namespace, whose inode number is constant. */
static bool in_initial_pid_namespace(void)
{
	char link[64] = "";

	return readlink("/proc/self/ns/pid", link, sizeof(link) - 1) > 0 &&
	       !strcmp(link, "pid:[4026531836]");
}

enum status cmd_monitor(char **arg, const struct options *o)
{
	enum status status = parse(arg);

	if (status)
		return status;
	m.o = o;
	m.pids = in_initial_pid_namespace();
	if (o->backend && strcmp(o->backend, device_backend.name)) {
		complain("only the device backend has events");
		return STATUS_UNSUPPORTED;
	}
	status = netlink_open();
	if (status == STATUS_NO_MODULE)
		complain("the tensor module is not loaded");
	if (status)
		return status;
	/* Subscribe before the first dump: an event in between is received, and is_new() drops it. */
	m.sock = netlink_listen(&status);
	if (!status)
		status = read_known(&m.known);
	if (!status)
		status = receive_events();
	return status;
}
