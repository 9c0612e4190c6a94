// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A step of the fused optimizers: a launch for some items of one dtype. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launch_nn.h"

#include <math.h>

_Static_assert((int)CUDA_ADAM == OPTIMIZER_ADAM && (int)CUDA_SGD == OPTIMIZER_SGD &&
		       (int)CUDA_ADAGRAD == OPTIMIZER_ADAGRAD &&
		       (int)CUDA_RMSPROP == OPTIMIZER_RMSPROP &&
		       CUDA_STEP_STATES == OPTIMIZER_STATES,
	       "the methods of the launcher are those of the kernel's type");
_Static_assert(offsetof(struct cuda_step_item, root) ==
		       offsetof(struct cuda_step_item, size) + sizeof(double),
	       "size and root are an array");

/* Two numbers, struct cuda_step_item. */
static void rates_of(const struct optimizer_step *s, double step, double *rates)
{
	if (s->method == OPTIMIZER_ADAM) {
		rates[0] = s->lr / (1 - pow(s->beta1, step));
		rates[1] = 1 / sqrt(1 - pow(s->beta2, step));
	} else {
		rates[0] = s->lr / (1 + (step - 1) * s->lr_decay);
		rates[1] = 1;
	}
}

static void set_item(struct cuda_step_item *to, const struct optimizer_step *s,
		     const struct optimizer_item *from)
{
	to->n = from->n;
	to->param = from->param;
	to->grad = from->grad;
	for (int k = 0; k < OPTIMIZER_STATES; k++)
		to->state[k] = from->state[k];
	rates_of(s, from->step, &to->size);
}

static void use_item(const struct cuda_call *c, const struct optimizer_item *item)
{
	for (size_t k = 0; k < ARRAY_SIZE(item->tensors); k++)
		if (item->tensors[k])
			cuda_use(c, item->tensors[k]);
}

/* A graph cannot make the first step: it would initialise the states in each replay. */
static int check_capture(const struct cuda_call *c, const struct optimizer_step *s,
			 const struct optimizer_item *items, int64_t nitems)
{
	if (!cuda_capturing(c))
		return 0;
	for (int64_t i = 0; i < nitems; i++)
		for (int k = 0; k < OPTIMIZER_STATES; k++)
			if (items[i].tensors[2 + k] &&
			    ((s->method == OPTIMIZER_SGD && s->first) ||
			     cuda_captured_memory(c, items[i].tensors[2 + k]->storage->data)))
				return cuda_refuse(c, "initialises states (step once before the "
						      "capture)");
	return 0;
}

static int launch_items(const struct cuda_call *c, const struct optimizer_step *s,
			struct cuda_step *l, const struct optimizer_item *items)
{
	int err = 0;

	l->rates = NULL;
	if (s->method == OPTIMIZER_ADAM || s->method == OPTIMIZER_ADAGRAD)
		err = cuda_capture_rates(c, s, items, l->n, rates_of, &l->rates);
	return err ? err :
		     cuda_launched(c, cuda_launch_step(l, items[0].dtype, c->stream),
				   items[0].dtype);
}

static int step(const struct cuda_call *c, const struct optimizer_step *s,
		const struct optimizer_item *items, int64_t nitems)
{
	struct cuda_step l = { .method = (enum cuda_step_method)s->method,
			       .lr = s->lr,
			       .weight_decay = s->weight_decay,
			       .eps = s->eps,
			       .scale = s->scale,
			       .beta1 = s->beta1,
			       .beta2 = s->beta2,
			       .momentum = s->momentum,
			       .dampening = s->dampening,
			       .alpha = s->alpha,
			       .maximize = s->maximize,
			       .nesterov = s->nesterov,
			       .first = s->first,
			       .decoupled = s->decoupled };
	int err = check_capture(c, s, items, nitems);

	for (int64_t i = 0; i < nitems && !err; i++) {
		use_item(c, &items[i]);
		set_item(&l.item[l.n++], s, &items[i]);
		if (i + 1 < nitems && l.n < CUDA_STEP_ITEMS && items[i + 1].dtype == items[i].dtype)
			continue;
		err = launch_items(c, s, &l, &items[i + 1 - l.n]);
		l.n = 0;
	}
	return err;
}

int cuda_optimizer(const struct optimizer_step *s, const struct optimizer_item *items,
		   int64_t nitems)
{
	struct cuda_call c;
	int err = cuda_begin(&c, "optimizer", s->device.index);

	return err ? err : cuda_end(&c, step(&c, s, items, nitems));
}
