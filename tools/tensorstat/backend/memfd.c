// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Rows without the module: memfds named "tensor", found through the descriptors of every process
 * that the caller may inspect. A buffer is one row with all processes that hold it. The last page
 * of such a file is written by other processes and is not trusted.
 */
#include "backend/backend.h"
#include "backend/scan.h"
#include "rows/text.h"

#include "lib/storage/descriptor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tensor.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_TEXT "/memfd:tensor (deleted)"

/* ---- one buffer ---- */

static bool take_descriptor(struct buffer *b, const struct descriptor_page *page)
{
	const struct tensor_descriptor *d = &page->d;
	char label[TENSOR_LABEL_MAX + 1] = { 0 };

	if (memcmp(page->magic, DESCRIPTOR_MAGIC, sizeof(page->magic)))
		return false;
	memcpy(label, d->label, TENSOR_LABEL_MAX);
	copy_text(b->label, sizeof(b->label), label);
	if (d->dtype >= TENSOR_DTYPE_COUNT || d->ndim > TENSOR_MAX_DIMS)
		return true;
	b->element = (struct element){ .bits = dtype_bits(d->dtype), .tag = d->dtype };
	b->ndim = d->ndim;
	b->offset = d->offset;
	memcpy(b->sizes, d->sizes, d->ndim * sizeof(b->sizes[0]));
	memcpy(b->strides, d->strides, d->ndim * sizeof(b->strides[0]));
	return true;
}

static bool read_buffer(int dir, const char *name, struct buffer *b, uint64_t file_size)
{
	struct descriptor_page page;
	int fd = open_memfd(dir, name, LINK_TEXT), seals;
	bool ours;

	if (fd < 0)
		return false;
	seals = fcntl(fd, F_GET_SEALS);
	ours = file_size > DESCRIPTOR_PAGE &&
	       pread(fd, &page, sizeof(page), file_size - DESCRIPTOR_PAGE) == sizeof(page) &&
	       take_descriptor(b, &page);
	close(fd);
	if (seals > 0 && seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
		b->seals |= TENSOR_SEAL_WRITE;
	return ours;
}

static struct buffer *find(struct list *list, const struct stat *st)
{
	/* Search from the end: the descriptors of one process are adjacent. */
	for (size_t i = list->n; i-- > 0;) {
		struct buffer *b = list_row(list, i);

		if (b->id == st->st_ino && b->dev == st->st_dev)
			return b;
	}
	return NULL;
}

static void add_owner(struct buffer *b, const struct owner *who)
{
	struct owner *o = b->n_owners ? &b->owners[b->n_owners - 1] : NULL;

	/* Processes are read one after the other, so only the last owner can be the same. */
	if (!o || o->pid != who->pid) {
		o = owners_add(b);
		*o = *who;
	}
	o->refs++;
	b->refs++;
}

static void add_fd(void *to, int dir, const char *name, const struct owner *who)
{
	struct list *list = to;
	struct buffer *b;
	struct stat st;

	if (fstatat(dir, name, &st, 0) < 0 || !S_ISREG(st.st_mode))
		return;
	b = find(list, &st);
	if (!b) {
		b = list_add(list);
		b->id = st.st_ino;
		b->dev = st.st_dev;
		b->bytes = st.st_size - DESCRIPTOR_PAGE;
		b->huge_bytes = b->handles = b->files = b->mappings = UNKNOWN;
		b->age_ns = b->client = b->node = b->dmabufs = b->attachments = UNKNOWN;
		b->kind = "memfd";
		b->foreign = !read_buffer(dir, name, b, st.st_size);
	}
	add_owner(b, who);
}

/* ---- all processes ---- */

static int by_id(const void *a, const void *b)
{
	const struct buffer *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_pid(const void *a, const void *b)
{
	return ((const struct owner *)a)->pid - ((const struct owner *)b)->pid;
}

static bool is_ours(const void *row, const void *arg)
{
	return !((const struct buffer *)row)->foreign;
}

static void finish(struct list *list)
{
	list_filter(list, is_ours, NULL);
	for (size_t i = 0; i < list->n; i++) {
		struct buffer *b = list_row(list, i);

		b->shared = b->n_owners > 1;
		qsort(b->owners, b->n_owners, sizeof(*b->owners), by_pid);
	}
	if (list->n)
		qsort(list->row, list->n, sizeof(struct buffer), by_id);
}

static enum status memfd_open(void)
{
	return STATUS_OK;
}

static enum status memfd_buffers(struct list *list)
{
	enum status status = scan_memfds(LINK_TEXT, add_fd, list);

	if (!status)
		finish(list);
	return status;
}

/* ---- clients: processes that hold buffers ---- */

static struct client *client_of(struct list *list, const struct owner *o)
{
	struct client *c;

	for (size_t i = 0; i < list->n; i++) {
		c = list_row(list, i);
		if (c->owner.pid == o->pid)
			return c;
	}
	c = list_add(list);
	c->id = o->pid;
	c->owner = *o;
	c->age_ns = UNKNOWN;
	return c;
}

static int by_client(const void *a, const void *b)
{
	const struct client *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static void add_clients(struct list *list, const struct buffer *b)
{
	for (size_t k = 0; k < b->n_owners; k++) {
		struct client *c = client_of(list, &b->owners[k]);

		c->handles++;
		c->bytes += b->bytes;
	}
}

static enum status memfd_clients(struct list *list)
{
	struct list buffers = { .type = &buffer_rows };
	enum status status = memfd_buffers(&buffers);

	for (size_t i = 0; i < buffers.n; i++)
		add_clients(list, list_row(&buffers, i));
	if (list->n)
		qsort(list->row, list->n, sizeof(struct client), by_client);
	list_clear(&buffers);
	return status;
}

/* Sums of the visible buffers. Numbers that only the module counts stay UNKNOWN. */
static enum status memfd_totals(struct totals *t)
{
	struct list buffers = { .type = &buffer_rows }, clients = { .type = &client_rows };
	enum status status = memfd_buffers(&buffers);

	memset(t, 0xff, sizeof(*t)); /* every member is UNKNOWN */
	t->time_ms = now_ms();
	t->bytes = 0;
	for (size_t i = 0; i < buffers.n; i++) {
		const struct buffer *b = list_row(&buffers, i);

		t->bytes += (int64_t)b->bytes;
		add_clients(&clients, b);
	}
	t->buffers = (int64_t)buffers.n;
	t->clients = (int64_t)clients.n;
	list_clear(&clients);
	list_clear(&buffers);
	return status;
}

const struct backend memfd_backend = {
	.name = "memfd",
	.open = memfd_open,
	.buffers = memfd_buffers,
	.clients = memfd_clients,
	.totals = memfd_totals,
};
