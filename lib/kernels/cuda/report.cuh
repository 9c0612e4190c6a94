/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* What a kernel calls for a value that it refuses (report.h). */
#ifndef TENSOR_CUDA_REPORT_CUH
#define TENSOR_CUDA_REPORT_CUH

#include "kernels/cuda/device.cuh"

/* Accesses of the log and their order; writers hold its lock. */
struct report_log {
	/* Whether the check has an entry with a position as low, or is counted as lost. Needs no lock. */
	static __device__ inline bool has(const volatile cuda_log *l, unsigned long long check,
					  int64_t position)
	{
		const unsigned long long n = l->head;
		const volatile cuda_log_entry &e = l->entry[(n - 1) % CUDA_LOG_ENTRIES];

		return l->last_lost == check ||
		       (n && e.check == check && e.refused.position <= position);
	}

	static __device__ inline void write(volatile cuda_log_entry *e, unsigned long long check,
					    const cuda_refused &r)
	{
		e->version = e->version + 1;
		__threadfence_system();
		e->check = check;
		e->refused.op = r.op;
		e->refused.kind = r.kind;
		e->refused.position = r.position;
		e->refused.value = r.value;
		e->refused.limit = r.limit;
		__threadfence_system();
		e->version = e->version + 1;
	}

	/* A new entry, or the check's with this position if that is lower. */
	static __device__ inline void add(volatile cuda_log *l, unsigned long long check,
					  const cuda_refused &r)
	{
		const unsigned long long n = l->head;
		const unsigned long long room =
			CUDA_LOG_ENTRIES - (check & LOG_WAITS ? 0 : CUDA_LOG_RESERVED);

		for (unsigned long long i = n > CUDA_LOG_ENTRIES ? n - CUDA_LOG_ENTRIES : 0; i < n;
		     i++) {
			volatile cuda_log_entry *e = &l->entry[i % CUDA_LOG_ENTRIES];

			if (e->check != check)
				continue;
			if (r.position < e->refused.position)
				write(e, check, r);
			return;
		}
		if (n - l->tail >= room) {
			l->lost = l->lost + (l->last_lost != check);
			l->last_lost = check;
			return;
		}
		write(&l->entry[n % CUDA_LOG_ENTRIES], check, r);
		__threadfence_system();
		l->head = n + 1;
	}

	/* A function of its own: what is called for refused values only needs no registers of the kernel. */
	static __device__ COLD_FUNCTION void report(cuda_log *l, unsigned long long check,
						    cuda_refused r)
	{
		bool added = false;

		while (!added && !has(l, check, r.position)) {
			if (atomicCAS(&l->lock, 0u, 1u))
				continue;
			__threadfence_system();
			add(l, check, r);
			__threadfence_system();
			atomicExch(&l->lock, 0u);
			added = true;
		}
	}
};

static __device__ inline void report_value(const cuda_report &to, cuda_refusal kind,
					   uint64_t position, int64_t value, int64_t limit)
{
	if (to.flag)
		atomicMin(to.flag, (unsigned long long)position);
	if (to.log)
		report_log::report(to.log, to.check,
				   { to.op, kind, (int64_t)position, value, limit });
}

#endif
