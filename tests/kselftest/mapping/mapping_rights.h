/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Every kind of mapping of the ABI, each with its rights, and a child process that tries to exceed
 * these rights.
 *
 * Page n of the memory begins with PAGE_STAMP + n, so that the content of a page shows where it is
 * from. Writers change another byte of the page, which is 0 at first.
 */
#ifndef TENSOR_KSELFTEST_MAPPING_RIGHTS_H
#define TENSOR_KSELFTEST_MAPPING_RIGHTS_H

#include "../include/dmabuf.h"
#include "../include/touch.h"

#define PAGE_STAMP 0x7e500000U
#define WRITTEN_AT 64
#define WRITTEN	   0x77

enum source { SMALL, LARGE, MEMFD, UDMABUF, HEAP, VGEM };

/* How the source is made read-only: opened for reading, or sealed. */
enum narrow { FREE, READ_ONLY, SEALED, FUTURE_SEALED };

struct kind {
	const char *name;
	enum source source;
	enum narrow narrow;
	unsigned int share;
	bool part;
};

static const struct kind kinds[] = {
	{ "small", SMALL, FREE, 0, false },
	{ "small, read-only fd", SMALL, FREE, SHARE_RO, false },
	{ "small, part", SMALL, FREE, 0, true },
	{ "small, read-only part", SMALL, FREE, SHARE_RO, true },
	{ "small, sealed", SMALL, SEALED, SHARE_RO, false },
	{ "small, dma-buf", SMALL, FREE, SHARE_DMABUF, false },
	{ "small, read-only dma-buf", SMALL, FREE, SHARE_DMABUF | SHARE_RO, false },
	{ "small, dma-buf of a part", SMALL, FREE, SHARE_DMABUF, true },
	{ "huge", LARGE, FREE, 0, false },
	{ "huge, read-only fd", LARGE, FREE, SHARE_RO, false },
	{ "huge, part", LARGE, FREE, 0, true },
	{ "huge, read-only part", LARGE, FREE, SHARE_RO, true },
	{ "huge, sealed", LARGE, SEALED, SHARE_RO, false },
	{ "huge, dma-buf", LARGE, FREE, SHARE_DMABUF, false },
	{ "huge, read-only dma-buf", LARGE, FREE, SHARE_DMABUF | SHARE_RO, false },
	{ "huge, dma-buf of a part", LARGE, FREE, SHARE_DMABUF, true },
	{ "memfd", MEMFD, FREE, 0, false },
	{ "memfd opened for reading", MEMFD, READ_ONLY, SHARE_RO, false },
	{ "memfd sealed", MEMFD, SEALED, SHARE_RO, false },
	{ "memfd sealed for the future", MEMFD, FUTURE_SEALED, SHARE_RO, false },
	{ "memfd, read-only fd", MEMFD, FREE, SHARE_RO, false },
	{ "memfd, part", MEMFD, FREE, 0, true },
	{ "memfd, read-only part", MEMFD, FREE, SHARE_RO, true },
	{ "memfd, dma-buf", MEMFD, FREE, SHARE_DMABUF, false },
	{ "memfd, dma-buf of a part", MEMFD, FREE, SHARE_DMABUF, true },
	{ "udmabuf", UDMABUF, FREE, 0, false },
	{ "udmabuf, read-only fd", UDMABUF, FREE, SHARE_RO, false },
	{ "system heap", HEAP, FREE, 0, false },
	{ "system heap, read-only fd", HEAP, FREE, SHARE_RO, false },
	{ "vgem", VGEM, FREE, 0, false },
	{ "vgem, read-only fd", VGEM, FREE, SHARE_RO, false },
	{ "vgem exported for reading", VGEM, READ_ONLY, SHARE_RO, false },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/*
 * How a mapping is made: of the fd, through a handle imported from it, through the handle of the
 * maker.
 */
enum way { BY_FD, BY_IMPORT, BY_OWNER, WAYS };

static const char *const way_names[] = { "fd", "mmap offset of an import",
					 "mmap offset of the owner" };

struct object {
	const struct kind *kind;
	int owner, user, fd;
	uint64_t owner_mmap_offset, user_mmap_offset;
	unsigned char *all;	      /* mapping of all memory by its owner, for reading */
	uint64_t pages, first, count; /* size of the memory, and the permitted range */
	bool write;
};

HELPER void stamp(unsigned char *at, uint64_t pages)
{
	uint64_t n;

	for (n = 0; n < pages; n++)
		*(uint32_t *)(at + n * PAGE) = PAGE_STAMP + n;
}

/* Writes the stamps through a mapping that is unmapped afterwards, since a seal refuses writers. */
HELPER int stamp_file(int fd, uint64_t offset, uint64_t pages)
{
	unsigned char *at = map_shared(fd, pages * PAGE, RW, offset);

	if (at == MAP_FAILED)
		return -errno;
	stamp(at, pages);
	munmap(at, pages * PAGE);
	return 0;
}

HELPER int memfd_stamped(uint64_t pages, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, pages * PAGE) || stamp_file(fd, 0, pages) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | seals))
		return -EIO;
	return fd;
}

HELPER int reopened_for_reading(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Memory of vgem is stamped through the card, because its dma-buf may be read-only. */
HELPER int vgem_of(struct object *o, bool rdonly)
{
	struct drm_mode_map_dumb map = { 0 };
	int card = vgem_open(), fd;

	if (card < 0)
		return -ENODEV;
	if (vgem_create(card, o->pages * PAGE, &map.handle) ||
	    dev_call(card, DRM_IOCTL_MODE_MAP_DUMB, &map) || stamp_file(card, map.offset, o->pages))
		return -EIO;
	o->all = map_shared(card, o->pages * PAGE, PROT_READ, map.offset);
	fd = vgem_export(card, map.handle, O_CLOEXEC | (rdonly ? 0 : O_RDWR));
	close(card);
	return fd;
}

/* Imports memory that the module did not allocate: a handle. */
HELPER int64_t object_adopt(struct object *o)
{
	static const unsigned int seals[] = {
		[SEALED] = F_SEAL_WRITE, [FUTURE_SEALED] = F_SEAL_FUTURE_WRITE
	};
	const struct kind *kind = o->kind;
	bool rdonly = kind->narrow == READ_ONLY;
	struct tensor_import import;
	int memfd = -1, fd, err;

	if (kind->source == MEMFD || kind->source == UDMABUF) {
		memfd = memfd_stamped(o->pages, kind->narrow >= SEALED ? seals[kind->narrow] : 0);
		o->all = map_shared(memfd, o->pages * PAGE, PROT_READ, 0);
	}
	if (kind->source == MEMFD)
		fd = rdonly ? reopened_for_reading(memfd) : dup(memfd);
	else if (kind->source == UDMABUF)
		fd = udmabuf_of(memfd, o->pages * PAGE);
	else if (kind->source == HEAP)
		fd = heap_of(o->pages * PAGE);
	else
		fd = vgem_of(o, rdonly);
	close(memfd);
	if (fd < 0)
		return fd;
	if (kind->source == HEAP) {
		stamp_file(fd, 0, o->pages);
		o->all = map_shared(fd, o->pages * PAGE, PROT_READ, 0);
	}
	err = buf_import(o->owner, fd, &import);
	close(fd);
	o->owner_mmap_offset = import.mmap_offset;
	return err ? err : (int64_t)import.handle;
}

HELPER int64_t object_alloc(struct object *o)
{
	struct tensor_alloc alloc;
	int err = dev_alloc(o->owner, o->pages * PAGE, &alloc);

	if (!err)
		err = stamp_file(o->owner, alloc.mmap_offset, o->pages);
	if (!err && o->kind->narrow == SEALED &&
	    buf_seal(o->owner, alloc.handle, TENSOR_SEAL_WRITE) != TENSOR_SEAL_WRITE)
		err = -EBUSY;
	if (err)
		return err;
	o->owner_mmap_offset = alloc.mmap_offset;
	o->all = map_shared(o->owner, o->pages * PAGE, PROT_READ, alloc.mmap_offset);
	return alloc.handle;
}

HELPER void object_free(struct object *o)
{
	if (o->all && o->all != MAP_FAILED)
		munmap(o->all, o->pages * PAGE);
	if (o->fd >= 0)
		close(o->fd);
	close(o->owner);
	close(o->user);
}

/* 0; -ENODEV: this kernel has no such memory; -EOPNOTSUPP: no part of it can be exported. */
HELPER int object_make(struct object *o, const struct kind *kind)
{
	struct tensor_import import;
	int64_t handle;
	int err;

	*o = (struct object){ .kind = kind, .owner = dev_open(), .user = dev_open(), .fd = -1 };
	o->pages = kind->source == LARGE ? 2 * HUGE / PAGE : 32;
	o->first = kind->part ? o->pages / 4 : 0;
	o->count = kind->part ? o->pages / 2 : o->pages;
	o->write = kind->narrow == FREE && !(kind->share & SHARE_RO);
	handle = kind->source <= LARGE ? object_alloc(o) : object_adopt(o);
	if (handle < 0)
		goto fail;
	if (kind->part)
		handle = o->fd = buf_share_range(o->owner, handle, kind->share, o->first * PAGE,
						 o->count * PAGE);
	else
		handle = o->fd = buf_share(o->owner, handle, kind->share);
	if (handle < 0)
		goto fail;
	err = buf_import(o->user, o->fd, &import);
	o->user_mmap_offset = import.mmap_offset;
	if (!err && (!o->all || o->all == MAP_FAILED))
		err = -EIO;
	if (!err)
		return 0;
	handle = err;
fail:
	object_free(o);
	return handle;
}

/*
 * Whether the mapping can be made in this way: the owner's handle may have more rights than the fd.
 */
HELPER bool object_has_way(const struct object *o, enum way way)
{
	return way != BY_OWNER || (!o->kind->part && (o->kind->narrow != FREE || o->write));
}

#define AREAS	     8
#define HANG_SECONDS 20

/* State of a child: the mapping, and where else the attack may have put memory. */
struct attempt {
	const struct object *o;
	int fd;
	uint64_t offset, bytes;
	unsigned char *at;
	struct {
		unsigned char *at;
		uint64_t bytes;
	} area[AREAS];
	int areas;
};

struct attack {
	const char *name;
	void (*act)(struct attempt *a);
	bool keeps;  /* the mapping is unchanged and usable afterwards */
	bool clears; /* a writer may clear pages with it */
};

/* Exit status of a child. */
#define SAW_OUTSIDE 1
#define LOST_OWN    2
#define WROTE	    4
#define NOT_MAPPED  8

HELPER void attempt_area(struct attempt *a, void *at, uint64_t bytes)
{
	if (at == MAP_FAILED || a->areas == AREAS)
		return;
	a->area[a->areas].at = at;
	a->area[a->areas++].bytes = bytes;
}

/*
 * A sample of the pages of a large mapping: each page costs faults, which are slow when emulated.
 */
HELPER bool page_sampled(uint64_t n, uint64_t pages)
{
	return pages <= 64 || n < 8 || n + 8 >= pages || n % 37 == 0;
}

/* Checks a page, and tries to write to it in every way. */
HELPER int attempt_page(const struct attempt *a, unsigned char *page, uint32_t want, bool clears)
{
	const struct object *o = a->o;
	uint32_t seen = 0;
	int bad = 0;

	if (!touch_read(page)) {
		seen = *(volatile uint32_t *)page;
		if (!(seen - PAGE_STAMP >= o->first && seen - PAGE_STAMP < o->first + o->count) &&
		    (seen || !clears))
			bad |= SAW_OUTSIDE;
	}
	if (want && seen != want && (seen || !clears))
		bad |= LOST_OWN;
	mprotect(page, PAGE, RW);
	if (!touch_write(page + WRITTEN_AT, WRITTEN) && !o->write)
		bad |= WROTE;
	return bad;
}

/* Runs in the child. */
HELPER int attempt_run(struct attempt *a, const struct attack *attack)
{
	int bad = 0, i;
	uint64_t n;

	touch_begin();
	a->at = map_shared(a->fd, a->bytes, a->o->write ? RW : PROT_READ, a->offset);
	if (a->at == MAP_FAILED)
		return NOT_MAPPED;
	attempt_area(a, a->at, a->bytes);
	attack->act(a);
	for (i = 0; i < a->areas; i++) {
		mprotect(a->area[i].at, a->area[i].bytes, RW);
		for (n = 0; n < a->area[i].bytes / PAGE; n++) {
			if (!page_sampled(n, a->area[i].bytes / PAGE))
				continue;
			bad |= attempt_page(a, a->area[i].at + n * PAGE,
					    !i && attack->keeps ? PAGE_STAMP + a->o->first + n : 0,
					    attack->clears);
		}
	}
	return bad;
}

/* Checks the memory through the owner's mapping: NULL, or a description of the fault. */
HELPER const char *object_check(const struct object *o, const struct attack *attack)
{
	const unsigned char *page = o->all;
	bool inside;
	uint32_t seen;
	uint64_t n;

	for (n = 0; n < o->pages; n++, page += PAGE) {
		inside = o->write && n >= o->first && n < o->first + o->count;
		seen = *(const volatile uint32_t *)page;
		if (seen != PAGE_STAMP + n && !(inside && attack->clears && !seen))
			return "memory has changed";
		if (page[WRITTEN_AT] && !inside)
			return o->write ? "memory outside of the part was written to" :
					  "memory that is read-only was written to";
		if (inside && attack->keeps && page[WRITTEN_AT] != WRITTEN &&
		    page_sampled(n - o->first, o->count))
			return "a write was lost";
	}
	return NULL;
}

/*
 * NULL, or a description of the fault. A child that does not exit in time is reported as hanging.
 */
HELPER const char *attempt_make(const struct object *o, enum way way, const struct attack *attack)
{
	const int fds[] = { [BY_FD] = o->fd, [BY_IMPORT] = o->user, [BY_OWNER] = o->owner };
	const uint64_t offsets[] = {
		[BY_IMPORT] = o->user_mmap_offset, [BY_OWNER] = o->owner_mmap_offset
	};
	struct attempt a = {
		.o = o, .fd = fds[way], .offset = offsets[way], .bytes = o->count * PAGE
	};
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		alarm(HANG_SECONDS);
		_exit(attempt_run(&a, attack));
	}
	status = reap(pid);
	if (status == -SIGALRM)
		return "hangs";
	if (status < 0)
		return "the child was killed";
	if (status & NOT_MAPPED)
		return "cannot be mapped at all";
	if (status & SAW_OUTSIDE)
		return "what lies outside was read";
	if (status & WROTE)
		return "what is read-only became writable";
	if (status & LOST_OWN)
		return "its own memory was lost";
	return object_check(o, attack);
}

/*
 * Tries an attack on every kind in every way: the number of mappings that had more or fewer rights
 * than permitted.
 */
HELPER int attack_all(const struct attack *attack)
{
	struct object o;
	const char *wrong;
	unsigned int i;
	int way, bad = 0, err;

	for (i = 0; i < KINDS; i++) {
		for (way = 0; way < WAYS; way++) {
			err = object_make(&o, &kinds[i]);
			if (err == -ENODEV || err == -EOPNOTSUPP)
				break;
			if (err) {
				printf("# %s: %s: error %d\n", attack->name, kinds[i].name, err);
				bad++;
				break;
			}
			wrong = object_has_way(&o, way) ? attempt_make(&o, way, attack) : NULL;
			if (wrong)
				printf("# %s: %s by %s: %s\n", attack->name, kinds[i].name,
				       way_names[way], wrong);
			bad += wrong != NULL;
			object_free(&o);
		}
	}
	return bad;
}

#endif /* TENSOR_KSELFTEST_MAPPING_RIGHTS_H */
