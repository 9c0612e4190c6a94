// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Distances, losses of pairs and steps of an LSTM. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_loss.h"

/* ---- distances ---- */

static int distances(const char *op, const struct cuda_distance *d, const tensor *out,
		     const tensor *x, const tensor *y, const tensor *grad, const tensor *distance)
{
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, op, out->device.index, out, x, y, grad, distance);
	if (err)
		return err;
	err = grad ? cuda_launch_distance_backward(d, x->dtype, c.stream) :
		     cuda_launch_distance(d, x->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, x->dtype));
}

/* The pairs of rows of x and y, or of x alone. */
static struct cuda_distance pairs_of(tensor *out, const tensor *x, const tensor *y, double p)
{
	const int d = x->ndim - 2;

	return (struct cuda_distance){ .x = x->data,
				       .y = y ? y->data : x->data,
				       .out = out->data,
				       .batch = d ? x->sizes[0] : 1,
				       .n = x->sizes[d],
				       .m = y ? y->sizes[d] : x->sizes[d],
				       .length = x->sizes[d + 1],
				       .p = p,
				       .triangle = !y };
}

int cuda_cdist(tensor *out, const tensor *x, const tensor *y, double p)
{
	const struct cuda_distance d = pairs_of(out, x, y, p);

	return distances("cdist", &d, out, x, y, NULL, NULL);
}

int cuda_pdist(tensor *out, const tensor *x, double p)
{
	const struct cuda_distance d = pairs_of(out, x, NULL, p);

	return distances("pdist", &d, out, x, NULL, NULL, NULL);
}

int cuda_cdist_backward(tensor *dx, const tensor *grad, const tensor *x, const tensor *y, double p,
			const tensor *distance)
{
	struct cuda_distance d = pairs_of(dx, x, y, p);

	d.grad = grad->data;
	d.distance = distance->data;
	return distances("cdist_backward", &d, dx, x, y, grad, distance);
}

int cuda_pdist_backward(tensor *dx, const tensor *grad, const tensor *x, double p,
			const tensor *distance)
{
	struct cuda_distance d = pairs_of(dx, x, NULL, p);

	d.grad = grad->data;
	d.distance = distance->data;
	return distances("pdist_backward", &d, dx, x, NULL, grad, distance);
}

/* ---- losses of pairs ---- */

static struct cuda_pair_loss loss_of(const tensor *self, const tensor *target,
				     const struct pair_loss *loss)
{
	return (struct cuda_pair_loss){ .self = self->data,
					.target = target->data,
					.n = self->numel,
					.edge = loss->edge,
					.square = loss->square,
					.slope = loss->slope };
}

int cuda_pair_loss(tensor *out, const tensor *self, const tensor *target,
		   const struct pair_loss *loss, enum loss_reduction reduction)
{
	struct cuda_pair_loss l = loss_of(self, target, loss);
	int64_t blocks = (l.n + 4095) / 4096;
	void *partial = NULL;
	struct cuda_call c;
	int err = cuda_begin_with(&c, "pair_loss", out->device.index, out, self, target);

	if (err)
		return err;
	blocks = blocks < 1 ? 1 : blocks < CUDA_PAIR_BLOCKS ? blocks : CUDA_PAIR_BLOCKS;
	l.each = reduction == LOSS_NONE;
	l.mean = reduction == LOSS_MEAN;
	if (!l.each)
		err = cuda_scratch(&c, (size_t)blocks * sizeof(double), &partial);
	if (!err && (l.n || !l.each))
		err = cuda_launched(&c,
				    cuda_launch_pair_loss(&l, out->data, partial, (int)blocks,
							  self->dtype, c.stream),
				    self->dtype);
	cuda_scratch_free(&c, partial);
	return cuda_end(&c, err);
}

int cuda_pair_loss_backward(tensor *out, const tensor *grad, const tensor *self,
			    const tensor *target, const struct pair_loss *loss, double factor)
{
	struct cuda_pair_loss l = loss_of(self, target, loss);
	struct cuda_call c;
	int err;

	if (!l.n)
		return 0;
	err = cuda_begin_with(&c, "pair_loss_backward", out->device.index, out, grad, self, target);
	if (err)
		return err;
	l.grad = grad->data;
	l.factor = factor;
	l.each = grad->numel != 1;
	err = cuda_launch_pair_loss_backward(&l, out->data, self->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, self->dtype));
}

/* ---- steps of an LSTM ---- */

static int64_t row_of(const tensor *t)
{
	return t ? t->strides[0] : 0;
}

int cuda_lstm_step(tensor *gates, tensor *state, tensor *cells, tensor *output)
{
	const struct cuda_lstm s = { .rows = state->sizes[0],
				     .size = state->sizes[1],
				     .gates = gates->data,
				     .gates_row = row_of(gates),
				     .cells = cells->data,
				     .cells_row = row_of(cells),
				     .output = output->data,
				     .output_row = row_of(output),
				     .state = state->data };
	struct cuda_call c;
	int err;

	if (!state->numel)
		return 0;
	err = cuda_begin_with(&c, "lstm_step", gates->device.index, gates, state, cells, output);
	if (err)
		return err;
	err = cuda_launch_lstm_step(&s, gates->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, gates->dtype));
}

int cuda_lstm_step_backward(tensor *grad_gates, tensor *grad_state,
			    const struct lstm_step_backward *b)
{
	const struct cuda_lstm s = { .rows = grad_state->sizes[0],
				     .size = grad_state->sizes[1],
				     .gates = b->gates->data,
				     .gates_row = row_of(b->gates),
				     .cells = b->cells->data,
				     .cells_row = row_of(b->cells),
				     .grad_gates = grad_gates->data,
				     .grad_gates_row = row_of(grad_gates),
				     .before = b->before->data,
				     .before_row = row_of(b->before),
				     .grad_output = cuda_data(b->grad_output),
				     .grad_output_row = row_of(b->grad_output),
				     .grad_cells = cuda_data(b->grad_cells),
				     .grad_cells_row = row_of(b->grad_cells),
				     .grad_hidden = b->grad_hidden->data,
				     .grad_hidden_row = row_of(b->grad_hidden),
				     .state = grad_state->data };
	struct cuda_call c;
	int err;

	if (!grad_state->numel)
		return 0;
	err = cuda_begin_with(&c, "lstm_step_backward", grad_gates->device.index, grad_gates,
			      grad_state, b->gates, b->cells, b->before, b->grad_output,
			      b->grad_cells, b->grad_hidden);
	if (err)
		return err;
	err = cuda_launch_lstm_step_backward(&s, grad_gates->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, grad_gates->dtype));
}
