// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Packing of the weights of quantized products. */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/abi/quantized.h"
#include "kernels/cpu/quantized/pack_s8.h"

struct pack_job {
	struct packing p;
	int64_t channels;
	const int8_t *w; /* [groups * n, channels, taps] */
	int8_t *to;
	int32_t *sums;
};

/* Output channel j of a panel: byte b of unit u of tap t. */
static void pack_column(const struct pack_job *job, int8_t *panel, const int8_t *w, int64_t j)
{
	const struct packing *p = &job->p;

	for (int64_t t = 0; t < p->taps; t++)
		for (int64_t c = 0; c < job->channels; c++)
			panel[(t * p->units + c / 4) * 4 * p->width + 4 * j + c % 4] =
				w[c * p->taps + t];
}

/* Channel j of a panel of a depthwise product. */
static void pack_channel(const struct pack_job *job, int8_t *panel, const int8_t *w, int64_t j)
{
	int64_t lane = j / 16, q = j % 16 / 4, i = j % 4;

	for (int64_t t = 0; t < job->p.taps; t++)
		panel[(t / 4 * 4 + q) * DOT_BYTES + 16 * lane + 4 * i + t % 4] = w[t];
}

static void pack_panels(int64_t begin, int64_t end, void *ctx)
{
	const struct pack_job *job = ctx;
	const struct packing *p = &job->p;
	int64_t width = p->width, size = job->channels * p->taps;

	for (int64_t i = begin; i < end; i++) {
		int64_t first = i % p->panels * width,
			n = p->n - first < width ? p->n - first : width;
		int64_t channel = i / p->panels * p->n + first;
		int8_t *panel = job->to + i * p->bytes;

		memset(panel, 0, p->bytes);
		for (int64_t j = 0; j < n; j++) {
			const int8_t *w = job->w + (channel + j) * size;
			uint32_t sum = 0;

			for (int64_t k = 0; k < size; k++)
				sum += (uint32_t)w[k];
			job->sums[channel + j] = (int32_t)sum;
			(p->depthwise ? pack_channel : pack_column)(job, panel, w, j);
		}
	}
}

static tensor *cpu_pack_s8(const int8_t *w, int64_t groups, int64_t n, int64_t channels,
			   int64_t taps)
{
	struct pack_job job = { .p = packing_of(groups, n, channels, taps),
				.channels = channels,
				.w = w };
	int64_t size = job.p.start + job.p.groups * job.p.panels * job.p.bytes;
	tensor *t = tensor_new(TENSOR_DEVICE_CPU, TENSOR_I8, &size, 1);

	if (!t)
		return NULL;
	job.sums = t->data;
	job.to = (int8_t *)t->data + job.p.start;
	parallel_for(0, job.p.groups * job.p.panels,
		     job.p.bytes < ITER_GRAIN ? ITER_GRAIN / (job.p.bytes + 1) + 1 : 1, pack_panels,
		     &job);
	return t;
}

CPU_KERNELS(KERNEL(pack_s8))
