/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Interface between the parts of the kernel fuzzer.
 *
 * A *program* is a short list of calls; a call is a row of the table and a number for each of its
 * arguments. Calls pass fds, handles and mappings to each other through numbered slots of a
 * *machine*, so that any list of numbers is a valid program: removing, splicing and changing
 * numbers always gives another program.
 */
#ifndef TENSOR_FUZZ_H
#define TENSOR_FUZZ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define ARGS_MAX      24 /* arguments of a call */
#define CALLS_MAX     40 /* calls of a program */
#define FDS	      16 /* slots of fds; table.c describes which kind each slot holds */
#define HANDLES	      8	 /* slots of handles and their mmap offsets */
#define MAPS	      8	 /* slots of mappings */
#define PAGE	      4096UL
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/**
 * enum kind - how numbers for an argument are made up
 * @KIND_ONE: one of the set, seldom anything
 * @KIND_BITS: some of the set together, seldom a bit that is not in it
 * @KIND_BYTES: a size in bytes: whole pages, or one byte beside
 * @KIND_ANY: powers of two and their neighbours, small numbers, what the kernel compared with
 */
enum kind { KIND_ONE, KIND_BITS, KIND_BYTES, KIND_ANY };

/**
 * enum role - what becomes of the number in an ioctl's struct
 * @ROLE_VALUE: it is stored
 * @ROLE_FD: it is a slot of fds
 * @ROLE_HANDLE: it is a slot of handles
 * @ROLE_MAP: it is a slot of mappings; stored is the address
 * @ROLE_NONE: it is not stored, but for whoever runs the call
 */
enum role { ROLE_VALUE, ROLE_FD, ROLE_HANDLE, ROLE_MAP, ROLE_NONE };

struct arg_type {
	const char *name;
	enum kind kind;
	enum role role;
	uint16_t off;
	uint16_t bytes;
	const uint64_t *set;
	unsigned int nr;
};

struct machine;

/**
 * struct call_type - a row of the table
 * @name: as in a program's text
 * @weight: how often it is chosen
 * @run: does it; 0 or more, or -errno
 * @cmd: of an ioctl
 * @bytes: of an ioctl's struct
 * @handle_at: where the struct returns a handle, 0: it does not
 * @mmap_offset_at: where it returns an mmap offset
 * @fd_at: where it returns a fd
 * @args: up to the first without a name
 */
struct call_type {
	const char *name;
	unsigned int weight;
	long (*run)(struct machine *m, const struct call_type *type, const uint64_t *arg);
	unsigned long cmd;
	uint16_t bytes;
	uint16_t handle_at, mmap_offset_at, fd_at;
	struct arg_type args[ARGS_MAX];
};

extern const struct call_type call_types[];
extern const unsigned int call_types_nr;

struct call {
	uint64_t arg[ARGS_MAX];
	uint16_t type;
};

struct prog {
	uint32_t nr;
	struct call call[CALLS_MAX];
};

/**
 * struct machine - what the calls of a program work on
 * @fd: open fds, -1 where there is none
 * @handle: handles, 0 where there is none
 * @mmap_offset: theirs
 * @map: mappings
 * @family: of generic netlink
 */
struct machine {
	int fd[FDS];
	uint32_t handle[HANDLES];
	uint64_t mmap_offset[HANDLES];
	struct {
		char *at;
		size_t len;
	} map[MAPS];
	uint16_t family;
};

/* program.c */
struct rng {
	uint64_t state;
};
uint64_t rng_next(struct rng *rng);
unsigned int rng_below(struct rng *rng, unsigned int n);
int call_named(const char *name);
unsigned int call_args(const struct call_type *type);
uint64_t arg_invent(struct rng *rng, const struct arg_type *type);
void prog_invent(struct rng *rng, struct prog *prog);
void prog_change(struct rng *rng, struct prog *prog, const struct prog *other);
void dictionary_add(uint64_t value);

/* text.c */
void prog_print(FILE *f, const struct prog *prog);
int prog_read(FILE *f, struct prog *prog, const char **why);

/* exec.c */
void machine_init(struct machine *m);
long machine_call(struct machine *m, const struct call *call);
void machine_clean(struct machine *m);
int machine_fd(const struct machine *m, uint64_t slot);
void machine_set_fd(struct machine *m, uint64_t slot, int fd);
char *user_place(unsigned int where, const void *from, size_t bytes, size_t *room);
bool touch(char *at, bool write);

long run_ioctl(struct machine *m, const struct call_type *type, const uint64_t *arg);

/* files.c */
long run_open(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_close(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_dup(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_pair(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_send(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_recv(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_memfd(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_file(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_poll(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_user(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_shrink(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_limit(struct machine *m, const struct call_type *type, const uint64_t *arg);
void files_clean(void);

/* dmabuf.c */
long run_foreign(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_dma(struct machine *m, const struct call_type *type, const uint64_t *arg);

/* maps.c */
long run_mmap(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_munmap(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_mprotect(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_mremap(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_madvise(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_touch(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_fork(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_pages(struct machine *m, const struct call_type *type, const uint64_t *arg);

/* netlink.c */
uint16_t netlink_family(void);
long run_nl_open(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_nl_send(struct machine *m, const struct call_type *type, const uint64_t *arg);
long run_nl_recv(struct machine *m, const struct call_type *type, const uint64_t *arg);

/* kcov.c */
#define SIGNAL_BITS (1U << 18)

/**
 * struct signal - what of the module has been seen to run
 * @edges: a bit for each hashed pair of places that ran one after the other
 * @places: the same for single places
 * @edges_nr: bits set in @edges
 * @places_nr: bits set in @places
 */
struct signal {
	uint8_t edges[SIGNAL_BITS / 8];
	uint8_t places[SIGNAL_BITS / 8];
	uint32_t edges_nr, places_nr;
};

bool kcov_open(void);
void kcov_start(bool compare);
void kcov_stop(void);
void kcov_reset(void);
bool kcov_merge(struct signal *signal);
unsigned int kcov_compared(uint64_t (*pairs)[2], unsigned int room);

/* worker.c */
#define CORPUS_MAX     4096
#define CALL_TYPES_MAX 64

/**
 * struct shared - what parent and workers see together, and what outlives a worker
 * @calls: calls made
 * @progs: programs run
 * @made: calls made of each type
 * @worked: of these, without an error
 * @ns: time spent in calls of each type, and last in cleaning up
 * @deadline_ns: when workers stop, CLOCK_MONOTONIC
 * @now: the program under way
 * @beat: changes whenever a program begins
 * @reported: the program under way had a line in the kernel log that must not be there
 * @corpus_nr: programs kept
 * @corpus: each of which reached something new
 * @signal: what all of them reached
 */
struct shared {
	atomic_ulong calls, progs, beat;
	atomic_ulong made[CALL_TYPES_MAX], worked[CALL_TYPES_MAX];
	atomic_ulong ns[CALL_TYPES_MAX + 1];
	uint64_t deadline_ns;
	atomic_bool reported;
	struct prog now;
	uint32_t corpus_nr;
	struct prog corpus[CORPUS_MAX];
	struct signal signal;
};

void worker(struct shared *shared, uint64_t seed, unsigned long until);
void worker_admit(struct shared *shared);
void worker_tell(struct shared *shared);

/* log.c */
bool kernel_log_bad(FILE *out);

#endif
