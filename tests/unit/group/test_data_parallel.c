// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Data-parallel training: several ranks with a part of each batch make the steps of one process with all of it. */
#include "ranks.h"

#include <math.h>
#include <tensor/layers.h>
#include <tensor/optim.h>
#include <tensor/parallel.h>

/* Parameters, batches and buckets are on the device of the rank. */
#define HERE TENSOR_OPTIONS(.dtype = TENSOR_F64, .device = ranks_device)

enum { BATCH = 12, IN = 5, HIDDEN = 16 };

/* The emulation of a device is slow. */
#define STEPS (ranks_are_nccl() ? 2 : 6)

/* Variations of a training; zero is a plain one. */
struct training {
	struct tensor_data_parallel_options options;
	bool sharded; /* an optimizer for this rank's parameters */
	int parts;    /* parts of a batch that are accumulated; 0: 1 */
	bool lists;   /* made of lists of tensors, and waits before it finishes */
	bool side;    /* only odd ranks use a layer, and nobody uses another one */
	double tolerance;
	const char *save, *load;
};

static tensor *net(tensor_module *m, tensor *x, bool side)
{
	tensor *y = tensor_relu(tensor_module_linear(m, "first", x, HIDDEN));

	y = tensor_tanh(tensor_module_linear(m, "second", y, HIDDEN));
	if (side)
		y = tensor_add(y, tensor_module_linear(m, "side", x, HIDDEN));
	return tensor_module_linear(m, "last", y, 1);
}

static tensor_module *new_module(bool side)
{
	tensor_module *m = tensor_module_new(HERE);

	tensor_scope {
		tensor *x = tensor_zeros(TENSOR_INTS(1, IN), HERE);

		net(m, x, side);
		if (side)
			tensor_module_linear(m, "nobody", x, 3);
	}
	return m;
}

/* Rows begin to end of batch `step`: input and target. */
static tensor *rows(int step, int begin, int end, tensor **target)
{
	tensor *all = tensor_arange(S(BATCH * (IN + 1)), HERE), *x;

	all = tensor_sin(tensor_add_scalar(tensor_mul_scalar(all, S(0.7)), S(step)));
	all = tensor_narrow(tensor_reshape(all, TENSOR_INTS(BATCH, IN + 1)), 0, begin, end - begin);
	x = tensor_narrow(all, 1, 0, IN);
	*target = tensor_narrow(all, 1, IN, 1);
	return x;
}

static tensor *loss_of(tensor_module *m, int step, int begin, int end, bool side)
{
	tensor *target, *x = rows(step, begin, end, &target);

	return tensor_mse_loss(net(m, x, side), target, TENSOR_REDUCTION_MEAN);
}

static tensor_optim *new_optim(tensor_list params)
{
	return tensor_optim_new(params,
				(tensor_optim_options){ .method = TENSOR_OPTIM_ADAM, .lr = 0.02 });
}

/* One process with all of the batch. With side, the first half of the rows is of ranks that do not use the layer. */
static void train_alone(tensor_module *m, int steps, bool side, int ranks)
{
	tensor_optim *o = new_optim(tensor_module_parameters(m));

	for (int step = 0; step < steps; step++)
		tensor_scope {
			tensor *loss = NULL;

			tensor_optim_zero_grad(o);
			for (int r = 0; r < ranks; r++) {
				tensor *part = loss_of(m, step, r * BATCH / ranks,
						       (r + 1) * BATCH / ranks, side && r & 1);

				loss = loss ? tensor_add(loss, part) : part;
			}
			tensor_backward(tensor_div_scalar(loss, S(ranks)));
			tensor_optim_step(o);
		}
	tensor_optim_free(o);
}

static int step_back(tensor_group *g, tensor_data_parallel *dp, tensor *loss, bool wait)
{
	if (!wait)
		return tensor_data_parallel_backward(dp, loss);
	NEED(!tensor_backward(loss));
	NEED(!tensor_data_parallel_wait(dp, -1));
	NEED(!tensor_data_parallel_wait(dp, 0));
	return tensor_data_parallel_finish(dp);
}

static tensor_data_parallel *new_parallel(tensor_module *m, tensor_group *g,
					  const struct training *t)
{
	return t->lists ? tensor_data_parallel_new_of(tensor_module_parameters(m),
						      (tensor_list){ NULL, 0 }, g, &t->options) :
			  tensor_data_parallel_new(m, g, &t->options);
}

static void train_rank(tensor_group *g, tensor_data_parallel *dp, tensor_module *m,
		       const struct training *t)
{
	int rank = tensor_group_rank(g), ranks = tensor_group_size(g),
	    parts = t->parts ? t->parts : 1;
	int begin = rank * BATCH / ranks, n = BATCH / ranks;
	tensor_optim *o = new_optim(t->sharded ? tensor_data_parallel_owned(dp) :
						 tensor_module_parameters(m));

	for (int step = 0; step < STEPS; step++) {
		NEED(!tensor_module_zero_grad(m));
		for (int i = 0; i < parts; i++)
			tensor_scope {
				tensor *loss = loss_of(m, step, begin + i * n / parts,
						       begin + (i + 1) * n / parts,
						       t->side && rank & 1);

				NEED(!tensor_data_parallel_set_sync(dp, i == parts - 1));
				NEED(!step_back(g, dp, tensor_div_scalar(loss, S(parts)),
						t->lists));
			}
		NEED(!tensor_optim_step(o));
		if (t->sharded)
			NEED(!tensor_data_parallel_share(dp));
	}
	tensor_optim_free(o);
}

static double difference(tensor *a, tensor *b)
{
	double d = INFINITY;

	tensor_scope
		tensor_no_grad
			tensor_item(tensor_max(tensor_abs(tensor_sub(a, b))), &d);
	return d;
}

static void compare(tensor_group *g, tensor_module *a, tensor_module *b, double tolerance)
{
	tensor_list p = tensor_module_parameters(a), q = tensor_module_parameters(b);

	NEED(p.len == q.len);
	for (int64_t i = 0; i < p.len; i++)
		NEED(difference(p.data[i], q.data[i]) <= tolerance);
}

static void train(tensor_group *g, void *arg)
{
	const struct training *t = arg;
	tensor_module *m, *alone;
	tensor_data_parallel *dp;

	tensor_manual_seed(7 + tensor_group_rank(g)); /* rank 0's parameters are taken */
	m = new_module(t->side);
	dp = new_parallel(m, g, t);
	NEED(dp);
	tensor_manual_seed(7);
	alone = new_module(t->side);
	compare(g, m, alone, 0);
	train_rank(g, dp, m, t);
	train_alone(alone, STEPS, t->side, tensor_group_size(g));
	compare(g, m, alone, t->tolerance);
	if (t->side)
		NEED(!tensor_grad(tensor_module_get(m, "nobody.weight")));
	tensor_data_parallel_free(dp);
	tensor_module_free(m);
	tensor_module_free(alone);
}

static void ranks_make_the_steps_of_one_process(void **state)
{
	struct training t = { .tolerance = 1e-12 };

	for (int ranks = 1; ranks <= 4; ranks++)
		run_ranks(ranks, train, &t);
	/* A bucket for each parameter, and one for two of them. */
	t.options.bucket_bytes = 1;
	run_ranks(4, train, &t);
	t.options.bucket_bytes = 8 * HIDDEN * (HIDDEN + 1);
	run_ranks(4, train, &t);
}

static void parts_of_a_batch_are_accumulated(void **state)
{
	struct training t = { .tolerance = 1e-12, .parts = 3 };

	run_ranks(4, train, &t);
}

static void parameters_that_a_rank_does_not_use_count_as_zero(void **state)
{
	struct training t = { .tolerance = 1e-12, .side = true };

	run_ranks(4, train, &t);
	t.options.bucket_bytes = 1;
	run_ranks(3, train, &t);
}

static void lists_of_tensors_are_trained_as_a_module(void **state)
{
	struct training t = { .tolerance = 1e-12, .lists = true };

	run_ranks(3, train, &t);
	t.side = true;
	run_ranks(4, train, &t);
}

/* Rank 1 comes late: the wait of rank 0 ends in time, and can be continued. */
static void late(tensor_group *g, void *arg)
{
	int64_t rank = tensor_group_rank(g);

	tensor_scope {
		tensor *w = tensor_full(TENSOR_INTS(3), S(rank), HERE), *loss;
		tensor *buffer = tensor_full(TENSOR_INTS(2), S(rank), HERE);
		tensor_data_parallel *dp;

		tensor_set_requires_grad(w, true);
		dp = tensor_data_parallel_new_of((tensor_list){ &w, 1 },
						 (tensor_list){ &buffer, 1 }, g, NULL);
		NEED(dp);
		NEED(difference(buffer, tensor_zeros(TENSOR_INTS(2), HERE)) == 0);
		tensor_fill_(buffer, S(5 + rank));
		if (rank)
			usleep(300000);
		loss = tensor_sum(tensor_mul_scalar(w, S(1 + 2 * rank)));
		NEED(!tensor_backward(loss));
		if (!rank)
			NEED_ERROR(tensor_data_parallel_wait(dp, 1000000), ETIMEDOUT, "in time");
		NEED(!tensor_data_parallel_wait(dp, -1));
		NEED(!tensor_data_parallel_finish(dp));
		NEED(difference(tensor_grad(w), tensor_full(TENSOR_INTS(3), S(2), HERE)) == 0);
		NEED(difference(buffer, tensor_full(TENSOR_INTS(2), S(5), HERE)) == 0);
		tensor_data_parallel_free(dp);
	}
}

static void a_wait_for_gradients_ends_in_time(void **state)
{
	run_ranks(2, late, NULL);
}

static void gradients_travel_in_another_dtype(void **state)
{
	struct training t = { .options.dtype = TENSOR_F32, .tolerance = 1e-5 };

	run_ranks(2, train, &t);
	t.options.dtype = TENSOR_BF16;
	t.tolerance = 0.1;
	run_ranks(2, train, &t);
}

static void optimizer_is_sharded(void **state)
{
	struct training t = { .tolerance = 1e-12, .sharded = true };

	run_ranks(4, train, &t);
}

/* ---- the same gradients everywhere, and while backward runs ---- */

static uint64_t operations(tensor_group *g)
{
	struct tensor_group_stats stats;

	NEED(!tensor_group_stats(g, &stats));
	return stats.operations;
}

static uint64_t begun;

/* The gradients of the last layer travel before that of a lower one is in its bucket. */
static int wait_for_last_layer(tensor *leaf, void *ctx)
{
	tensor_group *g = ctx;

	for (int i = 0; i < 5000 && operations(g) < begun + 2; i++)
		usleep(1000);
	NEED(operations(g) >= begun + 2);
	return 0;
}

static void overlap(tensor_group *g, void *arg)
{
	tensor_module *m = new_module(false);
	tensor_data_parallel *dp;

	NEED(!tensor_register_post_accumulate_grad_hook(tensor_module_get(m, "second.weight"),
							wait_for_last_layer, g, NULL, NULL));
	dp = tensor_data_parallel_new(m, g, TENSOR_DATA_PARALLEL_OPTIONS(.bucket_bytes = 1));
	NEED(dp);
	for (int step = 0; step < 2; step++)
		tensor_scope {
			begun = operations(g);
			NEED(!tensor_data_parallel_backward(dp, loss_of(m, step, 0, 4, false)));
		}
	tensor_data_parallel_free(dp);
	tensor_module_free(m);
}

static void gradients_travel_while_backward_runs(void **state)
{
	run_ranks(2, overlap, NULL);
}

/* ---- buffers, checkpoints ---- */

static tensor *with_buffer(tensor_module *m, tensor *x)
{
	return tensor_module_linear(m, "last", tensor_module_batch_norm(m, "norm", x), 1);
}

static void buffers(tensor_group *g, void *arg)
{
	tensor_module *m = tensor_module_new(HERE);
	bool keep = arg != NULL;
	tensor_data_parallel *dp;

	tensor_scope {
		tensor *x = tensor_full(TENSOR_INTS(4, IN), S(tensor_group_rank(g)), HERE), *mean,
		       *first;

		with_buffer(m, x);
		dp = tensor_data_parallel_new(m, g,
					      TENSOR_DATA_PARALLEL_OPTIONS(.keep_buffers = keep));
		NEED(dp);
		mean = tensor_module_get(m, "norm.running_mean");
		NEED(difference(mean, tensor_zeros(TENSOR_INTS(IN), HERE)) == 0);
		NEED(!tensor_data_parallel_backward(dp, tensor_sum(with_buffer(m, x))));
		first = tensor_full(TENSOR_INTS(IN), S(keep ? 0.1 * tensor_group_rank(g) : 0),
				    HERE);
		NEED(difference(mean, first) < 1e-12);
	}
	tensor_data_parallel_free(dp);
	tensor_module_free(m);
}

static void buffers_are_those_of_rank_0(void **state)
{
	run_ranks(3, buffers, NULL);
	run_ranks(3, buffers, "keep");
}

/* ---- errors ---- */

static void wrong_use(tensor_group *g, void *arg)
{
	tensor_module *m = tensor_module_new(HERE), *other = tensor_module_new(HERE);
	tensor_data_parallel *dp;

	NEED(!tensor_data_parallel_new(NULL, g, NULL) && tensor_last_error()->code == EINVAL);
	NEED(!tensor_data_parallel_new(m, NULL, NULL) && tensor_last_error()->code == EINVAL);
	NEED(!tensor_data_parallel_new_of((tensor_list){ NULL, 0 }, (tensor_list){ NULL, 0 }, g,
					  NULL) &&
	     tensor_last_error()->code == EINVAL);
	NEED(!tensor_data_parallel_new_of((tensor_list){ (tensor *[]){ NULL }, 1 },
					  (tensor_list){ NULL, 0 }, g, NULL) &&
	     tensor_last_error()->code == EINVAL);
	NEED(tensor_data_parallel_wait(NULL, 0) == -EINVAL);
	NEED(!tensor_data_parallel_new(m, g, NULL) && tensor_last_error()->code == EINVAL);
	NEED(strstr(tensor_last_error()->text, "no parameters") != NULL);
	tensor_scope {
		tensor *x = tensor_ones(TENSOR_INTS(2, IN), HERE);

		tensor_module_linear(m, "a", x, 3);
		NEED(!tensor_data_parallel_new(m, g,
					       TENSOR_DATA_PARALLEL_OPTIONS(.bucket_bytes = -1)));
		NEED(!tensor_data_parallel_new(m, g,
					       TENSOR_DATA_PARALLEL_OPTIONS(.dtype = TENSOR_I64)));
		NEED(tensor_data_parallel_backward(NULL, x) == -EINVAL);
		NEED(tensor_data_parallel_finish(NULL) == -EINVAL);
		NEED(tensor_data_parallel_set_sync(NULL, 0) == -EINVAL);
		NEED(tensor_data_parallel_share(NULL) == -EINVAL);
		tensor_data_parallel_free(NULL);
		/* Modules that differ: an error everywhere. */
		tensor_module_linear(other, "a", x, tensor_group_rank(g) ? 4 : 3);
		NEED(!tensor_data_parallel_new(other, g, NULL) &&
		     tensor_last_error()->code == EINVAL);
		NEED(strstr(tensor_last_error()->text, "f64 [4, 5]") != NULL);
		/* A second backward would mix the gradients of two steps. */
		dp = tensor_data_parallel_new(m, g, NULL);
		NEED(dp);
		NEED(!tensor_backward(tensor_sum(tensor_module_linear(m, "a", x, 3))));
		NEED_ERROR(tensor_backward(tensor_sum(tensor_module_linear(m, "a", x, 3))), EBUSY,
			   "finish");
		NEED(!tensor_data_parallel_finish(dp));
		NEED(!tensor_data_parallel_backward(
			dp, tensor_sum(tensor_module_linear(m, "a", x, 3))));
		NEED(tensor_data_parallel_backward(dp, NULL) < 0);
		tensor_data_parallel_free(dp);
		/* The hooks are gone. */
		NEED(!tensor_backward(tensor_sum(tensor_module_linear(m, "a", x, 3))));
		NEED(!tensor_backward(tensor_sum(tensor_module_linear(m, "a", x, 3))));
	}
	tensor_module_free(m);
	tensor_module_free(other);
}

static void wrong_use_is_an_error(void **state)
{
	run_ranks(2, wrong_use, NULL);
}

/* A rank that dies in a step ends it with an error on the others, which names it. */
static void death_in_a_step(tensor_group *g, void *arg)
{
	tensor_module *m = new_module(false);
	tensor_data_parallel *dp = tensor_data_parallel_new(m, g, NULL);
	int err = 0;

	NEED(dp);
	for (int step = 0; step < 100000 && !err; step++)
		tensor_scope {
			if (tensor_group_rank(g) == 1 && step == 3)
				raise(SIGKILL);
			err = tensor_data_parallel_backward(dp, loss_of(m, step, 0, 4, false));
		}
	NEED(err == -ECONNRESET && strstr(tensor_last_error()->text, "rank 1"));
	tensor_data_parallel_free(dp);
	tensor_module_free(m);
}

static void death_ends_the_step_on_all_ranks(void **state)
{
	const char *address = ranks_address();
	pid_t pids[3];

	for (int i = 0; i < 3; i++)
		pids[i] = rank_start(address, i, 3, INT64_C(60000000000), death_in_a_step, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rank_end(pids[i]), i == 1 ? -SIGKILL : 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_make_the_steps_of_one_process),
		cmocka_unit_test(parts_of_a_batch_are_accumulated),
		cmocka_unit_test(parameters_that_a_rank_does_not_use_count_as_zero),
		cmocka_unit_test(lists_of_tensors_are_trained_as_a_module),
		cmocka_unit_test(a_wait_for_gradients_ends_in_time),
		cmocka_unit_test(gradients_travel_in_another_dtype),
		cmocka_unit_test(optimizer_is_sharded),
		cmocka_unit_test(gradients_travel_while_backward_runs),
		cmocka_unit_test(buffers_are_those_of_rank_0),
		cmocka_unit_test(wrong_use_is_an_error),
		cmocka_unit_test(death_ends_the_step_on_all_ranks),
	};

	return cmocka_run_group_tests_name("data_parallel", tests, NULL, NULL);
}
