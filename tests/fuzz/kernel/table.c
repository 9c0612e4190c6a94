// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The calls: a row each, with the values to try for every argument. A new ioctl, or a new field of
 * one, is a row here.
 *
 * Kinds of fd slots: 0, 1 devices; 2 to 6 buffer fds; 7 to 9 dma-bufs and other importable
 * descriptors; 10, 11 netlink; 12 to 15 sockets and pipes. KIND_ONE occasionally chooses another
 * slot.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include <linux/netlink.h>
#include <linux/tensor.h>

#include "fuzz.h"

#define SET(name, ...) static const uint64_t name[] = { __VA_ARGS__ }

/*
 * Valid values are chosen most of the time, so that calls succeed; each invalid one is still tried
 * often.
 */
#define TEN(n) n, n, n, n, n, n, n, n, n, n

SET(zero, TEN(0), TEN(0), TEN(0), 1);
SET(yes, 0, 1);
SET(devs, 0, 0, 0, 0, 0, 0, 1);
SET(bufs, 2, 2, 2, 3, 3, 4, 5, 6);
SET(imports, 2, 2, 2, 3, 4, 7, 7, 8, 9);
SET(foreign, 7, 7, 8, 9);
SET(none, 99);
SET(socks, 12, 12, 13, 13, 14, 15);
SET(nls, 10, 10, 10, 11);
SET(fds, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14);
SET(handles, 0, 0, 0, 0, 1, 1, 2, 3);
SET(maps, 0, 0, 0, 1, 1, 2, 3);
SET(modes, O_RDWR, O_RDWR, O_RDWR, O_RDONLY, O_WRONLY);
SET(places, TEN(0), TEN(0), TEN(0), TEN(0), TEN(0), 1, 2, 3, 4, 5, 6);
SET(sizes, TEN(0), TEN(0), TEN(0), TEN(0), TEN(0), 1, 4, 8, 16, 24, 32, 40, 48, 64, 256, 4095, 4096,
    4097);
SET(nodes, -1, -1, -1, 0, 1, 2);
SET(alloc_flags, 0, 0, 0, 0, TENSOR_ALLOC_ORDERS, TENSOR_ALLOC_NODE_ONLY, TENSOR_ALLOC_INTERLEAVE,
    TENSOR_ALLOC_CONTIG, TENSOR_ALLOC_DMA32, TENSOR_ALLOC_CONTIG | TENSOR_ALLOC_DMA32);
SET(orders, 0, 0, 0, 1, 3, 8, 9, 10);
SET(meta_flags, TENSOR_META_SET);
SET(bits, 8, 16, 32, 32, 64, 128, 0, 1, 4, 12, 1U << 31, UINT32_MAX);
SET(tags, 0, 1, 2, 9, 12, UINT32_MAX);
SET(dims, 0, 1, 2, 3, 4, 16, 17);
SET(extents, 0, 1, 2, 3, 4, 16, 512, 1024, -1, INT64_MAX, INT64_MIN);
SET(labels, 0, 'x', 0x6f6c6c6568, 0xff, 0xa9c3, 1, -1);
SET(export_flags, 0, 0, 0, TENSOR_EXPORT_INHERIT, TENSOR_EXPORT_RANGE);
SET(dma_flags, TENSOR_EXPORT_DMABUF, TENSOR_EXPORT_DMABUF,
    TENSOR_EXPORT_DMABUF | TENSOR_EXPORT_RANGE);
SET(rights, TENSOR_RIGHTS_ALL, TENSOR_RIGHTS_ALL, TENSOR_RIGHTS_ALL, TENSOR_RIGHTS_RW,
    TENSOR_RIGHTS_RW, TENSOR_RIGHTS_RO, TENSOR_RIGHTS_RO, TENSOR_RIGHT_READ, TENSOR_RIGHT_WRITE,
    TENSOR_RIGHT_ATTACH, TENSOR_RIGHT_SEAL, TENSOR_RIGHT_REVOKE, TENSOR_RIGHT_EXPORT,
    TENSOR_RIGHTS_ALL & ~TENSOR_RIGHT_READ, TENSOR_RIGHTS_ALL & ~TENSOR_RIGHT_WRITE,
    TENSOR_RIGHTS_ALL & ~TENSOR_RIGHT_EXPORT, 0, 1 << 6);
SET(offsets, TEN(0), PAGE, 2 * PAGE, 512 * PAGE, 1);
SET(lens, TEN(0), PAGE, PAGE, 2 * PAGE, 512 * PAGE, 1);
SET(seal_bits, TENSOR_SEAL_WRITE, TENSOR_SEAL_META, TENSOR_SEAL_SEAL);
SET(advices_ours, TENSOR_ADVISE_WILLNEED, TENSOR_ADVISE_PURGEABLE, TENSOR_ADVISE_PURGEABLE, 2);
SET(sync_flags, 1, 2, 3, 5, 6, 7, 4, 0);
SET(deadlines, 0, 0, 1, TENSOR_SYNC_FOREVER);
SET(pin_flags, 0, 0, TENSOR_PIN_RDONLY);
SET(pin_bytes, PAGE, PAGE, 2 * PAGE, 4 * PAGE, 512 * PAGE, 0, 1);
SET(anon_flags, 0x22, 0x22, 0x8022, 0x21);
SET(dma_ops, 0, 1, 2, 3, 4, 5);
SET(firsts, TEN(0), 1, 1, 2, 3, 7, 15, 511, 512, 513, 1024);
SET(counts, 1, 1, 1, 1, 1, 2, 2, 3, 4, 7, 16, 512, 513, 0);
SET(pages, 0, 0, 0, 1, 2, 3, 4, 7, 15, 16, 511, 512, 513, 1024);
SET(prots, 0, PROT_READ, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_WRITE, 7);
SET(map_flags, MAP_SHARED, MAP_SHARED, MAP_SHARED, MAP_SHARED_VALIDATE, MAP_PRIVATE,
    MAP_SHARED | MAP_POPULATE, MAP_SHARED | MAP_LOCKED, MAP_PRIVATE | MAP_NORESERVE);
SET(mmap_offsets, 0, 0, 0, 0, 1, 1, 2, 3, 99);
SET(remap_flags, 0, 0, 0, MREMAP_DONTUNMAP, 64);
SET(advices, 0, 1, 2, 3, 4, 4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
    25);
SET(file_ops, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 20, 21, 22,
    23);
SET(page_ops, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
SET(events, POLLIN, POLLOUT, POLLPRI, POLLRDHUP);
SET(seals, 0, 0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, 31);
SET(kinds, 0, 1, 2);
SET(cmds, 1, 2, 3, 4, 1, 2, 3, 4, 5, 12);
SET(nl_flags, NLM_F_REQUEST, NLM_F_REQUEST | NLM_F_DUMP, NLM_F_REQUEST | NLM_F_DUMP,
    NLM_F_REQUEST | NLM_F_ACK, NLM_F_REQUEST | NLM_F_DUMP | NLM_F_ACK, 0);
SET(attrs, 0, 0, 0, 1, 2, 3, 4, 5, 6, 30);
SET(lengths, 0, 1, 4, 8, 16, 31);
SET(rooms, 8192, 32767, 4096, 100, 1);
SET(groups, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32);
SET(limits, 0, 1, 4096, 1 << 20, 16 << 20);

#define ONE(name, set)                                                \
	{                                                             \
		name, KIND_ONE, ROLE_NONE, 0, 0, set, ARRAY_SIZE(set) \
	}
#define ANY(name)                                        \
	{                                                \
		name, KIND_ANY, ROLE_NONE, 0, 0, NULL, 0 \
	}
#define PART ONE("map", maps), ONE("page", firsts), ONE("pages", pages)

/* The first arguments of run_ioctl(). */
#define IOCTL_ON(set) ONE("fd", set), ONE("usize", sizes), ONE("where", places), ONE("tail", zero)

#define FIELD(type, member, kind, role, set)                                        \
	{                                                                           \
#member, kind, role, offsetof(struct type, member),                 \
			sizeof(((struct type *)NULL)->member), set, ARRAY_SIZE(set) \
	}
#define PICK(type, member, set) FIELD(type, member, KIND_ONE, ROLE_VALUE, set)
#define BITS(type, member, set) FIELD(type, member, KIND_BITS, ROLE_VALUE, set)
#define ZERO(type, member)	FIELD(type, member, KIND_ONE, ROLE_VALUE, zero)
#define HANDLE(type)		FIELD(type, handle, KIND_ONE, ROLE_HANDLE, handles)
#define BYTES(type, member)                                                                \
	{                                                                                  \
#member, KIND_BYTES, ROLE_VALUE, offsetof(struct type, member), 8, NULL, 0 \
	}
#define NUMBER(type, member)                                                  \
	{                                                                     \
#member, KIND_ANY, ROLE_VALUE, offsetof(struct type, member), \
			sizeof(((struct type *)NULL)->member), NULL, 0        \
	}

#define IOCTL(nr, type) .run = run_ioctl, .cmd = nr, .bytes = sizeof(struct type)
#define GIVES_HANDLE(type)                          \
	.handle_at = offsetof(struct type, handle), \
	.mmap_offset_at = offsetof(struct type, mmap_offset)

#define META_FIELDS                                                                                \
	ONE("out", zero), BITS(tensor_meta, flags, meta_flags), HANDLE(tensor_meta),               \
		ZERO(tensor_meta, __reserved), PICK(tensor_meta, desc.bits, bits),                 \
		PICK(tensor_meta, desc.dtype, tags), PICK(tensor_meta, desc.ndim, dims),           \
		ZERO(tensor_meta, desc.__reserved), NUMBER(tensor_meta, desc.offset),              \
		PICK(tensor_meta, desc.sizes[0], extents),                                         \
		PICK(tensor_meta, desc.sizes[1], extents),                                         \
		PICK(tensor_meta, desc.sizes[2], extents),                                         \
		PICK(tensor_meta, desc.sizes[15], extents),                                        \
		PICK(tensor_meta, desc.strides[0], extents),                                       \
		PICK(tensor_meta, desc.strides[1], extents),                                       \
		PICK(tensor_meta, desc.strides[2], extents),                                       \
		PICK(tensor_meta, desc.strides[15], extents),                                      \
		{ "label", KIND_ONE, ROLE_VALUE,	offsetof(struct tensor_meta, desc.label),  \
		  8,	   labels,   ARRAY_SIZE(labels) },                                         \
	{                                                                                          \
		"label_end", KIND_ONE, ROLE_VALUE,                                                 \
			offsetof(struct tensor_meta, desc.label) + TENSOR_UAPI_LABEL - 1, 1, zero, \
			ARRAY_SIZE(zero)                                                           \
	}

const struct call_type call_types[] = {
	/* the first row: every program begins with it */
	{ "open", 2, run_open, .args = { ONE("out", devs), ONE("flags", modes) } },

	/* ioctls */
	{ "query", 2, IOCTL(TENSOR_IOC_QUERY, tensor_query),
	  .args = { IOCTL_ON(devs), ONE("out", zero), ZERO(tensor_query, flags) } },
	{ "alloc", 30, IOCTL(TENSOR_IOC_ALLOC, tensor_alloc), GIVES_HANDLE(tensor_alloc),
	  .args = { IOCTL_ON(devs), ONE("out", handles), PICK(tensor_alloc, flags, alloc_flags),
		    BYTES(tensor_alloc, bytes), PICK(tensor_alloc, node, nodes),
		    PICK(tensor_alloc, min_order, zero), PICK(tensor_alloc, max_order, orders),
		    ZERO(tensor_alloc, __reserved) } },
	{ "info", 6, IOCTL(TENSOR_IOC_INFO, tensor_info),
	  .args = { IOCTL_ON(devs), ONE("out", zero), ZERO(tensor_info, flags),
		    HANDLE(tensor_info) } },
	{ "info_buf", 3, IOCTL(TENSOR_IOC_INFO, tensor_info),
	  .args = { IOCTL_ON(bufs), ONE("out", zero), ZERO(tensor_info, flags),
		    PICK(tensor_info, handle, zero) } },
	{ "meta", 14, IOCTL(TENSOR_IOC_META, tensor_meta),
	  .args = { IOCTL_ON(devs), META_FIELDS } },
	{ "meta_buf", 4, IOCTL(TENSOR_IOC_META, tensor_meta),
	  .args = { IOCTL_ON(bufs), META_FIELDS } },
	{ "export", 12, IOCTL(TENSOR_IOC_EXPORT, tensor_export),
	  .fd_at = offsetof(struct tensor_export, fd),
	  .args = { IOCTL_ON(devs), ONE("out", bufs), PICK(tensor_export, flags, export_flags),
		    HANDLE(tensor_export), PICK(tensor_export, offset, offsets),
		    PICK(tensor_export, bytes, lens), PICK(tensor_export, rights, rights),
		    ZERO(tensor_export, __reserved) } },
	{ "export_dma", 10, IOCTL(TENSOR_IOC_EXPORT, tensor_export),
	  .fd_at = offsetof(struct tensor_export, fd),
	  .args = { IOCTL_ON(devs), ONE("out", foreign), PICK(tensor_export, flags, dma_flags),
		    HANDLE(tensor_export), PICK(tensor_export, offset, offsets),
		    PICK(tensor_export, bytes, lens), PICK(tensor_export, rights, rights),
		    ZERO(tensor_export, __reserved) } },
	{ "import", 12, IOCTL(TENSOR_IOC_IMPORT, tensor_import), GIVES_HANDLE(tensor_import),
	  .args = { IOCTL_ON(devs), ONE("out", handles), ZERO(tensor_import, flags),
		    FIELD(tensor_import, fd, KIND_ONE, ROLE_FD, imports),
		    ZERO(tensor_import, __reserved) } },
	{ "close_handle", 6, IOCTL(TENSOR_IOC_CLOSE, tensor_close),
	  .args = { IOCTL_ON(devs), ONE("out", zero), ZERO(tensor_close, flags),
		    HANDLE(tensor_close), ZERO(tensor_close, __reserved) } },
	{ "seal", 6, IOCTL(TENSOR_IOC_SEAL, tensor_seal),
	  .args = { IOCTL_ON(devs), ONE("out", zero), ZERO(tensor_seal, flags), HANDLE(tensor_seal),
		    BITS(tensor_seal, seals, seal_bits) } },
	{ "seal_buf", 3, IOCTL(TENSOR_IOC_SEAL, tensor_seal),
	  .args = { IOCTL_ON(bufs), ONE("out", zero), ZERO(tensor_seal, flags),
		    PICK(tensor_seal, handle, zero), BITS(tensor_seal, seals, seal_bits) } },
	{ "revoke", 3, IOCTL(TENSOR_IOC_REVOKE, tensor_revoke),
	  .args = { IOCTL_ON(devs), ONE("out", zero), ZERO(tensor_revoke, flags),
		    HANDLE(tensor_revoke), ZERO(tensor_revoke, __reserved) } },
	{ "advise", 8, IOCTL(TENSOR_IOC_ADVISE, tensor_advise),
	  .args = { IOCTL_ON(devs), ONE("out", zero), ZERO(tensor_advise, flags),
		    HANDLE(tensor_advise), PICK(tensor_advise, advice, advices_ours),
		    ZERO(tensor_advise, purged), ZERO(tensor_advise, __reserved) } },
	{ "sync", 6, IOCTL(TENSOR_IOC_SYNC, tensor_sync),
	  .args = { IOCTL_ON(devs), ONE("out", zero), PICK(tensor_sync, flags, sync_flags),
		    HANDLE(tensor_sync), ZERO(tensor_sync, __reserved),
		    PICK(tensor_sync, deadline_ns, deadlines), ZERO(tensor_sync, generation) } },
	{ "sync_buf", 3, IOCTL(TENSOR_IOC_SYNC, tensor_sync),
	  .args = { IOCTL_ON(bufs), ONE("out", zero), PICK(tensor_sync, flags, sync_flags),
		    PICK(tensor_sync, handle, zero), ZERO(tensor_sync, __reserved),
		    PICK(tensor_sync, deadline_ns, deadlines), ZERO(tensor_sync, generation) } },
	{ "pin", 8, IOCTL(TENSOR_IOC_PIN, tensor_pin),
	  .handle_at = offsetof(struct tensor_pin, handle),
	  .args = { IOCTL_ON(devs), ONE("out", handles), PICK(tensor_pin, flags, pin_flags),
		    FIELD(tensor_pin, addr, KIND_ONE, ROLE_MAP, maps),
		    PICK(tensor_pin, bytes, pin_bytes), ZERO(tensor_pin, __reserved) } },

	/* mappings */
	{ "mmap", 30, run_mmap,
	  .args = { ONE("fd", devs), ONE("mmap_offset", mmap_offsets), ONE("page", firsts),
		    ONE("pages", counts), ONE("prot", prots), ONE("flags", map_flags),
		    ONE("over", zero), ONE("out", maps) } },
	{ "mmap_buf", 12, run_mmap,
	  .args = { ONE("fd", bufs), ONE("none", none), ONE("page", firsts), ONE("pages", counts),
		    ONE("prot", prots), ONE("flags", map_flags), ONE("over", zero),
		    ONE("out", maps) } },
	{ "mmap_dma", 5, run_mmap,
	  .args = { ONE("fd", foreign), ONE("none", none), ONE("page", firsts),
		    ONE("pages", counts), ONE("prot", prots), ONE("flags", map_flags),
		    ONE("over", zero), ONE("out", maps) } },
	{ "mmap_anon", 6, run_mmap,
	  .args = { ONE("fd", none), ONE("none", none), ONE("page", none), ONE("pages", counts),
		    ONE("prot", prots), ONE("flags", anon_flags), ONE("over", zero),
		    ONE("out", maps) } },
	{ "munmap", 5, run_munmap, .args = { PART } },
	{ "mprotect", 6, run_mprotect, .args = { PART, ONE("prot", prots) } },
	{ "mremap", 6, run_mremap,
	  .args = { PART, ONE("wanted", counts), ONE("flags", remap_flags), ONE("out", maps) } },
	{ "madvise", 10, run_madvise, .args = { PART, ONE("advice", advices) } },
	{ "touch", 20, run_touch, .args = { PART, ONE("write", yes) } },
	{ "pages", 10, run_pages, .args = { PART, ONE("op", page_ops), ONE("fd", socks) } },
	{ "fork", 1, run_fork, .args = { ONE("write", yes) } },

	/* files */
	{ "close", 6, run_close, .args = { ONE("fd", fds) } },
	{ "dup", 2, run_dup, .args = { ONE("fd", fds), ONE("out", bufs) } },
	{ "pair", 3, run_pair,
	  .args = { ONE("out", socks), ONE("other", socks), ONE("pipe", yes) } },
	{ "send", 5, run_send, .args = { ONE("sock", socks), ONE("fd", fds) } },
	{ "recv", 5, run_recv, .args = { ONE("sock", socks), ONE("out", bufs) } },
	{ "memfd", 3, run_memfd,
	  .args = { ONE("out", foreign), ONE("pages", pages), ONE("seals", seals) } },
	{ "foreign", 2, run_foreign,
	  .args = { ONE("out", foreign), ONE("kind", kinds), ONE("pages", pages),
		    ONE("memfd", foreign) } },
	{ "dma_op", 8, run_dma,
	  .args = { ONE("fd", foreign), ONE("op", dma_ops), ONE("flags", sync_flags),
		    ONE("other", foreign) } },
	{ "file", 14, run_file,
	  .args = { ONE("fd", fds), ONE("op", file_ops), ANY("a"), ONE("b", fds) } },
	{ "poll", 4, run_poll,
	  .args = { ONE("fd", fds),
		    { "events", KIND_BITS, ROLE_NONE, 0, 0, events, 4 },
		    ONE("ms", zero) } },
	{ "user", 1, run_user, .args = { ONE("none", zero) } },
	{ "limit", 1, run_limit, .args = { ONE("bytes", limits) } },
	{ "shrink", 1, run_shrink, .args = { ONE("none", zero) } },

	/* netlink */
	{ "nl_open", 4, run_nl_open, .args = { ONE("out", nls), ONE("group", groups) } },
	{ "nl_send", 12, run_nl_send,
	  .args = { ONE("sock", nls), ONE("cmd", cmds), ONE("flags", nl_flags), ONE("version", yes),
		    ONE("attr0", attrs), ONE("len0", lengths), ANY("value0"), ONE("attr1", attrs),
		    ONE("len1", lengths), ANY("value1"), ONE("attr2", attrs), ONE("len2", lengths),
		    ANY("value2") } },
	{ "nl_recv", 12, run_nl_recv,
	  .args = { ONE("sock", nls), ONE("bytes", rooms), ANY("flags") } },
};

const unsigned int call_types_nr = ARRAY_SIZE(call_types);

_Static_assert(ARRAY_SIZE(call_types) <= CALL_TYPES_MAX, "more calls than counters");
