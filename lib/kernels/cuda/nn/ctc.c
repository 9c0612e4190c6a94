// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* CTC: copies the labels and lengths, which the operator has checked on the host and then frees, to the
 * device, for which the host waits. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_loss.h"

/* Copies n numbers to `to` and moves it behind them. */
static int push(const struct cuda_call *c, int64_t **to, const int64_t **at, const int64_t *from,
		int64_t n)
{
	*at = *to;
	*to += n;
	return n ? cuda_check(c->op, cudaMemcpyAsync(*to - n, from, (size_t)n * sizeof(**to),
						     cudaMemcpyHostToDevice, c->stream)) :
		   0;
}

static int run_on(const struct cuda_call *call, const struct ctc *c, int64_t labels, int64_t *data)
{
	struct cuda_ctc d = { .steps = c->steps,
			      .batch = c->batch,
			      .classes = c->classes,
			      .blank = c->blank,
			      .width = c->width,
			      .log_probs = c->log_probs,
			      .grad = c->grad,
			      .alpha = c->alpha,
			      .loss = c->loss,
			      .out = c->out,
			      .beta = c->beta,
			      .zero_infinity = c->zero_infinity };
	int err = push(call, &data, &d.labels, c->labels, labels);

	if (!err)
		err = push(call, &data, &d.first, c->first, c->batch);
	if (!err)
		err = push(call, &data, &d.input_lengths, c->input_lengths, c->batch);
	if (!err)
		err = push(call, &data, &d.target_lengths, c->target_lengths, c->batch);
	if (!err)
		err = cuda_wait(call);
	if (err)
		return err;
	err = c->out ? cuda_launch_ctc_backward(&d, (int)c->dtype, call->stream) :
		       cuda_launch_ctc(&d, (int)c->dtype, call->stream);
	return cuda_launched(call, err, c->dtype);
}

int cuda_ctc_loss(const struct ctc *c)
{
	int64_t labels = 0;
	struct cuda_call call;
	void *data;
	int err;

	if (c->batch > INT32_MAX)
		return tensor_fail(EOPNOTSUPP, "ctc_loss: cuda: %lld sequences",
				   (long long)c->batch);
	for (int64_t i = 0; i < c->batch; i++) {
		const int64_t end = c->first[i] + c->target_lengths[i];

		labels = end > labels ? end : labels;
	}
	/* The tensors were made or copied by the operator in this stream. */
	err = cuda_begin(&call, "ctc_loss", c->device.index);
	if (err)
		return err;
	err = cuda_scratch(&call, (size_t)(labels + 3 * c->batch) * sizeof(int64_t), &data);
	if (!err) {
		err = run_on(&call, c, labels, data);
		cuda_scratch_free(&call, data);
	}
	return cuda_end(&call, err);
}
