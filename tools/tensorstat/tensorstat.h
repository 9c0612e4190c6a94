/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * tensorstat: who has which tensor buffers.
 *
 *	backend_*.c   fill lists of rows: from the module, or from /proc
 *	columns.c     what a row looks like in a table; json.c for programs
 *	view.c        which columns, in which order; table.c draws them
 *	show.c ...    one file for each thing that can be asked
 *	main.c        the command line
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
#define CELL	  96

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
	bool json, pretty, oneline, no_header, raw, numeric, color;
	const char *fields;   /* names with commas between, or NULL */
	const char *sort;     /* NAME or NAME:asc, or NULL */
	const char *backend;  /* NULL: the module if it is loaded */
	const char *textfile; /* for metrics; NULL: standard output */
	double watch;	      /* seconds; 0: once */
};

/* ---- rows ---- */

#define UNKNOWN (-1)

struct owner {
	pid_t pid;
	uint32_t uid;
	int64_t refs; /* handles or fds; UNKNOWN: not told for one process apart */
	bool maker;
	char comm[COMM_MAX];
};

/* What one element is. */
struct element {
	uint32_t bits; /* 0: that is not known */
	uint32_t tag;  /* enum tensor_dtype, if the library's programs gave it */
};

struct buffer {
	uint64_t id, dev, bytes, pinned_bytes;
	struct element element; /* bits 0: there is no descriptor */
	uint32_t ndim;
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], offset;
	char label[LABEL_MAX]; /* printable UTF-8 */
	uint64_t refs;
	bool shared, orphan;
	const char *kind;      /* where the memory comes from */
	unsigned seals, state; /* TENSOR_SEAL_*, TENSOR_STATE_* */
	/* UNKNOWN where the backend does not tell */
	int64_t huge_bytes, handles, files, mappings, dmabufs, attachments, age_ns, client;
	int64_t node;	      /* -1, too: pages on several */
	struct owner *owners; /* the maker first, where it is known */
	size_t n_owners, cap_owners;
	bool foreign; /* of the memfd backend: not one of ours after all */
};

struct client {
	uint64_t id, handles, bytes;
	struct owner owner;
	int64_t age_ns;
};

/* Buffers of one process or user together. */
struct holder {
	struct owner owner;
	uint64_t buffers, bytes, pinned_bytes, shared, orphans;
};

/* An fd or a dma-buf that EXPORT made, whoever has it now. */
struct export
{
	uint64_t id, buffer, offset, bytes;
	bool dmabuf, part;
	uint32_t rights; /* TENSOR_RIGHT_* */
	int64_t age_ns;
	struct owner owner;
};

struct totals {
	int64_t time_ms; /* since 1970 */
	int64_t clients, buffers, bytes, huge_bytes;
	/* UNKNOWN without the module */
	int64_t limit_bytes, refused, used_bytes, purgeable_bytes, linger_bytes, files, dmabufs;
	int64_t user_limit_bytes, user_refused;
	int64_t pool_bytes, pool_limit_bytes, pool_hits, pool_misses;
	int64_t pool_zeroed_bytes, pool_fetched_bytes, pool_reclaimed_bytes;
};

/* Who pays, and how much. */
struct payer {
	uint32_t uid;
	uint64_t bytes, limit_bytes, refused, objects;
};

struct cell;
struct column;
struct backend;

/* What there is to know about a kind of row. */
struct kind {
	const char *name;
	size_t size;
	const struct column *columns;
	int n_columns;
	void (*json)(const void *row, const struct backend *b); /* the keys of one object */
	void (*clear)(void *row);				/* what the row owns, or NULL */
};

extern const struct kind buffer_kind, client_kind, export_kind, payer_kind;
extern const struct kind process_kind, user_kind, totals_kind;

struct list {
	const struct kind *kind;
	char *row;
	size_t n, cap;
};

static inline void *list_row(const struct list *list, size_t i)
{
	return list->row + i * list->kind->size;
}

/* A new zeroed row at the end. */
void *list_add(struct list *list);
void list_clear(struct list *list);
/* Only those that are wanted stay. */
void list_filter(struct list *list, bool (*wanted)(const void *row, const void *arg),
		 const void *arg);
/* One more zeroed element for a list of n, which has room for *cap. */
void *grow(void *list, size_t n, size_t *cap, size_t size);
struct owner *owners_add(struct buffer *b);
/* Copies text that a stranger wrote: what a terminal or JSON would choke on becomes '?'. */
void copy_text(char *to, size_t size, const char *from);
/* Of the library's dtypes; 0 for another number. */
uint32_t dtype_bits(uint32_t dtype);
/* Whether tag and bits are those of one of the library's dtypes. */
bool element_is_dtype(const struct element *e);
/* Its name, written into @text; NULL if nothing is known. */
const char *element_name(char *text, size_t room, const struct element *e);
/* From what element_name() writes. */
bool element_parse(const char *text, struct element *e);
int64_t now_ms(void);

/* ---- backends ---- */

/* Lists come sorted by id. A failure has been reported on stderr. */
struct backend {
	const char *name;	   /* that of the library's provider */
	enum status (*open)(void); /* STATUS_NO_MODULE is not reported */
	enum status (*buffers)(struct list *list);
	enum status (*clients)(struct list *list);
	/* NULL: there is no such thing */
	enum status (*exports)(struct list *list);
	enum status (*payers)(struct list *list);
	enum status (*totals)(struct totals *totals);
};

extern const struct backend device_backend, memfd_backend;

enum status choose_backend(const char *name, const struct backend **b);

/* ---- columns, tables, JSON ---- */

enum tone { TONE_PLAIN, TONE_HEAD, TONE_GOOD, TONE_WARN, TONE_BAD };

/* What a row says in a column. */
struct cell {
	char text[CELL];
	uint64_t key; /* what it is sorted by, unless that is the text */
	bool by_key;
	enum tone tone;
};

struct column {
	const char *name; /* for --fields and --sort; the head is the same in capitals */
	bool shown;	  /* without --fields */
	bool right; /* numbers end where the column ends, and begin with the largest when sorted */
	void (*put)(struct cell *cell, const void *row, const struct options *o);
};

#define VIEW_MAX 32

/* Which columns of a kind, and by which one rows are sorted (-1: as they come). */
struct view {
	const struct kind *kind;
	int column[VIEW_MAX], n;
	int sort;
	bool descending;
};

enum status view_init(struct view *v, const struct kind *kind, const struct options *o);
/* Pointers to the rows in the view's order; for free(). */
const void **view_order(const struct view *v, const struct list *list, const struct options *o);
void table_print(FILE *out, const struct view *v, const void *const *row, size_t n,
		 const struct options *o);
void lines_print(FILE *out, const struct view *v, const void *const *row, size_t n,
		 const struct options *o);
void put_size(char *text, size_t room, uint64_t bytes, const struct options *o);
/* Bit 0, 1, ... of TENSOR_RIGHT_*; NULL behind the last that is known. */
extern const char *const right_names[];
/* "read,write"; "-" for none. */
void put_rights(char *text, size_t room, uint32_t rights);
const char *tone_begin(enum tone tone, const struct options *o);
const char *tone_end(enum tone tone, const struct options *o);

void json_open(FILE *out, bool pretty);
void json_close(void);
void json_enter(char bracket);
void json_leave(char bracket);
void json_key(const char *name);
void json_item(void); /* before each member of an array */
void json_string(const char *name, const char *value);
void json_u64(const char *name, uint64_t value);
void json_known(const char *name, int64_t value); /* UNKNOWN is null */
void json_bool(const char *name, bool value);
void json_rights(const char *name, int64_t rights); /* a list of words */
void json_rows(const struct kind *kind, const void *const *row, size_t n, const struct backend *b);
void buffer_json(const void *row, const struct backend *b);
void client_json(const void *row, const struct backend *b);
void export_json(const void *row, const struct backend *b);
void payer_json(const void *row, const struct backend *b);
void group_json(const void *row, const struct backend *b);
void totals_json(const void *row, const struct backend *b);

/* ---- arguments ---- */

/* As iproute2: a word may be cut short. */
bool is(const char *arg, const char *word);
enum status bad(const char *what, const char *text);
bool parse_u64(const char *text, uint64_t *value);
bool parse_pid(const char *text, pid_t *pid);
bool parse_size(const char *text, uint64_t *bytes);
bool parse_seconds(const char *text, double *seconds);

/* ---- what can be asked ---- */

enum status cmd_buffer(char **arg, const struct options *o);
enum status cmd_client(char **arg, const struct options *o);
enum status cmd_export(char **arg, const struct options *o);
enum status cmd_user(char **arg, const struct options *o);
enum status cmd_device(char **arg, const struct options *o);
enum status cmd_stat(char **arg, const struct options *o);
enum status cmd_top(char **arg, const struct options *o);
enum status cmd_monitor(char **arg, const struct options *o);
enum status cmd_metrics(char **arg, const struct options *o);
enum status cmd_doctor(char **arg, const struct options *o);

void group_by_process(const struct list *buffers, struct list *groups);
void group_by_user(const struct list *buffers, struct list *groups);

void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
