// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Stands for NCCL between processes of the emulation: the arguments are checked as its documentation describes them. A
 * call, or all calls of a group, is two operations of its stream: one sends what this rank has for the others, the other one is
 * ready when what it receives has come. A thread lets them run though nothing waits for them, as a device does.
 *
 * Of a communicator that does not block no call is queued before its state was asked for twice.
 */
#include "host.hpp"
#include "nccl.h"
#include "wires.hpp"

#include "base/reduced_float.h"

#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <set>
#include <time.h>
#include <unistd.h>

enum function { ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, SEND_RECV };

static const char *const names[] = { "ncclAllReduce",	  "ncclReduce",	   "ncclBroadcast",
				     "ncclReduceScatter", "ncclAllGather", "ncclSend, ncclRecv" };

/* A call of a function. */
struct nccl_call {
	function kind;
	const char *in; /* what this rank sends, or NULL */
	char *out;	/* where it receives, or NULL */
	uint64_t count;
	ncclDataType_t type;
	int op, root; /* root: the peer of a send or receive */
	cudaStream_t stream;
};

struct ncclComm {
	int rank, ranks, device;
	bool blocking, joined, aborted, finalized;
	int asked; /* for the state, since the last call */
	wires *wire;
	std::function<void()> deferred;		      /* a call that is not queued yet */
	std::shared_ptr<host_op> last;		      /* what was queued last */
	std::vector<std::shared_ptr<host_op>> queued; /* that may not have ended */
};

static std::set<ncclComm *> &comms = *new std::set<ncclComm *>();
static bool progresses = true;
static thread_local int depth;
static thread_local std::vector<std::pair<ncclComm *, nccl_call>> grouped;

#define NCCL()                    \
	host_call call(__func__); \
	if (call.injected)        \
	return (ncclResult_t)call.injected

/* ---- dtypes ---- */

static size_t size_of(ncclDataType_t type)
{
	static const size_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };

	return sizes[type];
}

template <class T> static T combined(T a, T b, int op)
{
	switch (op) {
	case ncclProd:
		return (T)(a * b);
	case ncclMax:
		return a > b ? a : b;
	case ncclMin:
		return a < b ? a : b;
	default:
		return (T)(a + b);
	}
}

/* Signed integers wrap. */
template <class T> struct numbers_of {
	typedef T type;
	static T load(const void *p, uint64_t i)
	{
		return ((const T *)p)[i];
	}
	static void store(void *p, uint64_t i, T v)
	{
		((T *)p)[i] = v;
	}
};

struct f16 {
	typedef float type;
	static float load(const void *p, uint64_t i)
	{
		return f16_to_f32(((const uint16_t *)p)[i]);
	}
	static void store(void *p, uint64_t i, float v)
	{
		((uint16_t *)p)[i] = f32_to_f16(v);
	}
};

struct bf16 {
	typedef float type;
	static float load(const void *p, uint64_t i)
	{
		return bf16_to_f32(((const uint16_t *)p)[i]);
	}
	static void store(void *p, uint64_t i, float v)
	{
		((uint16_t *)p)[i] = f32_to_bf16(v);
	}
};

/* to: the parts of all ranks, rounded after each step as along a ring. */
template <class N>
static void reduce_as(char *to, const std::vector<std::vector<char>> &parts, uint64_t count, int op)
{
	typedef typename N::type T;

	for (uint64_t i = 0; i < count; i++) {
		N::store(to, i, N::load(parts[0].data(), i));
		for (size_t r = 1; r < parts.size(); r++)
			N::store(to, i,
				 combined<T>(N::load(to, i), N::load(parts[r].data(), i), op));
		if (op == ncclAvg)
			N::store(to, i, (T)(N::load(to, i) / (T)parts.size()));
	}
}

static void reduce(char *to, const std::vector<std::vector<char>> &parts, const nccl_call &c)
{
	switch (c.type) {
	case ncclInt8:
		return reduce_as<numbers_of<int8_t>>(to, parts, c.count, c.op);
	case ncclUint8:
		return reduce_as<numbers_of<uint8_t>>(to, parts, c.count, c.op);
	case ncclInt32:
		return reduce_as<numbers_of<int32_t>>(to, parts, c.count, c.op);
	case ncclUint32:
		return reduce_as<numbers_of<uint32_t>>(to, parts, c.count, c.op);
	case ncclInt64:
		return reduce_as<numbers_of<int64_t>>(to, parts, c.count, c.op);
	case ncclUint64:
		return reduce_as<numbers_of<uint64_t>>(to, parts, c.count, c.op);
	case ncclFloat16:
		return reduce_as<f16>(to, parts, c.count, c.op);
	case ncclBfloat16:
		return reduce_as<bf16>(to, parts, c.count, c.op);
	case ncclFloat32:
		return reduce_as<numbers_of<float>>(to, parts, c.count, c.op);
	default:
		return reduce_as<numbers_of<double>>(to, parts, c.count, c.op);
	}
}

/* ---- what a call sends and receives ---- */

static bool reduces(const nccl_call &c)
{
	return c.kind == ALL_REDUCE || c.kind == REDUCE || c.kind == REDUCE_SCATTER;
}

static bool sends_to(const ncclComm *comm, const nccl_call &c, int to)
{
	switch (c.kind) {
	case REDUCE:
		return to == c.root;
	case BROADCAST:
		return comm->rank == c.root;
	case SEND_RECV:
		return c.in && to == c.root;
	default:
		return true;
	}
}

static bool receives_from(const ncclComm *comm, const nccl_call &c, int from)
{
	switch (c.kind) {
	case REDUCE:
		return comm->rank == c.root;
	case BROADCAST:
		return from == c.root;
	case SEND_RECV:
		return c.out && from == c.root;
	default:
		return true;
	}
}

static void accessed(const char *data, uint64_t bytes, bool write, const nccl_call &c)
{
	host_check(data, bytes, write, names[c.kind]);
#ifdef CUDA_HOST_TSAN
	if (write)
		__tsan_write_range((void *)data, bytes);
	else
		__tsan_read_range((void *)data, bytes);
#endif
}

static void send_all(ncclComm *comm, const nccl_call &c)
{
	uint64_t bytes = c.count * size_of(c.type);
	wire_message m = { 0, bytes, c.count, c.kind, (int32_t)c.type, c.op, c.root };

	if (c.kind == SEND_RECV)
		m.root = comm->rank;
	for (int i = 0; i < comm->ranks; i++) {
		const char *from = c.in + (c.kind == REDUCE_SCATTER ? i * bytes : 0);

		if (!sends_to(comm, c, i))
			continue;
		accessed(from, bytes, false, c);
		comm->wire->send(i, m, from);
	}
}

/* The ranks have called the same; NCCL would wait for ever, or write elsewhere. */
static void check_message(const ncclComm *comm, const nccl_call &c, const wire_message &m, int from)
{
	int root = c.kind == SEND_RECV ? from : c.root;

	if (m.function != c.kind || m.count != c.count || m.type != (int)c.type || m.op != c.op ||
	    m.root != root)
		host_fatal("nccl: rank %d has called %s of %llu elements, rank %d %s of %llu, or "
			   "with another type, operation or root",
			   comm->rank, names[c.kind], (unsigned long long)c.count, from,
			   names[m.function], (unsigned long long)m.count);
}

static void receive_all(ncclComm *comm, const nccl_call &c)
{
	uint64_t bytes = c.count * size_of(c.type);
	std::vector<std::vector<char>> parts;

	for (int i = 0; i < comm->ranks; i++) {
		char *to = c.out + (c.kind == ALL_GATHER ? i * bytes : 0);

		if (!receives_from(comm, c, i))
			continue;
		std::vector<char> part(bytes);
		check_message(comm, c, comm->wire->receive(i, part.data(), bytes), i);
		if (reduces(c)) {
			parts.push_back(std::move(part));
			continue;
		}
		accessed(to, bytes, true, c);
		memcpy(to, part.data(), bytes);
	}
	if (parts.empty())
		return;
	accessed(c.out, bytes, true, c);
	reduce(c.out, parts, c);
}

/* ---- queues ---- */

typedef std::vector<nccl_call> calls;

static bool can_send(const ncclComm *comm, const calls &all)
{
	for (int i = 0; i < comm->ranks; i++) {
		uint64_t n = 0;

		for (const nccl_call &c : all)
			n += sends_to(comm, c, i);
		if (!comm->wire->has_room(i, n))
			return false;
	}
	return true;
}

static bool can_receive(const ncclComm *comm, const calls &all)
{
	for (int i = 0; i < comm->ranks; i++) {
		uint64_t n = 0;

		for (const nccl_call &c : all)
			n += receives_from(comm, c, i);
		if (comm->wire->arrived(i) < n)
			return false;
	}
	return true;
}

/* Operations of a communicator run one after the other, also in several streams. */
static void queue(ncclComm *comm, const calls &all)
{
	CUstream_st *s = host_stream(all[0].stream, comm->device);
	const unsigned device = 1u << comm->device;

	comm->last = host_submit(
		s, "a send of NCCL", device,
		[=] {
			for (const nccl_call &c : all)
				if (!comm->aborted)
					send_all(comm, c);
		},
		comm->last, [=] { return comm->aborted || (progresses && can_send(comm, all)); });
	comm->last = host_submit(
		s, names[all[0].kind], device,
		[=] {
			for (const nccl_call &c : all)
				if (!comm->aborted)
					receive_all(comm, c);
		},
		comm->last, [=] { return comm->aborted || can_receive(comm, all); });
	comm->queued.push_back(comm->last);
}

static bool is_idle(ncclComm *comm)
{
	auto &q = comm->queued;

	while (!q.empty() && q.front()->done)
		q.erase(q.begin());
	return q.empty();
}

/* A device carries its work out whether or not the host waits for it. Of a process all communicators have one thread. */
static void *progress(void *)
{
	const struct timespec nap = { 0, 300000 };

	for (;;) {
		nanosleep(&nap, nullptr);
		host_call call(nullptr);

		for (ncclComm *comm : comms)
			if (!is_idle(comm))
				host_try(comm->queued.front());
	}
	return nullptr;
}

/* For tests: a device that stands still. */
extern "C" void nccl_host_set_progress(int on)
{
	host_call call(nullptr);

	progresses = on;
}

static void need_progress(void)
{
	static pid_t owner;
	pthread_t thread;
	sigset_t all, before;

	if (owner == getpid())
		return;
	owner = getpid();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, nullptr, progress, nullptr))
		host_fatal("nccl: no thread");
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/* Queues the calls, now or when the state was asked for. */
static ncclResult_t launch(ncclComm *comm, const calls &all)
{
	host_counts.launches++;
	if (comm->blocking) {
		queue(comm, all);
		return ncclSuccess;
	}
	comm->asked = 0;
	comm->deferred = [=] { queue(comm, all); };
	return ncclInProgress;
}

/* ---- communicators ---- */

static ncclComm *comm_of(ncclComm_t comm)
{
	if (!comms.count(comm))
		host_fatal("nccl: %p is no communicator, or was destroyed", (void *)comm);
	return comm;
}

ncclResult_t ncclGetVersion(int *version)
{
	NCCL();
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[] = { "no error",
					     "unhandled cuda error",
					     "unhandled system error",
					     "internal error",
					     "invalid argument",
					     "invalid usage",
					     "remote process exited or there was a network error",
					     "NCCL operation in progress" };

	return (unsigned)result < ncclNumResults ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t)
{
	return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	NCCL();
	return wires::make(id) ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	NCCL();
	if (!comm || ranks < 1 || ranks > WIRE_RANKS || rank < 0 || rank >= ranks || !config ||
	    config->size < sizeof(*config) || config->magic != NCCL_CONFIG_MAGIC)
		return ncclInvalidArgument;
	ncclComm *c = new ncclComm();
	c->wire = wires::join(&id, rank, ranks);
	if (!c->wire) {
		delete c;
		return ncclSystemError;
	}
	c->rank = rank;
	c->ranks = ranks;
	c->device = host_current_device();
	c->blocking = config->blocking != 0;
	comms.insert(c);
	*comm = c;
	need_progress();
	if (!c->blocking)
		return ncclInProgress;
	while (!c->wire->complete())
		host_wait();
	c->joined = true;
	return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t given, ncclResult_t *state)
{
	NCCL();
	ncclComm *comm = comm_of(given);

	comm->joined = comm->joined || comm->wire->complete();
	*state = ncclInProgress;
	if (!comm->joined || (comm->deferred && !comm->asked++))
		return ncclSuccess;
	if (comm->deferred)
		comm->deferred();
	comm->deferred = nullptr;
	if (!comm->finalized || is_idle(comm))
		*state = ncclSuccess;
	return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t given)
{
	NCCL();
	ncclComm *comm = comm_of(given);

	if (comm->finalized || !comm->joined || comm->deferred)
		return ncclInvalidUsage;
	comm->finalized = true;
	while (comm->blocking && !is_idle(comm))
		host_require(comm->last);
	return is_idle(comm) ? ncclSuccess : ncclInProgress;
}

static void destroy(ncclComm *comm)
{
	comms.erase(comm);
	delete comm->wire;
	delete comm;
}

ncclResult_t ncclCommDestroy(ncclComm_t given)
{
	NCCL();
	ncclComm *comm = comm_of(given);

	if (!comm->finalized || !is_idle(comm))
		host_fatal("ncclCommDestroy: the communicator was not finalized");
	destroy(comm);
	return ncclSuccess;
}

/* What is queued ends without data. */
ncclResult_t ncclCommAbort(ncclComm_t given)
{
	NCCL();
	ncclComm *comm = comm_of(given);

	comm->aborted = true;
	comm->deferred = nullptr;
	while (!is_idle(comm))
		host_require(comm->queued.front());
	destroy(comm);
	return ncclSuccess;
}

/* ---- calls ---- */

/* Memory that this rank sends or receives is that of the device, and does not overlap but where the call is in place. */
static void check_memory(const ncclComm *comm, const nccl_call &c)
{
	uint64_t part = c.count * size_of(c.type), ranks = (uint64_t)comm->ranks;
	uint64_t in = part * (c.kind == REDUCE_SCATTER ? ranks : 1),
		 out = part * (c.kind == ALL_GATHER ? ranks : 1);
	const char *place = c.out;

	if (c.in && host_device_of(c.in) != comm->device)
		host_fatal("%s: sends what is no memory of cuda:%d: %p", names[c.kind],
			   comm->device, (const void *)c.in);
	if (c.out && host_device_of(c.out) != comm->device)
		host_fatal("%s: receives to what is no memory of cuda:%d: %p", names[c.kind],
			   comm->device, (void *)c.out);
	if (c.kind == ALL_GATHER)
		place += (uint64_t)comm->rank * part;
	else if (c.kind == REDUCE_SCATTER)
		place -= (uint64_t)comm->rank * part;
	if (c.in && c.out && c.in != place && c.in < c.out + out && c.out < c.in + in)
		host_fatal("%s: the memory overlaps, but is not in place", names[c.kind]);
}

/* All functions that queue an operation. */
static ncclResult_t add(ncclComm_t given, const nccl_call &c)
{
	ncclComm *comm = comm_of(given);
	bool is_root = comm->rank == c.root;

	if (!comm->joined || comm->finalized || comm->deferred)
		host_fatal("%s: the communicator is in progress, or finalized", names[c.kind]);
	if (c.type < 0 || c.type > ncclBfloat16 || c.op < 0 || c.op >= ncclNumOps || c.root < 0 ||
	    c.root >= comm->ranks)
		return ncclInvalidArgument;
	if ((!c.in && c.kind != SEND_RECV && (c.kind != BROADCAST || is_root)) ||
	    (!c.out && c.kind != SEND_RECV && (c.kind != REDUCE || is_root)))
		return ncclInvalidArgument;
	if (host_stream(c.stream, comm->device)->device != comm->device)
		return ncclInvalidArgument;
	check_memory(comm, c);
	if (depth) {
		grouped.emplace_back(comm, c);
		return ncclSuccess;
	}
	return c.count ? launch(comm, { c }) : ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
			   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	NCCL();
	return add(comm, { ALL_REDUCE, (const char *)in, (char *)out, count, type, op, 0, stream });
}

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type,
			ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	NCCL();
	return add(comm, { REDUCE, (const char *)in, (char *)out, count, type, op, root, stream });
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
			   ncclComm_t comm, cudaStream_t stream)
{
	NCCL();
	return add(comm,
		   { BROADCAST, (const char *)in, (char *)out, count, type, 0, root, stream });
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
			       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	NCCL();
	return add(comm,
		   { REDUCE_SCATTER, (const char *)in, (char *)out, count, type, op, 0, stream });
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
			   ncclComm_t comm, cudaStream_t stream)
{
	NCCL();
	return add(comm, { ALL_GATHER, (const char *)in, (char *)out, count, type, 0, 0, stream });
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      cudaStream_t stream)
{
	NCCL();
	if (!in)
		return ncclInvalidArgument;
	return add(comm, { SEND_RECV, (const char *)in, nullptr, count, type, 0, peer, stream });
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      cudaStream_t stream)
{
	NCCL();
	if (!out)
		return ncclInvalidArgument;
	return add(comm, { SEND_RECV, nullptr, (char *)out, count, type, 0, peer, stream });
}

ncclResult_t ncclGroupStart(void)
{
	NCCL();
	depth++;
	return ncclSuccess;
}

/* Calls of one communicator in one group are one operation; here all must be in one stream. */
ncclResult_t ncclGroupEnd(void)
{
	NCCL();
	std::vector<std::pair<ncclComm *, nccl_call>> all;
	calls of_one;

	if (!depth)
		return ncclInvalidUsage;
	if (--depth)
		return ncclSuccess;
	all.swap(grouped);
	for (auto &c : all) {
		if (c.first != all[0].first || c.second.stream != all[0].second.stream)
			host_fatal("ncclGroupEnd: calls of several communicators or streams");
		if (c.second.count)
			of_one.push_back(c.second);
	}
	return of_one.empty() ? ncclSuccess : launch(all[0].first, of_one);
}
