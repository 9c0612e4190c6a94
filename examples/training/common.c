// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "common.h"

#include <unistd.h>

static void path_of(const struct training *t, const char *end, char path[4096])
{
	snprintf(path, 4096, "%s%s", t->file, end);
}

bool training_begin(struct training *t, int argc, char **argv, int64_t steps)
{
	char path[4096];
	tensor *step;

	*t = (struct training){ .last = argc > 1 ? atoll(argv[1]) : steps,
				.file = argc > 2 ? argv[2] : NULL };
	t->options.dtype = argc > 3 && !strcmp(argv[3], "f64") ? TENSOR_F64 : TENSOR_F32;
	tensor_manual_seed(1);
	t->model = tensor_module_new(t->options);
	if (t->file)
		path_of(t, ".safetensors", path);
	t->loaded = t->file && access(path, R_OK) == 0;
	if (t->loaded && tensor_module_load(t->model, path, 0) < 0)
		return tensor_perror(argv[0]), false;
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

/* The optimizer, with the state of the file. */
static int make_optim(struct training *t, tensor_optim_options options)
{
	char path[4096];

	t->optim = tensor_optim_new(tensor_module_parameters(t->model), options);
	if (!t->optim || (t->loaded && tensor_module_check_loaded(t->model) < 0))
		return -1;
	if (!t->step)
		return 0;
	path_of(t, ".optim.safetensors", path);
	return tensor_optim_load(t->optim, path);
}

void training_step(struct training *t, tensor *loss, tensor_optim_options options)
{
	double value;

	t->failed = true;
	if (tensor_item(loss, &value) < 0 || (!t->optim && make_optim(t, options) < 0) ||
	    tensor_optim_zero_grad(t->optim) < 0 || tensor_backward(loss) < 0 ||
	    tensor_optim_step(t->optim) < 0)
		return;
	t->failed = !tensor_add_(tensor_module_get(t->model, "step"), 1);
	printf("%lld %.17g\n", (long long)++t->step, value);
}

int training_end(struct training *t)
{
	char path[4096];

	if (t->file && !t->failed) {
		path_of(t, ".optim.safetensors", path);
		t->failed = t->optim && tensor_optim_save(t->optim, path) < 0;
		path_of(t, ".safetensors", path);
		t->failed |= tensor_module_save(t->model, path) < 0;
	}
	if (t->failed)
		tensor_perror("training");
	tensor_optim_free(t->optim);
	tensor_module_free(t->model);
	return t->failed;
}
