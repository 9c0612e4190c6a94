// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "common.h"

#include <unistd.h>

bool training_begin(struct training *t, int argc, char **argv, int64_t steps)
{
	tensor *step;

	*t = (struct training){ .last = argc > 1 ? atoll(argv[1]) : steps,
				.file = argc > 2 ? argv[2] : NULL,
				.every = argc > 4 ? atoll(argv[4]) : 0 };
	if (!ranks_begin())
		return tensor_perror(argv[0]), false;
	t->options.dtype = argc > 3 && !strcmp(argv[3], "f64") ? TENSOR_F64 : TENSOR_F32;
	tensor_manual_seed(1);
	t->model = tensor_module_new(t->options);
	t->loaded = t->file && access(t->file, R_OK) == 0;
	if (t->loaded && tensor_module_load(t->model, t->file, 0) < 0)
		return tensor_perror(argv[0]), false;
	t->progress = tensor_progress_new(&(struct tensor_progress_options){
		.steps = t->last, .quiet = !isatty(2) || ranks_rank() });
	/* The number of steps made is a buffer of the model. */
	step = tensor_module_buffer(t->model, "step", TENSOR_SCALAR_SHAPE, TENSOR_I64, NULL, NULL);
	return tensor_item_int(step, &t->step) == 0 || (tensor_perror(argv[0]), false);
}

bool training_next(struct training *t)
{
	if (t->step)
		tensor_manual_seed((uint64_t)t->step + 1);
	return !t->failed && t->step < t->last;
}

/* The optimizer, with the state of the file, and what ranks need. */
static int make_optim(struct training *t, tensor_optim_options options)
{
	if (!ranks_prepare(t->model))
		return -1;
	t->optim = tensor_optim_new(tensor_module_parameters(t->model), options);
	if (!t->optim || (t->loaded && tensor_module_check_loaded(t->model) < 0))
		return -1;
	return t->step ? tensor_optim_load(t->optim, t->file) : 0;
}

void training_step(struct training *t, tensor *loss, tensor_optim_options options)
{
	double value;

	t->failed = true;
	if (!t->optim) {
		if (!loss || make_optim(t, options) < 0)
			return;
		/* With others, this loss was computed before the parameters were rank 0's: the step begins again. */
		t->failed = ranks_count() == 1;
		if (!t->failed)
			return;
	}
	if (tensor_optim_zero_grad(t->optim) < 0 || !ranks_backward(loss, &value) ||
	    tensor_optim_step(t->optim) < 0)
		return;
	t->failed = !tensor_add_(tensor_module_get(t->model, "step"), 1);
	t->step++;
	t->failed |= !ranks_save(t, false);
	tensor_progress_step(t->progress, value, 0);
	if (!isatty(1) && !ranks_rank())
		printf("%lld %.17g\n", (long long)t->step, value);
}

int training_end(struct training *t)
{
	t->failed = t->failed || !ranks_save(t, true);
	if (t->failed)
		tensor_perror("training");
	ranks_end();
	tensor_progress_free(t->progress);
	tensor_optim_free(t->optim);
	tensor_module_free(t->model);
	return t->failed;
}
