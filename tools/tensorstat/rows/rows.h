/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The rows that backends report: buffers, clients, exports, users, ranks and totals. */
#ifndef TENSORSTAT_ROWS_H
#define TENSORSTAT_ROWS_H

#include "rows/list.h"

#include <tensor/types.h>

#define LABEL_MAX 32
#define COMM_MAX  16

/* In a signed member: the backend cannot report this number. */
#define UNKNOWN (-1)

struct owner {
	pid_t pid;
	uint32_t uid;
	int64_t refs; /* handles or descriptors; UNKNOWN where they are not counted by process */
	bool maker;
	char comm[COMM_MAX];
};

/* The element type: its size, and a tag that the kernel stores without interpreting it. */
struct element {
	uint32_t bits; /* 0: no descriptor was set */
	uint32_t tag;  /* enum tensor_dtype if the library set it */
};

struct buffer {
	uint64_t id, dev, bytes, pinned_bytes;
	struct element element;
	uint32_t ndim;
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], offset;
	char label[LABEL_MAX]; /* printable UTF-8 */
	uint64_t refs;
	bool shared, orphan;
	const char *kind;      /* source of the memory: "alloc", "pin", "dmabuf", "memfd" */
	unsigned seals, state; /* TENSOR_SEAL_*, TENSOR_STATE_* */
	int64_t huge_bytes, handles, files, mappings, dmabufs, attachments, age_ns, client;
	int64_t node;	      /* NUMA node; UNKNOWN also if pages are on several nodes */
	struct owner *owners; /* the maker first, where it is known */
	size_t n_owners, cap_owners;
	bool foreign; /* memfd backend: a file of the same name that holds no tensor */
};

struct client {
	uint64_t id, handles, bytes;
	struct owner owner;
	int64_t age_ns;
};

/* Sums over the buffers of one process or of one user. */
struct holder {
	struct owner owner;
	uint64_t buffers, bytes, pinned_bytes, shared, orphans;
};

/* A file descriptor or dma-buf made by EXPORT. */
struct export
{
	uint64_t id, buffer, offset, bytes;
	bool dmabuf, part;
	uint32_t rights; /* TENSOR_RIGHT_* */
	int64_t age_ns;
	struct owner owner; /* the process that made it, not the one that has it now */
};

/* UNKNOWN in each member that the backend cannot report. */
struct totals {
	int64_t time_ms; /* since 1970 */
	int64_t clients, buffers, bytes, huge_bytes;
	int64_t limit_bytes, refused, used_bytes, purgeable_bytes, linger_bytes, files, dmabufs;
	int64_t user_limit_bytes, user_refused;
	int64_t pool_bytes, pool_limit_bytes, pool_hits, pool_misses;
	int64_t pool_zeroed_bytes, pool_fetched_bytes, pool_reclaimed_bytes;
};

/* The memory charged to one user by the module. */
struct payer {
	uint32_t uid;
	uint64_t bytes, limit_bytes, refused, objects;
};

/* A rank of a process group of this machine. */
struct rank {
	uint64_t group, rank, size, operations, bytes;
	int state; /* enum local_state of the library, or UNKNOWN */
	struct owner owner;
};

extern const struct row_type rank_rows;
extern const struct row_type buffer_rows, client_rows, export_rows, payer_rows, holder_rows;

/* Appends an owner to a buffer. */
struct owner *owners_add(struct buffer *b);
/* Whether the process holds the buffer, by pid, or by a part of its name if pid is 0. */
bool owned_by(const struct buffer *b, pid_t pid, const char *comm);

/* Sums of buffers by their first owner: the maker, where it is known. */
void group_by_process(const struct list *buffers, struct list *groups);
void group_by_user(const struct list *buffers, struct list *groups);

/* Bits of an element of that dtype of the library; 0 for another number. */
uint32_t dtype_bits(uint32_t dtype);
/* Names of the library's dtypes, in no particular order; ends with NULL. */
const char *const *dtype_names(void);
/* Whether tag and bits are those of one of the library's dtypes. */
bool element_is_dtype(const struct element *e);
/* Writes the name into @text, for instance "f32" or "tag7/12b". NULL if e has no bits. */
const char *element_name(char *text, size_t room, const struct element *e);
/* Parses what element_name() writes. */
bool element_parse(const char *text, struct element *e);

/* Names of bit 0, 1, ... of TENSOR_RIGHT_*; ends with NULL. */
extern const char *const right_names[];

/* Wall clock in milliseconds since 1970. */
int64_t now_ms(void);
/* Monotonic clock in seconds. */
double seconds_now(void);
void sleep_seconds(double seconds);

#endif
