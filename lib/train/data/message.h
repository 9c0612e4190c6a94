/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Messages between a loader and its workers, packets on a unix socket. A worker sends a new buffer as
 * a tensor (channel_send_once()) before the result that names it first.
 */
#ifndef TENSOR_LOADER_MESSAGE_H
#define TENSOR_LOADER_MESSAGE_H

#include <tensor/data.h>
#include <tensor/tensor.h>

#define RESULT_MAGIC 0x544c5352u /* not WIRE_MAGIC */

/* A buffer that the worker may use again or, with FREE_DROP, must free. */
#define FREE_DROP   0x80000000u
#define FREES_MAX   64
#define BUFFERS_MAX 65536u

/* To a worker: a batch. */
struct loader_task {
	uint32_t run;
	uint32_t nfrees;
	uint64_t seed;
	int64_t batch, epoch, position, count;
	uint32_t frees[FREES_MAX];
};

/* One tensor of a batch, at the start of a buffer. */
struct loader_output {
	uint32_t buffer; /* number among the buffers of the worker */
	uint8_t fresh;	 /* it was sent before this message */
	uint8_t dtype, ndim, reserved;
	int64_t sizes[TENSOR_MAX_DIMS];
};

/* From a worker: the batch, or the error. */
struct loader_result {
	uint32_t magic;
	uint32_t run;
	int64_t batch;
	int32_t code; /* errno; 0: outputs are valid */
	uint32_t noutputs;
	uint32_t gone; /* a buffer that the worker has freed; UINT32_MAX: none */
	uint32_t reserved;
	int64_t sample;
	char text[TENSOR_ERROR_TEXT];
	struct loader_output outputs[TENSOR_LOADER_OUTPUTS]; /* the last member: sent in part */
};

#endif
