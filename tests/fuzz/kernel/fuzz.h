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
 * enum kind - how the value of an argument is generated
 * @KIND_ONE: one of the set, rarely another number
 * @KIND_BITS: a combination of bits of the set, rarely with another bit
 * @KIND_BYTES: a size in bytes: whole pages, or one byte more or less
 * @KIND_ANY: powers of two and their neighbours, small numbers, operands that the kernel compared
 */
enum kind { KIND_ONE, KIND_BITS, KIND_BYTES, KIND_ANY };

/**
 * enum role - how the value is stored in an ioctl's struct
 * @ROLE_VALUE: unchanged
 * @ROLE_FD: a slot of fds; the fd is stored
 * @ROLE_HANDLE: a slot of handles; the handle is stored
 * @ROLE_MAP: a slot of mappings; the address is stored
 * @ROLE_NONE: not stored; a parameter of the function that makes the call
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
 * @name: in the text form of programs
 * @weight: relative frequency
 * @run: makes the call; returns 0 or more, or -errno
 * @cmd: number of the ioctl
 * @bytes: size of the ioctl's struct
 * @handle_at: offset of the returned handle in the struct, 0: none
 * @mmap_offset_at: offset of the returned mmap offset
 * @fd_at: offset of the returned fd
 * @args: arguments; one without a name ends the list
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
 * struct machine - the state that calls of a program share
 * @fd: open fds; -1: empty slot
 * @handle: handles; 0: empty slot
 * @mmap_offset: offsets of the handles
 * @map: mappings
 * @family: number of the generic netlink family
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
 * struct signal - coverage of the module
 * @edges: a bit for each hashed pair of consecutive basic blocks
 * @places: a bit for each basic block
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
 * struct shared - memory that parent and workers share; it outlives a worker
 * @calls: number of calls
 * @progs: number of programs
 * @made: number of calls of each type
 * @worked: number of successful calls of each type
 * @ns: time spent in calls of each type; the last entry is that of clean-up
 * @deadline_ns: time at which workers stop, CLOCK_MONOTONIC
 * @now: the program that runs
 * @beat: number of programs started; shows progress
 * @reported: the kernel printed a report during the program that runs
 * @corpus_nr: number of programs in the corpus
 * @corpus: programs that covered something new
 * @signal: coverage of all programs
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
