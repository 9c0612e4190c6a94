/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A model of the references: two processes, two buffers; each process has at most one open device,
 * and of each buffer two references of a handle, one buffer fd, one dma-buf fd, one mapping and one
 * attachment of a device.
 */
#ifndef TENSOR_LIFETIMES_MODEL_H
#define TENSOR_LIFETIMES_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCS	  2
#define BUFS	  2
#define MAX_STEPS 96

/* The kinds of references that a process can hold to a buffer. */
enum slot { HANDLE, FD, MAP, DMABUF_FD, DEVICE, SLOTS };

enum op {
	OPEN,
	SHUT,
	ALLOC,
	CLOSE,
	EXPORT,
	CLOSE_FD,
	IMPORT,
	IMPORT_DMABUF,
	MAP_HANDLE,
	MAP_FD,
	MAP_DMABUF,
	UNMAP,
	EXPORT_DMABUF,
	CLOSE_DMABUF,
	ATTACH,
	DETACH,
	SEND_FD,
	SEND_DMABUF,
	KILL,
	OPS
};

/**
 * struct step - an action
 * @op: enum op
 * @proc: the process that acts
 * @buf: the buffer; 0 for an action without one
 */
struct step {
	uint8_t op, proc, buf;
};

/**
 * struct model - the references that exist
 * @dev: whether the process has the device open
 * @slot: 0 or, with HANDLE, references of the handle, and otherwise the number of the object. A
 *	buffer fd and its mappings share a number, and a dma-buf fd and its attachments
 * @next: number of the next object
 */
struct model {
	bool dev[PROCS];
	uint8_t slot[PROCS][BUFS][SLOTS];
	uint8_t next;
};

/* Numbers of mappings that do not hold a file of EXPORT: those by mmap offset, and of a dma-buf. */
#define NO_FILE 0x80

/**
 * struct scope - the range of a search
 * @procs: number of processes
 * @bufs: number of buffers
 * @device: whether there is a device that can attach to a dma-buf
 */
struct scope {
	uint8_t procs, bufs;
	bool device;
};

/* The counts that INFO must return, except for handles, which the kernel may merge. */
struct counts {
	unsigned int files, mappings, dmabufs, attachments;
};

bool model_blank(const struct model *m, unsigned int proc);
bool model_alive(const struct model *m, unsigned int buf);
bool model_empty(const struct model *m);
bool model_enabled(const struct model *m, const struct scope *scope, struct step s);
void model_apply(struct model *m, struct step s);
bool model_commute(const struct model *m, const struct scope *scope, struct step x, struct step y);
struct counts model_counts(const struct model *m, unsigned int buf);
bool op_has_buf(unsigned int op);
unsigned int step_rank(struct step s);
int model_teardown(const struct model *m, const struct scope *scope, unsigned int way,
		   struct step *steps, int room);

char *steps_text(const struct step *steps, int n, char *text, size_t room);
int steps_parse(const char *text, struct step *steps, int room);

#endif
