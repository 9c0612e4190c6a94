// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What every engine promises besides the results: differences between ranks, requests, messages, several groups, and the
 * end of a group. `make test-mpi` runs it under MPI.
 */
#include "ranks.h"

static tensor *filled(double value, int64_t n, enum tensor_dtype d)
{
	int64_t sizes[] = { n };

	return tensor_full((tensor_ints){ sizes, 1 }, TENSOR_SCALAR(value),
			   TENSOR_OPTIONS(.dtype = d, .device = ranks_device));
}

static bool same(tensor *a, tensor *b)
{
	tensor *all = a && b && tensor_numel(a) == tensor_numel(b) ? tensor_all(tensor_eq(a, b)) :
								     NULL;
	double value = 0;

	return all && !tensor_item(all, &value) && value == 1;
}

/* The group carries out an operation after an error. */
static void goes_on(tensor_group *g)
{
	int ranks = tensor_group_size(g);
	tensor *t = filled(tensor_group_rank(g), 1000, TENSOR_F32);

	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
	NEED(same(t, filled(ranks * (ranks - 1) / 2, 1000, TENSOR_F32)));
}

/* ---- ranks that differ ---- */

static void differ(tensor_group *g, void *arg)
{
	int last = tensor_group_size(g) - 1;
	bool other = tensor_group_rank(g) == last;
	char want[64];

	for (int64_t n = 1; n < ranks_most(1000000); n *= 997)
		tensor_scope {
			tensor *t = filled(1, n, TENSOR_F32);
			tensor *wide = filled(1, n, TENSOR_F64),
			       *more = filled(1, n + 1, TENSOR_F32);

			NEED_ERROR(
				tensor_group_all_reduce(
					g, t, t, other ? TENSOR_GROUP_MAX : TENSOR_GROUP_SUM, NULL),
				EINVAL,
				"all_reduce: the ranks differ: rank 0 calls all_reduce (sum) of f32 [");
			snprintf(want, sizeof(want), "rank %d all_reduce (max) of f32 [%lld]", last,
				 (long long)n);
			NEED(strstr(tensor_last_error()->text, want));
			goes_on(g);
			NEED_ERROR(tensor_group_broadcast(g, t, other, NULL), EINVAL,
				   "with root 1 of");
			NEED_ERROR(tensor_group_broadcast(g, other ? wide : t, 0, NULL), EINVAL,
				   "of f64");
			NEED_ERROR(tensor_group_broadcast(g, other ? more : t, 0, NULL), EINVAL,
				   "the ranks differ");
			NEED_ERROR(other ? tensor_group_barrier(g, NULL) :
					   tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL),
				   EINVAL, "barrier");
			goes_on(g);
		}
}

static void ranks_that_differ_get_both_values_and_go_on(void **state)
{
	run_ranks(2, differ, NULL);
	run_ranks(3, differ, NULL);
}

/* ---- requests ---- */

#define REQUESTS 20

static void requests(tensor_group *g, void *arg)
{
	int ranks = tensor_group_size(g);
	tensor_request *r[REQUESTS];
	tensor *t[REQUESTS];

	for (int i = 0; i < REQUESTS; i++) {
		t[i] = filled(i + tensor_group_rank(g), 1 + 5000 * (i % 3), TENSOR_F32);
		NEED(!tensor_group_all_reduce(g, t[i], t[i], TENSOR_GROUP_SUM, &r[i]));
	}
	while (!tensor_request_done(r[REQUESTS - 1]))
		usleep(100);
	for (int i = REQUESTS - 1; i >= 0; i--) {
		NEED(tensor_request_done(r[i]) == 1);
		NEED(!tensor_request_wait(r[i], -1));
		NEED(same(t[i], filled(ranks * i + ranks * (ranks - 1) / 2, tensor_numel(t[i]),
				       TENSOR_F32)));
		tensor_release(t[i]);
	}
}

static void requests_end_in_order(void **state)
{
	run_ranks(2, requests, NULL);
	run_ranks(4, requests, NULL);
}

/* ---- messages ---- */

static void around(tensor_group *g, int64_t n, bool recv_first)
{
	int rank = tensor_group_rank(g), ranks = tensor_group_size(g);
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	tensor *in = filled(rank, n, TENSOR_F32), *out = filled(-1, n, TENSOR_F32), *all;
	tensor_request *send, *recv;

	if (recv_first)
		NEED(!tensor_group_recv(g, out, from, &recv));
	NEED(!tensor_group_send(g, in, to, &send));
	if (!recv_first)
		NEED(!tensor_group_recv(g, out, from, &recv));
	/* Collectives beside them. */
	all = filled(-1, ranks * 5000, TENSOR_F32);
	NEED(!tensor_group_all_gather(g, all, filled(7, 5000, TENSOR_F32), NULL));
	NEED(same(all, filled(7, ranks * 5000, TENSOR_F32)));
	goes_on(g);
	NEED(!tensor_request_wait(recv, -1));
	NEED(!tensor_request_wait(send, -1));
	NEED(same(out, filled(from, n, TENSOR_F32)));
}

static void messages(tensor_group *g, void *arg)
{
	int rank = tensor_group_rank(g);

	if (tensor_group_size(g) == 1)
		return;
	for (int64_t n = 0; n < ranks_most(3000000); n = n * 1000 + 1)
		for (int first = 0; first < 2; first++)
			tensor_scope
				around(g, n, first);
	tensor_scope {
		tensor *t = filled(rank, 100000, TENSOR_F64);

		if (rank == 0)
			NEED(!tensor_group_send(g, t, 1, NULL));
		if (rank == 0)
			NEED(!tensor_group_recv(g, t, 1, NULL));
		if (rank == 1) {
			NEED(!tensor_group_recv(g, t, 0, NULL));
			NEED(same(t, filled(0, 100000, TENSOR_F64)));
			NEED(!tensor_group_send(g, t, 0, NULL));
		}
	}
	NEED(!tensor_group_barrier(g, NULL));
}

static void messages_arrive_in_both_orders(void **state)
{
	run_ranks(2, messages, NULL);
	run_ranks(4, messages, NULL);
}

/* Each second message has another shape; those behind it arrive. */
static void wrong_messages(tensor_group *g, void *arg)
{
	int rank = tensor_group_rank(g);

	for (int64_t n = 10; rank < 2 && n < ranks_most(2000000); n *= 50)
		for (int i = 0; i < 4; i++)
			tensor_scope {
				tensor *t = filled(rank ? -1 : i, n + (rank && i % 2), TENSOR_F32);

				if (rank == 0)
					NEED(!tensor_group_send(g, t, 1, NULL));
				else if (i % 2) {
					NEED_ERROR(
						tensor_group_recv(g, t, 0, NULL), EINVAL,
						"recv: the ranks differ: rank 1 calls recv of f32 [");
					NEED(same(t, filled(-1, n + 1, TENSOR_F32)));
				} else
					NEED(!tensor_group_recv(g, t, 0, NULL) &&
					     same(t, filled(i, n, TENSOR_F32)));
			}
	NEED(!tensor_group_barrier(g, NULL));
}

static void a_message_of_another_shape_is_dropped(void **state)
{
	run_ranks(2, wrong_messages, NULL);
}

/* ---- sums ---- */

/* In the order of the ranks, whatever the engine and the size: the same bits as a reduction of all tensors. */
static void ordered_sums(tensor_group *g, void *arg)
{
	int ranks = tensor_group_size(g);

	tensor_manual_seed(tensor_group_rank(g) + 1);
	for (int64_t n = 3; n < 2000000; n *= 59)
		tensor_scope {
			tensor *in = tensor_exp(tensor_randn(TENSOR_INTS(n), TENSOR_OPTIONS(0)));
			tensor *all = tensor_empty(TENSOR_INTS(ranks * n), TENSOR_OPTIONS(0));
			tensor *sum = tensor_empty_like(in, TENSOR_OPTIONS(0));

			NEED(!tensor_group_all_gather(g, all, in, NULL));
			all = tensor_reshape(all, TENSOR_INTS(ranks, n));
			NEED(!tensor_group_all_reduce(g, sum, in, TENSOR_GROUP_SUM, NULL));
			NEED(same(sum, tensor_sum_dim(all, TENSOR_INTS(0), false)));
			NEED(!tensor_group_all_reduce(g, sum, in, TENSOR_GROUP_MEAN, NULL));
			NEED(same(sum, tensor_mean_dim(all, TENSOR_INTS(0), false)));
		}
}

static void sums_have_the_order_of_the_ranks(void **state)
{
	run_ranks(4, ordered_sums, NULL);
}

/* ---- larger than one collective of MPI ---- */

#define LARGE (INT64_C(35) << 20)

static void large_parts(tensor_group *g, void *arg)
{
	int rank = tensor_group_rank(g);

	/* The emulation of a device is slow. */
	if (tensor_group_size(g) != 2 || ranks_are_nccl())
		return;
	tensor_scope {
		tensor *in = filled(rank + 1, LARGE, TENSOR_U8),
		       *out = filled(0, 2 * LARGE, TENSOR_U8);
		tensor *sum = filled(0, LARGE, TENSOR_U8);

		for (int i = 0; i < 2; i++)
			NEED(tensor_fill_(tensor_narrow(in, 0, i * (LARGE - 9), 9),
					  TENSOR_SCALAR(7 * rank)));
		NEED(!tensor_group_all_gather(g, out, in, NULL));
		NEED(same(tensor_narrow(out, 0, rank * LARGE, LARGE), in));
		NEED(same(tensor_narrow(out, 0, LARGE / 2, LARGE / 4),
			  filled(1, LARGE / 4, TENSOR_U8)));
		NEED(same(tensor_narrow(out, 0, 2 * LARGE - 9, 9), filled(7, 9, TENSOR_U8)));
		NEED(!tensor_group_reduce_scatter(g, sum, out, TENSOR_GROUP_SUM, NULL));
		NEED(same(sum, tensor_mul_scalar(in, TENSOR_SCALAR(2))));
		NEED(!tensor_group_scatter(g, sum, out, 1, NULL));
		NEED(same(sum, in));
		if (!rank)
			NEED(!tensor_group_send(g, in, 1, NULL));
		else
			NEED(!tensor_group_recv(g, sum, 0, NULL) &&
			     same(sum, tensor_narrow(out, 0, 0, LARGE)));
		NEED(!tensor_group_broadcast(g, in, 0, NULL));
		NEED(same(in, tensor_narrow(out, 0, 0, LARGE)));
	}
}

static void large_parts_go_in_pieces(void **state)
{
	run_ranks(2, large_parts, NULL);
}

/* ---- groups ---- */

/* Another group of the same ranks; NULL where they need an address. */
static tensor_group *second(int64_t timeout_ns)
{
	return ranks_are_mpi() ?
		       tensor_group_open("mpi", TENSOR_GROUP_OPTIONS(.timeout_ns = timeout_ns)) :
		       NULL;
}

static void two_groups(tensor_group *g, void *arg)
{
	for (int i = 0; ranks_are_mpi() && i < 10; i++) {
		tensor_group *other = second(0);
		tensor_request *r;
		tensor *t = filled(1, 50000, TENSOR_F32);

		NEED(other);
		NEED(!tensor_group_all_reduce(other, t, t, TENSOR_GROUP_SUM, &r));
		tensor_scope
			goes_on(g);
		NEED(!tensor_request_wait(r, -1));
		tensor_group_close(other);
		tensor_release(t);
	}
	tensor_scope
		goes_on(g);
}

static void groups_are_independent(void **state)
{
	run_ranks(3, two_groups, NULL);
}

static void closing(tensor_group *g, void *arg)
{
	tensor_group *of = ranks_are_mpi() ? second(0) : g;

	NEED(of);
	NEED(!tensor_group_barrier(of, NULL));
	if (tensor_group_rank(g) && tensor_group_size(g) <= 8) {
		NEED_ERROR(tensor_group_barrier(of, NULL), EPIPE,
			   "barrier: rank 0 has closed the group");
		NEED_ERROR(tensor_group_barrier(of, NULL), EPIPE,
			   "barrier: rank 0 has closed the group");
	} else if (tensor_group_rank(g))
		NEED_ERROR(tensor_group_barrier(of, NULL), EPIPE,
			   "barrier: a rank has closed the group");
	if (of != g)
		tensor_group_close(of);
	if (of != g)
		tensor_scope
			goes_on(g);
}

static void a_closed_group_is_an_error_on_the_others(void **state)
{
	run_ranks(3, closing, NULL);
}

/* Requests and messages without a partner fail when the group is closed. */
static void abandoned(tensor_group *g, void *arg)
{
	tensor_group *of = ranks_are_mpi() ? second(0) : g;
	tensor_request *r = NULL;
	tensor *t = filled(1, 100000, TENSOR_F32);

	if (!of || tensor_group_size(g) == 1)
		return;
	if (tensor_group_rank(g) == 0)
		NEED(!tensor_group_recv(of, t, 1, &r));
	if (of != g)
		tensor_group_close(of);
	if (r && of != g)
		NEED(tensor_request_wait(r, -1) == -EPIPE);
	if (of != g)
		tensor_scope
			goes_on(g);
	tensor_release(t);
}

static void closing_ends_requests(void **state)
{
	if (ranks_are_mpi())
		run_ranks(2, abandoned, NULL);
	else
		skip();
}

/* ---- programs that mpirun ends: tests/run-mpi reads what they print ---- */

static int late(tensor_group *g)
{
	tensor *t = filled(1, 100000, TENSOR_F32);

	if (tensor_group_rank(g) == tensor_group_size(g) - 1)
		pause();
	if (tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL) == -ETIMEDOUT)
		fprintf(stderr, "%s\n", tensor_last_error()->text);
	tensor_group_close(g);
	return 0;
}

static int dies(tensor_group *g)
{
	NEED(!tensor_group_barrier(g, NULL));
	if (tensor_group_rank(g) == tensor_group_size(g) - 1)
		raise(SIGKILL);
	NEED(tensor_group_barrier(g, NULL) < 0);
	pause();
	return 0;
}

/* Does not close the group. */
static int forgets(tensor_group *g)
{
	tensor_scope
		goes_on(g);
	return 0;
}

static int closes_early(tensor_group *g)
{
	if (tensor_group_rank(g))
		sleep(1);
	tensor_group_close(g);
	return 0;
}

static int program(const char *name)
{
	tensor_group *g = tensor_group_open("mpi", TENSOR_GROUP_OPTIONS(.timeout_ns = 500000000));

	if (!g) {
		fprintf(stderr, "%s\n", tensor_last_error()->text);
		return 1;
	}
	alarm(30);
	return !strcmp(name, "late")	? late(g) :
	       !strcmp(name, "dies")	? dies(g) :
	       !strcmp(name, "forgets") ? forgets(g) :
					  closes_early(g);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_that_differ_get_both_values_and_go_on),
		cmocka_unit_test(requests_end_in_order),
		cmocka_unit_test(messages_arrive_in_both_orders),
		cmocka_unit_test(a_message_of_another_shape_is_dropped),
		cmocka_unit_test(sums_have_the_order_of_the_ranks),
		cmocka_unit_test(large_parts_go_in_pieces),
		cmocka_unit_test(groups_are_independent),
		cmocka_unit_test(a_closed_group_is_an_error_on_the_others),
		cmocka_unit_test(closing_ends_requests),
	};

	if (argc > 1)
		return program(argv[1]);
	return cmocka_run_group_tests_name("group_engines", tests, NULL, NULL);
}
