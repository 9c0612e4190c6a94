// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* multinomial: checks of the weights, for which the host waits, and the draws. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_search.h"

static int refuse(uint64_t bad, int64_t k)
{
	switch (bad % 4) {
	case CUDA_BAD_WEIGHT:
		return tensor_fail(EINVAL, "multinomial: weights must be finite and not negative");
	case CUDA_BAD_SUM:
		return tensor_fail(EINVAL,
				   "multinomial: the weights of a row must have a finite sum "
				   "above 0");
	default:
		return tensor_fail(EINVAL,
				   "multinomial: a row has fewer weights above 0 than the "
				   "%lld that are to be drawn without replacement",
				   (long long)k);
	}
}

/* The positions of the greatest keys. */
static int draw_greatest(const struct cuda_call *c, const struct cuda_draw *d, tensor *out,
			 const tensor *weights)
{
	tensor keys = *weights, greatest = *out;
	void *data;
	int err = cuda_check(c->op, cuda_launch_draw_keys(d, c->stream));

	if (!err)
		err = cuda_scratch(c, (size_t)out->numel * sizeof(double), &data);
	if (err)
		return err;
	keys.data = d->work;
	greatest.data = data;
	greatest.dtype = TENSOR_F64;
	err = cuda_topk(&greatest, out, &keys, 1, d->k, true, true);
	cuda_scratch_free(c, data);
	return err;
}

static int draw(const struct cuda_call *c, struct cuda_draw *d, tensor *out, const tensor *weights,
		bool replacement)
{
	struct cuda_check k;
	uint64_t bad = UINT64_MAX;
	int err = cuda_check_open(c, &k);

	if (err)
		return err;
	d->bad = k.flag;
	err = cuda_check(c->op, cuda_launch_draw_check(d, replacement, c->stream));
	if (!err)
		err = cuda_check_send(c, &k);
	if (!err)
		err = replacement ? cuda_check(c->op, cuda_launch_draw(d, out->data, c->stream)) :
				    draw_greatest(c, d, out, weights);
	if (!err)
		err = cuda_check_wait(c, &k, &bad);
	cuda_check_close(c, &k);
	return err || bad == UINT64_MAX ? err : refuse(bad, d->k);
}

int cuda_multinomial(tensor *out, const tensor *weights, tensor *work, bool replacement,
		     const struct random_params *params)
{
	struct cuda_draw d = { .seed = params->at.seed,
			       .offset = params->at.offset,
			       .rows = weights->sizes[0],
			       .n = weights->sizes[1],
			       .k = out->sizes[1],
			       .weights = weights->data,
			       .work = work->data };
	struct cuda_call c;
	void *keys = NULL;
	int err;

	if (!d.rows)
		return 0;
	err = cuda_begin_with(&c, "multinomial", out->device.index, out, weights, work);
	if (err)
		return err;
	err = cuda_random_at(&c, &d.seed, &d.at);
	/* work has an element for each draw then: a key for each weight needs more. */
	if (!err && !replacement) {
		err = cuda_scratch(&c, (size_t)(d.rows * d.n) * sizeof(double), &keys);
		d.work = keys;
	}
	if (!err)
		err = draw(&c, &d, out, weights, replacement);
	cuda_scratch_free(&c, keys);
	return cuda_end(&c, err);
}
