/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Declarations of the module's benchmark, which runs in the guest.
 *
 * It writes one JSON object a line to stdout, from which the host makes the table. In a guest without
 * hardware virtualisation an absolute time is meaningless: so each row is measured on all sides in
 * turn, in one run, and page faults, page table entries and system calls are counted as well. Under
 * `tests/vm/run --icount` the clock counts instructions, independently of the load of the host.
 */
#ifndef BENCH_MODULE_H
#define BENCH_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIB  1024ULL
#define MIB  (1024 * KIB)
#define GIB  (1024 * MIB)
#define PAGE 4096ULL
#define HUGE (2 * MIB)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))

#define MAX_ROUNDS 64

/**
 * struct options - options of the command line
 * @rounds: samples of each side of a row
 * @most: bytes of the largest buffer
 * @live: buffers in the row with most of them
 */
struct options {
	unsigned int rounds;
	uint64_t most;
	unsigned long live;
};

extern struct options options;

/* harness.c */
uint64_t now_ns(void);
uint64_t page_faults(void);
void rest_ms(unsigned int ms);
void must(bool good, const char *what);
bool setting(const char *path, const char *value);
bool setting_read(const char *path, char *value, size_t room);

/**
 * struct sample - the cost of one side of a row in one round
 * @ns: of one run
 * @faults: page faults of one run
 * @calls: system calls of one run
 */
struct sample {
	double ns;
	double faults;
	double calls;
};

/**
 * struct result - one side of a row
 * @group: the group of the row
 * @row: its name
 * @side: the kind of memory
 * @bytes: size, or 0
 * @count: number of objects, or 0
 * @nr: number of samples
 * @samples: the samples
 */
struct result {
	const char *group;
	const char *row;
	const char *side;
	uint64_t bytes;
	uint64_t count;
	unsigned int nr;
	struct sample samples[MAX_ROUNDS];
};

void result_add(struct result *r, struct sample s);
void result_print(const struct result *r);
void fact_print(const char *group, const char *row, const char *side, uint64_t bytes,
		const char *unit, double value);

/* memory.c */

/**
 * struct memory - a buffer of some kind
 * @fd: its fd, or -1 for a handle of the device
 * @handle: with the device
 * @mmap_offset: offset for mmap()
 * @bytes: size, rounded up as the kind requires
 * @at: where it is mapped, or NULL
 */
struct memory {
	int fd;
	uint32_t handle;
	uint64_t mmap_offset;
	uint64_t bytes;
	void *at;
};

/**
 * struct kind - a kind of shared memory
 * @name: for the table
 * @make: allocate a zeroed buffer without touching its pages
 * @export: create an fd of it that can be sent; NULL: use its own fd
 * @drop: free it; it is not mapped
 * @prepare: change settings of the machine for it; not measured
 * @here: whether this machine supports it
 */
struct kind {
	const char *name;
	void (*make)(struct memory *m, uint64_t bytes);
	int (*export)(struct memory *m);
	void (*drop)(struct memory *m);
	void (*prepare)(void);
	bool (*here)(void);
};

extern const struct kind kinds[];
extern const size_t kinds_nr;
extern unsigned long calls;

void memory_init(void);
int memory_device(void);
void memory_map(struct memory *m, int flags);
void memory_unmap(struct memory *m);
void memory_touch(const struct memory *m);
uint64_t memory_pool(bool on);

/* touch.c, calls.c, share.c, scale.c */
void bench_touch(void);
void bench_calls(void);
void bench_share(void);
void bench_scale(void);

/* netlink.c */
unsigned long netlink_dump(int command);
int netlink_open(void);

#endif /* BENCH_MODULE_H */
