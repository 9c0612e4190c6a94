// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The logs of the devices (report.h): reading them, and the errors of what they have. An entry that was read is kept until a call
 * reports it. Nothing here waits for a device.
 */
#include "kernels/cuda/runtime/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Registered with CUDA at the first check on the device. */
static struct {
	_Alignas(4096) struct cuda_log log;
} logs[CUDA_DEVICES];

/* What was read from the log and is not reported yet. */
static struct pending {
	struct cuda_log
		*_Atomic mapped; /* the log in the device's address space; NULL: no check so far */
	struct log_refused entry[CUDA_LOG_ENTRIES];
	int n;
	uint64_t more; /* beyond those */
	uint64_t lost; /* of the log, counted in `more` */
} devices[CUDA_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_logs(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_logs(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void log_init(void)
{
	pthread_atfork(lock_logs, unlock_logs, unlock_logs);
}

/* ---- texts ---- */

int log_describe(const struct cuda_refused *r, char *to, size_t size)
{
	const int64_t value = r->value, limit = r->limit, position = r->position;

	switch ((enum cuda_refusal)r->kind) {
	case CUDA_BAD_INDEX:
		snprintf(to, size,
			 "%s: index %" PRId64 " is out of range for a dimension of size %" PRId64,
			 r->op, value, limit);
		return ERANGE;
	case CUDA_BAD_ROW:
		snprintf(to, size, "%s: index %" PRId64 " is out of range for %" PRId64 " rows",
			 r->op, value, limit);
		return ERANGE;
	case CUDA_BAD_OFFSET:
		snprintf(to, size,
			 "%s: offsets must ascend from 0 to at most %" PRId64 ", got %" PRId64
			 " at %" PRId64,
			 r->op, limit, value, position - limit);
		return EINVAL;
	case CUDA_BAD_BAG:
		snprintf(to, size,
			 "%s: index %" PRId64 " belongs to bag %" PRId64 ", there are %" PRId64,
			 r->op, position, value, limit);
		return EINVAL;
	case CUDA_BAD_CLASS:
		snprintf(to, size,
			 "%s: target of row %" PRId64 " is class %" PRId64
			 ", expected 0 to %" PRId64,
			 r->op, position, value, limit - 1);
		return EINVAL;
	case CUDA_BAD_PROBABILITY:
		snprintf(to, size, "%s: probabilities must be within [0, 1]", r->op);
		return EINVAL;
	case CUDA_BAD_WEIGHT:
		snprintf(to, size, "%s: weights must be finite and not negative", r->op);
		return EINVAL;
	case CUDA_BAD_SUM:
		snprintf(to, size, "%s: the weights of a row must have a finite sum above 0",
			 r->op);
		return EINVAL;
	case CUDA_TOO_FEW:
		snprintf(to, size,
			 "%s: a row has fewer weights above 0 than the %" PRId64
			 " that are to be drawn without replacement",
			 r->op, limit);
		return EINVAL;
	case CUDA_BAD_DIVISOR:
		break;
	}
	snprintf(to, size, "%s: integer division by zero", r->op);
	return EDOM;
}

/* ---- entries ---- */

/* A kernel of another stream may be writing a lower position. */
static void read_entry(const struct cuda_log_entry *e, struct log_refused *to)
{
	unsigned long long before;

	do {
		before = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);
		to->check = __atomic_load_n(&e->check, __ATOMIC_RELAXED);
		to->refused.op = __atomic_load_n(&e->refused.op, __ATOMIC_RELAXED);
		to->refused.kind = __atomic_load_n(&e->refused.kind, __ATOMIC_RELAXED);
		to->refused.position = __atomic_load_n(&e->refused.position, __ATOMIC_RELAXED);
		to->refused.value = __atomic_load_n(&e->refused.value, __ATOMIC_RELAXED);
		to->refused.limit = __atomic_load_n(&e->refused.limit, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (before % 2 || before != __atomic_load_n(&e->version, __ATOMIC_RELAXED));
}

static bool has_news(const struct pending *p, const struct cuda_log *l)
{
	return __atomic_load_n(&l->head, __ATOMIC_ACQUIRE) !=
		       __atomic_load_n(&l->tail, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&l->lost, __ATOMIC_RELAXED) !=
		       __atomic_load_n(&p->lost, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&p->n, __ATOMIC_RELAXED);
}

static void set_pending(struct pending *p, int n)
{
	__atomic_store_n(&p->n, n, __ATOMIC_RELAXED);
}

/* Late errors beyond the entries are counted. An error for which a call waits takes the place of the last late one. */
static void keep_locked(struct pending *p, const struct log_refused *r)
{
	int at = p->n;

	if (at < CUDA_LOG_ENTRIES) {
		p->entry[at] = *r;
		set_pending(p, at + 1);
		return;
	}
	while (r->check & LOG_WAITS && --at > 0 && p->entry[at].check & LOG_WAITS)
		;
	if (r->check & LOG_WAITS)
		p->entry[at] = *r;
	p->more++;
}

/* Empties the log. */
static void collect_locked(int device)
{
	struct pending *p = &devices[device];
	struct cuda_log *l = &logs[device].log;
	const unsigned long long head = __atomic_load_n(&l->head, __ATOMIC_ACQUIRE);
	const unsigned long long lost = __atomic_load_n(&l->lost, __ATOMIC_RELAXED);
	struct log_refused r;

	for (unsigned long long i = l->tail; i < head; i++) {
		read_entry(&l->entry[i % CUDA_LOG_ENTRIES], &r);
		keep_locked(p, &r);
	}
	p->more += lost - p->lost;
	__atomic_store_n(&p->lost, lost, __ATOMIC_RELAXED);
	__atomic_store_n(&l->tail, head, __ATOMIC_RELEASE);
}

/* Takes all late checks; stores the first, and returns their number. */
static uint64_t take_locked(int device, struct log_refused *first)
{
	struct pending *p = &devices[device];
	uint64_t taken = 0;
	int kept = 0;

	collect_locked(device);
	for (int i = 0; i < p->n; i++) {
		if (p->entry[i].check & LOG_WAITS)
			p->entry[kept++] = p->entry[i];
		else if (!taken++)
			*first = p->entry[i];
	}
	set_pending(p, kept);
	if (taken) {
		taken += p->more;
		p->more = 0;
	}
	return taken;
}

uint64_t log_take(int device, struct log_refused *first)
{
	uint64_t taken;

	if (likely(!log_mapped(device) || !has_news(&devices[device], &logs[device].log)))
		return 0;
	lock_logs();
	taken = take_locked(device, first);
	unlock_logs();
	return taken;
}

bool log_take_own(int device, unsigned long long check, struct log_refused *found)
{
	struct pending *p = &devices[device];
	bool is_found = false;

	lock_logs();
	collect_locked(device);
	for (int i = 0; i < p->n && !is_found; i++) {
		is_found = p->entry[i].check == check;
		if (!is_found)
			continue;
		*found = p->entry[i];
		memmove(&p->entry[i], &p->entry[i + 1], (size_t)(p->n - i - 1) * sizeof(*p->entry));
		set_pending(p, p->n - 1);
	}
	unlock_logs();
	return is_found;
}

struct cuda_log *log_mapped(int device)
{
	return atomic_load_explicit(&devices[device].mapped, memory_order_acquire);
}

int log_map(const char *op, int device)
{
	const enum cudaStreamCaptureMode before = cuda_relax();
	struct cuda_log *l = &logs[device].log, *mapped = NULL;
	int err = 0;

	lock_logs();
	if (!log_mapped(device)) {
		err = cuda_check(op, cudaHostRegister(l, sizeof(logs[device]),
						      cudaHostRegisterPortable |
							      cudaHostRegisterMapped));
		if (!err) {
			err = cuda_check(op, cudaHostGetDevicePointer((void **)&mapped, l, 0));
			if (err)
				cudaHostUnregister(l);
		}
		atomic_store(&devices[device].mapped, err ? NULL : mapped);
	}
	unlock_logs();
	cuda_unrelax(before);
	return err;
}

int cuda_checks_report(const char *op, int device)
{
	struct log_refused first;
	char text[TENSOR_ERROR_TEXT - 120], rest[40] = "";
	const uint64_t taken = log_take(device, &first);
	int code;

	if (likely(!taken))
		return 0;
	code = log_describe(&first.refused, text, sizeof(text));
	if (taken > 1)
		snprintf(rest, sizeof(rest), ", and %" PRIu64 " more", taken - 1);
	return tensor_fail(code,
			   "%s (reported late, by %s%s; TENSOR_CUDA_CHECKS=wait reports it in the "
			   "call itself)",
			   text, op, rest);
}
