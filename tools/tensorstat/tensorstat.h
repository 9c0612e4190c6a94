/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * tensorstat: who has which tensor buffers. A backend fills a list of rows, a filter thins it out,
 * and one of two writers shows it: a table for people, JSON for programs.
 */
#ifndef TENSORSTAT_H
#define TENSORSTAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <tensor/types.h>

#define LABEL_MAX 32
#define COMM_MAX  16

/* Exit status, as in tensorstat(1). */
enum status {
	STATUS_OK = 0,
	STATUS_ERROR = 1,
	STATUS_USAGE = 2,
	STATUS_UNSUPPORTED = 3,
	STATUS_PERMISSION = 4,
	STATUS_NOT_FOUND = 6,
	STATUS_NO_MODULE = 9,
	STATUS_INCONSISTENT = 100,
};

struct options {
	bool json, pretty, no_header, raw, numeric;
};

/* ---- rows ------------------------------------------------------------------------------------ */

struct owner {
	pid_t pid;
	uint32_t uid;
	unsigned refs; /* its fds; 0: not known for one owner apart */
	char comm[COMM_MAX];
};

#define UNKNOWN (-1)

struct buffer {
	uint64_t id, dev, bytes, pinned_bytes;
	uint32_t dtype, ndim; /* dtype 0: nobody said what the bytes are */
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], offset;
	char label[LABEL_MAX]; /* printable UTF-8 */
	uint64_t refs;
	bool shared, readonly, orphan;
	/* UNKNOWN where the backend does not tell */
	int64_t huge_bytes, handles, files, mappings, age_ns, client;
	int64_t node; /* -1, too: pages on several */
	struct owner *owners;
	size_t n_owners, cap_owners;
	bool foreign; /* of the memfd backend: not one of ours after all */
};

struct buffers {
	struct buffer *row;
	size_t n, cap;
};

struct client {
	uint64_t id, handles, bytes;
	struct owner owner;
	int64_t age_ns;
};

struct clients {
	struct client *row;
	size_t n, cap;
};

/* A new zeroed row at the end. */
struct buffer *buffers_add(struct buffers *list);
struct client *clients_add(struct clients *list);
struct owner *owners_add(struct buffer *b);
void buffers_clear(struct buffers *list);
void clients_clear(struct clients *list);
/* Copies text that a stranger wrote: what a terminal or JSON would choke on becomes '?'. */
void copy_text(char *to, size_t size, const char *from);
const char *dtype_name(uint32_t dtype);
/* The number behind a name, 0 for none. */
uint32_t dtype_by_name(const char *name);

/* ---- backends ---------------------------------------------------------------------------------- */

/* Lists come sorted by id. A failure has been reported on stderr. */
struct backend {
	const char *name; /* that of the library's provider */
	enum status (*open)(void); /* STATUS_NO_MODULE is not reported */
	enum status (*buffers)(struct buffers *list);
	enum status (*clients)(struct clients *list);
};

extern const struct backend device_backend, memfd_backend;

/* ---- writers ------------------------------------------------------------------------------------ */

void table_buffers(const struct buffers *list, const struct backend *b, const struct options *o);
void table_clients(const struct clients *list, const struct backend *b, const struct options *o);
void json_buffers(const struct buffers *list, const struct backend *b, const struct options *o);
void json_clients(const struct clients *list, const struct backend *b, const struct options *o);

void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
