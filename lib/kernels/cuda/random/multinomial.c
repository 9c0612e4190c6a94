// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* multinomial: checks of the weights, and the draws, which are within the row for any weights. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_search.h"

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
	int err = cuda_check_open(c, &k, false);

	if (err)
		return err;
	d->bad = k.report;
	err = cuda_check(c->op, cuda_launch_draw_check(d, replacement, c->stream));
	if (!err)
		err = replacement ? cuda_check(c->op, cuda_launch_draw(d, out->data, c->stream)) :
				    draw_greatest(c, d, out, weights);
	return cuda_check_end(c, &k, err);
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
