/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The generic netlink family "tensor": clients, buffers and their users, for tools such as
 * tensorstat.
 *
 * docs/netlink/tensor.yaml specifies it in the kernel's YNL format. A dump returns one message per
 * object, sorted by id. NLM_F_DUMP_INTR in a message reports that objects were added or removed
 * between the parts of the dump, which should be repeated then. A dump accepts the filters of its
 * command, a "do" accepts an id. Every other attribute is refused.
 *
 * Visibility: all users can read the totals (STAT). The row of a client or a buffer is visible to
 * the user who opened the client or created the buffer, and to readers with CAP_NET_ADMIN or
 * CAP_SYS_ADMIN over that user's namespace, if the process is visible in the pid namespace of the
 * reader. Other rows are omitted, and a "do" for one of them fails as if it did not exist.
 *
 * Errors, all but ENOMEM with a message in the extended ack:
 *
 * EINVAL: an attribute that the command does not accept or of the wrong length; a "do" without id
 * ERANGE: an id, a client or a process 0
 * ENOENT: no such object is visible to the reader
 * EOPNOTSUPP: no such command, or not as "do" or not as dump
 * EPERM: joining the events without CAP_NET_ADMIN
 */
#ifndef _UAPI_LINUX_TENSOR_NETLINK_H
#define _UAPI_LINUX_TENSOR_NETLINK_H

#define TENSOR_GENL_NAME    "tensor"
#define TENSOR_GENL_VERSION 1

/*
 * The multicast group of the events. Joining it needs CAP_NET_ADMIN over the network namespace.
 * Events are sent in the initial network namespace only, because they concern all processes of the
 * machine, with numbers of the initial pid and user namespaces. A listener that missed an event,
 * because it was too slow or memory was short, gets ENOBUFS from recvmsg() and should dump.
 */
#define TENSOR_GENL_EVENTS "events"

/**
 * enum tensor_cmd - commands; a reply carries the number of its request
 * @TENSOR_CMD_UNSPEC: not used
 * @TENSOR_CMD_CLIENT_GET: opens of /dev/tensor; TENSOR_A_CLIENT_*; do: ID; dump: PID filter
 * @TENSOR_CMD_BUF_GET: buffers, including those without a handle; TENSOR_A_BUF_*; do: ID; dump:
 *	CLIENT and PID filter
 * @TENSOR_CMD_STAT_GET: do: totals of the machine; TENSOR_A_STAT_*
 * @TENSOR_CMD_HANDLE_GET: dump: handles, sorted by client and number; TENSOR_A_HANDLE_*; CLIENT and
 *	BUF filter. A handle is visible to the readers who can see its client.
 * @TENSOR_CMD_EXPORT_GET: dump: open files made by EXPORT; TENSOR_A_EXPORT_*; BUF and PID filter
 * @TENSOR_CMD_USER_GET: dump: users who are charged, sorted by number; TENSOR_A_USER_*. The rows of
 *	other users need CAP_NET_ADMIN or CAP_SYS_ADMIN over the initial user namespace. The dump is
 *	not consistent: a user that is added or removed meanwhile may be in it or not.
 * @TENSOR_CMD_EVENT_ALLOC: event: a buffer was created: BUF, CLIENT, BYTES
 * @TENSOR_CMD_EVENT_FREE: event: a buffer was freed: BUF, CLIENT (its creator), BYTES
 * @TENSOR_CMD_EVENT_IMPORT: event: a client got a new handle to a buffer: BUF, CLIENT, BYTES,
 *	STATE, RIGHTS
 * @TENSOR_CMD_EVENT_EXPORT: event: an fd of a buffer was created: BUF, CLIENT, BYTES, STATE, KIND,
 *	RIGHTS
 * @TENSOR_CMD_EVENT_SEAL: event: a buffer was sealed: BUF, BYTES, SEALS (all that are set)
 * @TENSOR_CMD_EVENT_REVOKE: event: a buffer was revoked: BUF, BYTES
 * @TENSOR_CMD_EVENT_PURGE: event: a purgeable buffer was purged: BUF, CLIENT, BYTES
 * @TENSOR_CMD_EVENT_LIMIT: event: an allocation was refused because of a limit: CLIENT, BYTES
 *	(requested), LIMIT_BYTES, USER_LIMIT_BYTES
 * @TENSOR_CMD_EVENT_DEATH: event: a client was closed with open handles: CLIENT, BYTES, HANDLES
 *
 * All events also have TIME_NS, PID, UID and COMM: of the creator for ALLOC, FREE, PURGE and DEATH,
 * otherwise of the calling process. TENSOR_A_EVENT_*.
 */
enum tensor_cmd {
	TENSOR_CMD_UNSPEC,
	TENSOR_CMD_CLIENT_GET,
	TENSOR_CMD_BUF_GET,
	TENSOR_CMD_STAT_GET,
	TENSOR_CMD_HANDLE_GET,
	TENSOR_CMD_EXPORT_GET,
	TENSOR_CMD_USER_GET,
	TENSOR_CMD_EVENT_ALLOC,
	TENSOR_CMD_EVENT_FREE,
	TENSOR_CMD_EVENT_IMPORT,
	TENSOR_CMD_EVENT_EXPORT,
	TENSOR_CMD_EVENT_SEAL,
	TENSOR_CMD_EVENT_REVOKE,
	TENSOR_CMD_EVENT_PURGE,
	TENSOR_CMD_EVENT_LIMIT,
	TENSOR_CMD_EVENT_DEATH,

	__TENSOR_CMD_MAX,
	TENSOR_CMD_MAX = __TENSOR_CMD_MAX - 1
};

/**
 * enum tensor_a_client - an open /dev/tensor
 * @TENSOR_A_CLIENT_UNSPEC: not used
 * @TENSOR_A_CLIENT_PAD: alignment of 64-bit attributes
 * @TENSOR_A_CLIENT_ID: u64: not reused while the module is loaded
 * @TENSOR_A_CLIENT_PID: u32: process that opened it, in the reader's pid namespace
 * @TENSOR_A_CLIENT_UID: u32: its user at that time, in the reader's user namespace
 * @TENSOR_A_CLIENT_COMM: string: its name at that time
 * @TENSOR_A_CLIENT_HANDLES: u32: number of its handles
 * @TENSOR_A_CLIENT_BYTES: u64: sum of the bytes of the buffers of all handles
 * @TENSOR_A_CLIENT_AGE_NS: u64: nanoseconds since it was opened
 */
enum tensor_a_client {
	TENSOR_A_CLIENT_UNSPEC,
	TENSOR_A_CLIENT_PAD,
	TENSOR_A_CLIENT_ID,
	TENSOR_A_CLIENT_PID,
	TENSOR_A_CLIENT_UID,
	TENSOR_A_CLIENT_COMM,
	TENSOR_A_CLIENT_HANDLES,
	TENSOR_A_CLIENT_BYTES,
	TENSOR_A_CLIENT_AGE_NS,

	__TENSOR_A_CLIENT_MAX,
	TENSOR_A_CLIENT_MAX = __TENSOR_A_CLIENT_MAX - 1
};

/**
 * enum tensor_a_buf - a buffer; see also struct tensor_info and struct tensor_desc
 * @TENSOR_A_BUF_UNSPEC: not used
 * @TENSOR_A_BUF_PAD: alignment of 64-bit attributes
 * @TENSOR_A_BUF_ID: u64: the inode number
 * @TENSOR_A_BUF_DEV: u64: the device number, as st_dev
 * @TENSOR_A_BUF_CLIENT: u64: id of the client that created it, which may be closed
 * @TENSOR_A_BUF_PID: u32: process that created it, in the reader's pid namespace
 * @TENSOR_A_BUF_UID: u32: its user at that time, in the reader's user namespace
 * @TENSOR_A_BUF_COMM: string: its name at that time
 * @TENSOR_A_BUF_AGE_NS: u64: nanoseconds since it was created
 * @TENSOR_A_BUF_STATE: u32: TENSOR_STATE_*, except those of a handle or an fd
 * @TENSOR_A_BUF_BYTES: u64: bytes
 * @TENSOR_A_BUF_HUGE_BYTES: u64: of these, in chunks of PMD size
 * @TENSOR_A_BUF_PINNED_BYTES: u64: of these, resident and unmovable
 * @TENSOR_A_BUF_NODE: s32: NUMA node, or TENSOR_NODE_ANY
 * @TENSOR_A_BUF_HANDLES: u32: handles
 * @TENSOR_A_BUF_FILES: u32: open files made by EXPORT
 * @TENSOR_A_BUF_MAPPINGS: u32: mappings
 * @TENSOR_A_BUF_CHUNKS: array of u32 in machine byte order: chunks of order 0, 1, ...
 * @TENSOR_A_BUF_DTYPE: u32: a number defined by user space; absent without a descriptor
 * @TENSOR_A_BUF_OFFSET: u64: bytes; absent without a descriptor
 * @TENSOR_A_BUF_SIZES: array of s64 in machine byte order, one per dimension; absent without a
 *	descriptor, empty for a scalar
 * @TENSOR_A_BUF_STRIDES: as @TENSOR_A_BUF_SIZES
 * @TENSOR_A_BUF_LABEL: string; absent if empty
 * @TENSOR_A_BUF_KIND: u32: enum tensor_kind
 * @TENSOR_A_BUF_SEALS: u32: TENSOR_SEAL_*
 * @TENSOR_A_BUF_DMABUFS: u32: dma-bufs made by EXPORT
 * @TENSOR_A_BUF_ATTACHMENTS: u32: devices attached to them
 * @TENSOR_A_BUF_BITS: u32: bits per element; 0: no descriptor
 */
enum tensor_a_buf {
	TENSOR_A_BUF_UNSPEC,
	TENSOR_A_BUF_PAD,
	TENSOR_A_BUF_ID,
	TENSOR_A_BUF_DEV,
	TENSOR_A_BUF_CLIENT,
	TENSOR_A_BUF_PID,
	TENSOR_A_BUF_UID,
	TENSOR_A_BUF_COMM,
	TENSOR_A_BUF_AGE_NS,
	TENSOR_A_BUF_STATE,
	TENSOR_A_BUF_BYTES,
	TENSOR_A_BUF_HUGE_BYTES,
	TENSOR_A_BUF_PINNED_BYTES,
	TENSOR_A_BUF_NODE,
	TENSOR_A_BUF_HANDLES,
	TENSOR_A_BUF_FILES,
	TENSOR_A_BUF_MAPPINGS,
	TENSOR_A_BUF_CHUNKS,
	TENSOR_A_BUF_DTYPE,
	TENSOR_A_BUF_OFFSET,
	TENSOR_A_BUF_SIZES,
	TENSOR_A_BUF_STRIDES,
	TENSOR_A_BUF_LABEL,
	TENSOR_A_BUF_KIND,
	TENSOR_A_BUF_SEALS,
	TENSOR_A_BUF_DMABUFS,
	TENSOR_A_BUF_ATTACHMENTS,
	TENSOR_A_BUF_BITS,

	__TENSOR_A_BUF_MAX,
	TENSOR_A_BUF_MAX = __TENSOR_A_BUF_MAX - 1
};

/**
 * enum tensor_a_stat - totals of the machine
 * @TENSOR_A_STAT_UNSPEC: not used
 * @TENSOR_A_STAT_PAD: alignment of 64-bit attributes
 * @TENSOR_A_STAT_CLIENTS: u64: open /dev/tensor
 * @TENSOR_A_STAT_BUFS: u64: buffers
 * @TENSOR_A_STAT_BYTES: u64: bytes of all buffers
 * @TENSOR_A_STAT_HUGE_BYTES: u64: of these, in chunks of PMD size
 * @TENSOR_A_STAT_LIMIT_BYTES: u64: limit of the bytes charged to all users together
 * @TENSOR_A_STAT_REFUSED: u64: allocations refused by a limit since the module was loaded
 * @TENSOR_A_STAT_USED_BYTES: u64: bytes charged to all users
 * @TENSOR_A_STAT_PURGEABLE_BYTES: u64: of these, purgeable
 * @TENSOR_A_STAT_FILES: u64: open files made by EXPORT
 * @TENSOR_A_STAT_DMABUFS: u64: dma-bufs made by EXPORT
 * @TENSOR_A_STAT_USER_LIMIT_BYTES: u64: limit of the bytes charged to one user
 * @TENSOR_A_STAT_USER_REFUSED: u64: those of REFUSED that were refused by the limit of the user
 * @TENSOR_A_STAT_POOL_BYTES: u64: bytes of free chunks in the pool
 * @TENSOR_A_STAT_POOL_LIMIT_BYTES: u64: limit of POOL_BYTES
 * @TENSOR_A_STAT_POOL_HITS: u64: chunks that requests got from the pool
 * @TENSOR_A_STAT_POOL_MISSES: u64: chunks that the pool could have served but did not have
 * @TENSOR_A_STAT_POOL_ZEROED_BYTES: u64: bytes zeroed in the background
 * @TENSOR_A_STAT_POOL_FETCHED_BYTES: u64: bytes allocated in the background
 * @TENSOR_A_STAT_POOL_RECLAIMED_BYTES: u64: bytes freed because memory was short
 * @TENSOR_A_STAT_LINGER_BYTES: u64: those of USED_BYTES whose buffer was freed but whose pages have
 *	another reference
 */
enum tensor_a_stat {
	TENSOR_A_STAT_UNSPEC,
	TENSOR_A_STAT_PAD,
	TENSOR_A_STAT_CLIENTS,
	TENSOR_A_STAT_BUFS,
	TENSOR_A_STAT_BYTES,
	TENSOR_A_STAT_HUGE_BYTES,
	TENSOR_A_STAT_LIMIT_BYTES,
	TENSOR_A_STAT_REFUSED,
	TENSOR_A_STAT_USED_BYTES,
	TENSOR_A_STAT_PURGEABLE_BYTES,
	TENSOR_A_STAT_FILES,
	TENSOR_A_STAT_DMABUFS,
	TENSOR_A_STAT_USER_LIMIT_BYTES,
	TENSOR_A_STAT_USER_REFUSED,
	TENSOR_A_STAT_POOL_BYTES,
	TENSOR_A_STAT_POOL_LIMIT_BYTES,
	TENSOR_A_STAT_POOL_HITS,
	TENSOR_A_STAT_POOL_MISSES,
	TENSOR_A_STAT_POOL_ZEROED_BYTES,
	TENSOR_A_STAT_POOL_FETCHED_BYTES,
	TENSOR_A_STAT_POOL_RECLAIMED_BYTES,
	TENSOR_A_STAT_LINGER_BYTES,

	__TENSOR_A_STAT_MAX,
	TENSOR_A_STAT_MAX = __TENSOR_A_STAT_MAX - 1
};

/**
 * enum tensor_a_handle - a handle of a client
 * @TENSOR_A_HANDLE_UNSPEC: not used
 * @TENSOR_A_HANDLE_PAD: alignment of 64-bit attributes
 * @TENSOR_A_HANDLE_CLIENT: u64: id of the client
 * @TENSOR_A_HANDLE_ID: u32: number of the handle
 * @TENSOR_A_HANDLE_BUF: u64: id of the buffer
 * @TENSOR_A_HANDLE_STATE: u32: TENSOR_STATE_RDONLY, TENSOR_STATE_RANGE
 * @TENSOR_A_HANDLE_RIGHTS: u32: TENSOR_RIGHT_*
 */
enum tensor_a_handle {
	TENSOR_A_HANDLE_UNSPEC,
	TENSOR_A_HANDLE_PAD,
	TENSOR_A_HANDLE_CLIENT,
	TENSOR_A_HANDLE_ID,
	TENSOR_A_HANDLE_BUF,
	TENSOR_A_HANDLE_STATE,
	TENSOR_A_HANDLE_RIGHTS,

	__TENSOR_A_HANDLE_MAX,
	TENSOR_A_HANDLE_MAX = __TENSOR_A_HANDLE_MAX - 1
};

/**
 * enum tensor_export_kind - kind of an fd that EXPORT made
 * @TENSOR_EXPORT_KIND_FD: a buffer fd
 * @TENSOR_EXPORT_KIND_DMABUF: a dma-buf
 */
enum tensor_export_kind { TENSOR_EXPORT_KIND_FD, TENSOR_EXPORT_KIND_DMABUF };

/**
 * enum tensor_a_export - an open file made by EXPORT, in any process
 * @TENSOR_A_EXPORT_UNSPEC: not used
 * @TENSOR_A_EXPORT_PAD: alignment of 64-bit attributes
 * @TENSOR_A_EXPORT_ID: u64: not reused while the module is loaded
 * @TENSOR_A_EXPORT_BUF: u64: id of the buffer
 * @TENSOR_A_EXPORT_KIND: u32: enum tensor_export_kind
 * @TENSOR_A_EXPORT_STATE: u32: TENSOR_STATE_RDONLY, TENSOR_STATE_RANGE
 * @TENSOR_A_EXPORT_OFFSET: u64: offset of its range in the buffer, in bytes
 * @TENSOR_A_EXPORT_BYTES: u64: size of its range in bytes
 * @TENSOR_A_EXPORT_PID: u32: process that created it, in the reader's pid namespace
 * @TENSOR_A_EXPORT_UID: u32: its user at that time, in the reader's user namespace
 * @TENSOR_A_EXPORT_COMM: string: its name at that time
 * @TENSOR_A_EXPORT_AGE_NS: u64: nanoseconds since it was created
 * @TENSOR_A_EXPORT_RIGHTS: u32: TENSOR_RIGHT_*
 */
enum tensor_a_export {
	TENSOR_A_EXPORT_UNSPEC,
	TENSOR_A_EXPORT_PAD,
	TENSOR_A_EXPORT_ID,
	TENSOR_A_EXPORT_BUF,
	TENSOR_A_EXPORT_KIND,
	TENSOR_A_EXPORT_STATE,
	TENSOR_A_EXPORT_OFFSET,
	TENSOR_A_EXPORT_BYTES,
	TENSOR_A_EXPORT_PID,
	TENSOR_A_EXPORT_UID,
	TENSOR_A_EXPORT_COMM,
	TENSOR_A_EXPORT_AGE_NS,
	TENSOR_A_EXPORT_RIGHTS,

	__TENSOR_A_EXPORT_MAX,
	TENSOR_A_EXPORT_MAX = __TENSOR_A_EXPORT_MAX - 1
};

/**
 * enum tensor_a_user - a user who is charged
 * @TENSOR_A_USER_UNSPEC: not used
 * @TENSOR_A_USER_PAD: alignment of 64-bit attributes
 * @TENSOR_A_USER_UID: u32: the user, in the reader's user namespace
 * @TENSOR_A_USER_BYTES: u64: bytes charged now
 * @TENSOR_A_USER_LIMIT_BYTES: u64: limit of BYTES
 * @TENSOR_A_USER_REFUSED: u64: calls refused by that limit
 * @TENSOR_A_USER_OBJECTS: u64: number of handles, and of buffers of IMPORT and PIN; at most one for
 *	each page of LIMIT_BYTES
 */
enum tensor_a_user {
	TENSOR_A_USER_UNSPEC,
	TENSOR_A_USER_PAD,
	TENSOR_A_USER_UID,
	TENSOR_A_USER_BYTES,
	TENSOR_A_USER_LIMIT_BYTES,
	TENSOR_A_USER_REFUSED,
	TENSOR_A_USER_OBJECTS,

	__TENSOR_A_USER_MAX,
	TENSOR_A_USER_MAX = __TENSOR_A_USER_MAX - 1
};

/**
 * enum tensor_a_event - attributes of an event
 * @TENSOR_A_EVENT_UNSPEC: not used
 * @TENSOR_A_EVENT_PAD: alignment of 64-bit attributes
 * @TENSOR_A_EVENT_TIME_NS: u64: time of the event, nanoseconds of CLOCK_BOOTTIME
 * @TENSOR_A_EVENT_BUF: u64: id of the buffer
 * @TENSOR_A_EVENT_CLIENT: u64: id of the client
 * @TENSOR_A_EVENT_PID: u32: the process, in the initial pid namespace
 * @TENSOR_A_EVENT_UID: u32: its user, in the initial user namespace
 * @TENSOR_A_EVENT_COMM: string: its name
 * @TENSOR_A_EVENT_BYTES: u64: size in bytes; absent if the event has none (a refused handle)
 * @TENSOR_A_EVENT_STATE: u32: TENSOR_STATE_* of the handle or the fd
 * @TENSOR_A_EVENT_HANDLES: u32: number of handles
 * @TENSOR_A_EVENT_LIMIT_BYTES: u64: limit of all users
 * @TENSOR_A_EVENT_USER_LIMIT_BYTES: u64: limit of one user
 * @TENSOR_A_EVENT_SEALS: u32: TENSOR_SEAL_*
 * @TENSOR_A_EVENT_KIND: u32: enum tensor_export_kind
 * @TENSOR_A_EVENT_RIGHTS: u32: TENSOR_RIGHT_* of the handle or the fd
 */
enum tensor_a_event {
	TENSOR_A_EVENT_UNSPEC,
	TENSOR_A_EVENT_PAD,
	TENSOR_A_EVENT_TIME_NS,
	TENSOR_A_EVENT_BUF,
	TENSOR_A_EVENT_CLIENT,
	TENSOR_A_EVENT_PID,
	TENSOR_A_EVENT_UID,
	TENSOR_A_EVENT_COMM,
	TENSOR_A_EVENT_BYTES,
	TENSOR_A_EVENT_STATE,
	TENSOR_A_EVENT_HANDLES,
	TENSOR_A_EVENT_LIMIT_BYTES,
	TENSOR_A_EVENT_USER_LIMIT_BYTES,
	TENSOR_A_EVENT_SEALS,
	TENSOR_A_EVENT_KIND,
	TENSOR_A_EVENT_RIGHTS,

	__TENSOR_A_EVENT_MAX,
	TENSOR_A_EVENT_MAX = __TENSOR_A_EVENT_MAX - 1
};

#endif /* _UAPI_LINUX_TENSOR_NETLINK_H */
