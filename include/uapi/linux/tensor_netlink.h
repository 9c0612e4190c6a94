/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The generic netlink family "tensor": who has which buffers, for tools such as tensorstat.
 *
 * docs/netlink/tensor.yaml specifies it in the kernel's YNL format. Dumps give one message an
 * object, ordered by id; a message with NLM_F_DUMP_INTR says that objects came or went between the
 * parts of the dump, and the dump should be repeated. A dump takes filters where its command says
 * so; a "do" takes the id. Everything else in a request is refused.
 *
 * Who sees what: the totals (STAT) are open to everybody. A row about a client, or about a buffer,
 * is given to the user who opened the client or made the buffer, and to whoever has CAP_NET_ADMIN
 * or CAP_SYS_ADMIN over that user's namespace; and only if that process is visible in the pid
 * namespace of the one who asks. Other rows are left out without a word, and a "do" for one of
 * them is answered as if it did not exist.
 *
 * Errors, each but ENOMEM with an extended ack that says more:
 *
 * EINVAL: an attribute that the command does not take or of the wrong length; a "do" without id
 * ERANGE: an id, a client or a process 0
 * ENOENT: no such object that the reader may see
 * EOPNOTSUPP: no such command, or not as "do" or not as dump
 * EPERM: joining the events without CAP_NET_ADMIN
 */
#ifndef _UAPI_LINUX_TENSOR_NETLINK_H
#define _UAPI_LINUX_TENSOR_NETLINK_H

#define TENSOR_GENL_NAME	"tensor"
#define TENSOR_GENL_VERSION	1

/*
 * The multicast group of the events. Joining it takes CAP_NET_ADMIN over the network namespace, and
 * the events are told in the initial one only: they are about all processes of the machine. Their
 * numbers are those of the initial pid and user namespaces. A listener that was too slow, or for
 * whom there was no memory, gets ENOBUFS from recvmsg() and should dump.
 */
#define TENSOR_GENL_EVENTS	"events"

/**
 * enum tensor_cmd - commands; a reply carries the number of its request
 * @TENSOR_CMD_UNSPEC: not used
 * @TENSOR_CMD_CLIENT_GET: an open /dev/tensor each; TENSOR_A_CLIENT_*; do: ID; dump: PID filters
 * @TENSOR_CMD_BUF_GET: a buffer each, those without a handle too; TENSOR_A_BUF_*; do: ID; dump:
 *	CLIENT and PID filter
 * @TENSOR_CMD_STAT_GET: do: totals of the machine; TENSOR_A_STAT_*
 * @TENSOR_CMD_HANDLE_GET: dump: a handle each, by client and number; TENSOR_A_HANDLE_*; CLIENT and
 *	BUF filter. Whoever may see the client sees its handles.
 * @TENSOR_CMD_EVENT_ALLOC: event: a buffer was made: BUF, CLIENT, BYTES
 * @TENSOR_CMD_EVENT_FREE: event: a buffer is gone: BUF, CLIENT (its maker), BYTES
 * @TENSOR_CMD_EVENT_IMPORT: event: a client has a new handle to a buffer: BUF, CLIENT, BYTES, STATE
 * @TENSOR_CMD_EVENT_EXPORT: event: an fd of a buffer was made: BUF, CLIENT, BYTES, STATE
 * @TENSOR_CMD_EVENT_LIMIT: event: an allocation met a limit: CLIENT, BYTES asked for, LIMIT_BYTES
 * @TENSOR_CMD_EVENT_DEATH: event: a client is gone that still had handles: CLIENT, BYTES, HANDLES
 *
 * All events carry TIME_NS, PID, UID and COMM besides: of the maker for ALLOC, FREE and DEATH, of
 * the process that called for the others. TENSOR_A_EVENT_*.
 */
enum tensor_cmd {
	TENSOR_CMD_UNSPEC,
	TENSOR_CMD_CLIENT_GET,
	TENSOR_CMD_BUF_GET,
	TENSOR_CMD_STAT_GET,
	TENSOR_CMD_HANDLE_GET,
	TENSOR_CMD_EVENT_ALLOC,
	TENSOR_CMD_EVENT_FREE,
	TENSOR_CMD_EVENT_IMPORT,
	TENSOR_CMD_EVENT_EXPORT,
	TENSOR_CMD_EVENT_LIMIT,
	TENSOR_CMD_EVENT_DEATH,

	__TENSOR_CMD_MAX,
	TENSOR_CMD_MAX = __TENSOR_CMD_MAX - 1
};

/**
 * enum tensor_a_client - an open /dev/tensor
 * @TENSOR_A_CLIENT_UNSPEC: not used
 * @TENSOR_A_CLIENT_PAD: alignment of 64-bit attributes
 * @TENSOR_A_CLIENT_ID: u64: never given twice while the module is loaded
 * @TENSOR_A_CLIENT_PID: u32: process that opened it, in the reader's pid namespace
 * @TENSOR_A_CLIENT_UID: u32: its user then, in the reader's user namespace
 * @TENSOR_A_CLIENT_COMM: string: its name then
 * @TENSOR_A_CLIENT_HANDLES: u32: handles it holds
 * @TENSOR_A_CLIENT_BYTES: u64: bytes of the buffers behind them, once a handle
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
 * enum tensor_a_buf - a buffer; the meaning of each is in struct tensor_info and tensor_desc
 * @TENSOR_A_BUF_UNSPEC: not used
 * @TENSOR_A_BUF_PAD: alignment of 64-bit attributes
 * @TENSOR_A_BUF_ID: u64: the inode number
 * @TENSOR_A_BUF_DEV: u64: the device number, as st_dev
 * @TENSOR_A_BUF_CLIENT: u64: id of the client that made it; that client may be gone
 * @TENSOR_A_BUF_PID: u32: process that made it, in the reader's pid namespace
 * @TENSOR_A_BUF_UID: u32: its user then, in the reader's user namespace
 * @TENSOR_A_BUF_COMM: string: its name then
 * @TENSOR_A_BUF_AGE_NS: u64: nanoseconds since it was made
 * @TENSOR_A_BUF_STATE: u32: TENSOR_STATE_META
 * @TENSOR_A_BUF_BYTES: u64: bytes
 * @TENSOR_A_BUF_HUGE_BYTES: u64: of these, in chunks of PMD size
 * @TENSOR_A_BUF_PINNED_BYTES: u64: of these, resident and unmovable
 * @TENSOR_A_BUF_NODE: s32: NUMA node, or TENSOR_NODE_ANY
 * @TENSOR_A_BUF_HANDLES: u32: handles
 * @TENSOR_A_BUF_FILES: u32: open files made by EXPORT
 * @TENSOR_A_BUF_MAPPINGS: u32: mappings
 * @TENSOR_A_BUF_CHUNKS: array of u32 in machine byte order: chunks of order 0, 1, ...
 * @TENSOR_A_BUF_DTYPE: u32: enum tensor_dt
 * @TENSOR_A_BUF_OFFSET: u64: bytes; absent with TENSOR_DT_NONE
 * @TENSOR_A_BUF_SIZES: array of s64 in machine byte order, one a dimension; absent with
 *	TENSOR_DT_NONE, empty for a scalar
 * @TENSOR_A_BUF_STRIDES: as @TENSOR_A_BUF_SIZES
 * @TENSOR_A_BUF_LABEL: string; absent if empty
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
 * @TENSOR_A_STAT_LIMIT_BYTES: u64: most bytes that all buffers may have
 * @TENSOR_A_STAT_REFUSED: u64: allocations that met that limit since the module was loaded
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

	__TENSOR_A_STAT_MAX,
	TENSOR_A_STAT_MAX = __TENSOR_A_STAT_MAX - 1
};

/**
 * enum tensor_a_handle - a handle of a client
 * @TENSOR_A_HANDLE_UNSPEC: not used
 * @TENSOR_A_HANDLE_PAD: alignment of 64-bit attributes
 * @TENSOR_A_HANDLE_CLIENT: u64: id of the client
 * @TENSOR_A_HANDLE_ID: u32: the handle, as ALLOC or IMPORT gave it
 * @TENSOR_A_HANDLE_BUF: u64: id of the buffer
 * @TENSOR_A_HANDLE_STATE: u32: TENSOR_STATE_RDONLY or 0
 */
enum tensor_a_handle {
	TENSOR_A_HANDLE_UNSPEC,
	TENSOR_A_HANDLE_PAD,
	TENSOR_A_HANDLE_CLIENT,
	TENSOR_A_HANDLE_ID,
	TENSOR_A_HANDLE_BUF,
	TENSOR_A_HANDLE_STATE,

	__TENSOR_A_HANDLE_MAX,
	TENSOR_A_HANDLE_MAX = __TENSOR_A_HANDLE_MAX - 1
};

/**
 * enum tensor_a_event - something that happened
 * @TENSOR_A_EVENT_UNSPEC: not used
 * @TENSOR_A_EVENT_PAD: alignment of 64-bit attributes
 * @TENSOR_A_EVENT_TIME_NS: u64: when, nanoseconds of CLOCK_BOOTTIME
 * @TENSOR_A_EVENT_BUF: u64: id of the buffer
 * @TENSOR_A_EVENT_CLIENT: u64: id of the client
 * @TENSOR_A_EVENT_PID: u32: the process, in the initial pid namespace
 * @TENSOR_A_EVENT_UID: u32: its user, in the initial user namespace
 * @TENSOR_A_EVENT_COMM: string: its name
 * @TENSOR_A_EVENT_BYTES: u64: how much it is about
 * @TENSOR_A_EVENT_STATE: u32: TENSOR_STATE_*: what the handle or the fd permits
 * @TENSOR_A_EVENT_HANDLES: u32: how many
 * @TENSOR_A_EVENT_LIMIT_BYTES: u64: the limit that was met
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

	__TENSOR_A_EVENT_MAX,
	TENSOR_A_EVENT_MAX = __TENSOR_A_EVENT_MAX - 1
};

#endif /* _UAPI_LINUX_TENSOR_NETLINK_H */
