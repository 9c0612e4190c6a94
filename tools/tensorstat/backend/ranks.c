// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The ranks of process groups, from the memory that those of one group share. It is not trusted. */
#include "backend/backend.h"
#include "backend/scan.h"

#include "lib/group/local/page.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_TEXT "/memfd:" LOCAL_MEMFD " (deleted)"
#define RANKS_MAX 128

struct found {
	struct list *list;
	struct local_page head;
	struct local_rank ranks[RANKS_MAX];
};

static bool read_page(struct found *f, int dir, const char *name)
{
	int fd = open_memfd(dir, name, LINK_TEXT);
	ssize_t head = -1, all = -1;

	if (fd < 0)
		return false;
	head = pread(fd, &f->head, sizeof(f->head), 0);
	if (head == sizeof(f->head) && f->head.magic == LOCAL_MAGIC && f->head.size &&
	    f->head.size <= RANKS_MAX)
		all = pread(fd, f->ranks, f->head.size * sizeof(f->ranks[0]),
			    offsetof(struct local_page, ranks));
	close(fd);
	return all > 0 && (size_t)all == f->head.size * sizeof(f->ranks[0]);
}

/* A process has the memory; it is the rank that says so in the page. */
static void add_rank(void *ctx, int dir, const char *name, const struct owner *who)
{
	struct found *f = ctx;
	struct stat st;

	if (fstatat(dir, name, &st, 0) < 0 || !S_ISREG(st.st_mode) || !read_page(f, dir, name))
		return;
	for (uint32_t i = 0; i < f->head.size; i++) {
		const struct local_rank *r = &f->ranks[i];
		struct rank *row;

		if (r->pid != who->pid)
			continue;
		row = list_add(f->list);
		row->group = st.st_ino;
		row->rank = i;
		row->size = f->head.size;
		row->owner = *who;
		row->operations = r->operations;
		row->bytes = r->bytes;
		row->state = r->state > LOCAL_GAVE_UP ? UNKNOWN : (int)r->state;
	}
}

static int by_group(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

enum status read_ranks(struct list *list)
{
	struct found f = { .list = list };
	enum status status = scan_memfds(LINK_TEXT, add_rank, &f);

	if (list->n)
		qsort(list->row, list->n, sizeof(struct rank), by_group);
	return status;
}
