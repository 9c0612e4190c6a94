/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The module's benchmark, which runs in the guest: what its files share.
 *
 * One JSON object a line goes to stdout, and the host makes the table of it. In a guest without
 * hardware support a time says nothing by itself: so each row is measured on all sides in turn, in
 * one run, and what can be counted is counted as well: page faults, page table entries, system
 * calls. Under `tests/vm/run --icount` the clock counts instructions, and nothing else on the machine
 * can be seen in it.
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
 * struct options - what the command line asked for
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
 * struct sample - what one side of a row took in one round
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
 * @group: what kind of row
 * @row: its name
 * @side: whose
 * @bytes: size, or 0
 * @count: how many there are of something, or 0
 * @nr: samples
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
 * @fd: of it, or -1: a handle of the device
 * @handle: with the device
 * @cookie: what mmap() is given
 * @bytes: size, rounded up as the kind wants it
 * @at: where it is mapped, or NULL
 */
struct memory {
	int fd;
	uint32_t handle;
	uint64_t cookie;
	uint64_t bytes;
	void *at;
};

/**
 * struct kind - a way to come to shared memory
 * @name: for the table
 * @make: a buffer, zero-filled, no page touched yet
 * @export: an fd of it that can be sent; NULL: its own
 * @drop: give it back; it is not mapped
 * @prepare: settings of the machine that it wants, outside of what is timed
 * @here: whether this machine has it
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
