// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Requests, messages from rank to rank, and what happens when ranks differ, die or do not come. */
#include "ranks.h"

#include <pthread.h>

#define MS INT64_C(1000000)

static bool is_full_of(tensor *t, double value)
{
	double least = 0, greatest = 0;

	tensor_scope {
		tensor *f = tensor_to(t, TENSOR_OPTIONS(.dtype = TENSOR_F64));

		if (tensor_item(tensor_min(f), &least) < 0 ||
		    tensor_item(tensor_max(f), &greatest) < 0)
			return false;
	}
	return least == value && greatest == value;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- requests ---- */

enum { MANY = 12 };

static void many_at_once(tensor_group *g, void *arg)
{
	tensor *t[MANY];
	tensor_request *r[MANY];
	int ranks = tensor_group_size(g), rank = tensor_group_rank(g);

	for (int i = 0; i < MANY; i++) {
		t[i] = tensor_full(TENSOR_INTS(1 + i * 40000), S(rank + i), F32);
		NEED(!tensor_group_all_reduce(g, t[i], t[i], TENSOR_GROUP_SUM, &r[i]));
	}
	/* A call that waits comes after them. */
	NEED(!tensor_group_barrier(g, NULL));
	for (int i = MANY - 1; i >= 0; i--) {
		NEED(tensor_request_done(r[i]) == 1);
		NEED(!tensor_request_wait(r[i], 0));
		NEED(is_full_of(t[i], ranks * (ranks - 1) / 2 + ranks * i));
		tensor_release(t[i]);
	}
}

static void requests_end_in_order(void **state)
{
	run_ranks(1, many_at_once, NULL);
	run_ranks(4, many_at_once, NULL);
}

static void late_rank(tensor_group *g, void *arg)
{
	tensor *t = tensor_full(TENSOR_INTS(5), S(1), F32);
	tensor_request *r;

	if (tensor_group_rank(g) == 1)
		usleep(200000);
	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, &r));
	if (!tensor_group_rank(g)) {
		NEED(tensor_request_done(r) == 0);
		NEED_ERROR(tensor_request_wait(r, 10 * MS), ETIMEDOUT, "request_wait");
	}
	NEED(!tensor_request_wait(r, -1));
	NEED(is_full_of(t, 2));
	tensor_release(t);
}

static void wait_for_a_request_times_out(void **state)
{
	run_ranks(2, late_rank, NULL);
}

/* The program may release its tensors and close the group before it looks at the request. */
static void request_of_a_closed_group(tensor_group *g, void *arg)
{
	tensor *t = tensor_full(TENSOR_INTS(5), S(1), F32);
	tensor_request *r, *never = NULL;
	bool first = !tensor_group_rank(g);

	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, &r));
	tensor_release(t);
	NEED(!tensor_request_wait(r, -1));
	if (first) {
		t = tensor_full(TENSOR_INTS(5), S(1), F32);
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, &never));
		tensor_release(t);
	} else
		usleep(100000); /* the other one waits for this rank */
	tensor_group_close(g);
	if (never && tensor_request_wait(never, -1) != -EPIPE)
		_exit(2);
	_exit(0);
}

static void close_ends_requests(void **state)
{
	run_ranks(2, request_of_a_closed_group, NULL);
}

/* ---- messages ---- */

/* Each rank to the next, receives begun before or after sends, in private memory or in buffers, of any size. */
static void ring(tensor_group *g, void *arg)
{
	static const int64_t sizes[] = { 0, 1, 7, 65536, 65537, 1000003 };
	int rank = tensor_group_rank(g), ranks = tensor_group_size(g);
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;

	for (int round = 0; round < 6 * 4; round++)
		tensor_scope {
			int64_t n = sizes[round % 6];
			tensor_options options = { .dtype = round & 1 ? TENSOR_F32 : TENSOR_I16,
						   .shareable = round / 6 & 1 };
			tensor *in = tensor_full((tensor_ints){ &n, 1 }, S(rank + round), options);
			tensor *out = tensor_zeros((tensor_ints){ &n, 1 }, options);
			tensor_request *s, *r;

			if (round / 12) {
				NEED(!tensor_group_recv(g, out, before, &r));
				NEED(!tensor_group_send(g, in, next, &s));
			} else {
				NEED(!tensor_group_send(g, in, next, &s));
				NEED(!tensor_group_recv(g, out, before, &r));
			}
			NEED(!tensor_request_wait(r, -1));
			NEED(!tensor_request_wait(s, -1));
			/* The sender may write again. */
			if (n) {
				tensor_fill_(in, S(-1));
				NEED(!tensor_group_barrier(g, NULL));
				NEED(is_full_of(out, before + round));
			}
		}
}

static void messages_go_from_rank_to_rank(void **state)
{
	run_ranks(2, ring, NULL);
	run_ranks(5, ring, NULL);
}

/* Messages keep their order, and go on beside a collective for which a rank waits. */
static void beside_a_collective(tensor_group *g, void *arg)
{
	int rank = tensor_group_rank(g);
	tensor *sum = tensor_full(TENSOR_INTS(3), S(1), F32), *t;
	tensor_request *r, *m[8];

	t = tensor_zeros(TENSOR_INTS(8, 5000), F32);
	if (!rank) {
		NEED(!tensor_group_all_reduce(g, sum, sum, TENSOR_GROUP_SUM, &r));
		for (int i = 0; i < 8; i++)
			tensor_scope
				NEED(!tensor_group_send(
					g, tensor_full(TENSOR_INTS(5000), S(i), F32), 1, &m[i]));
		for (int i = 0; i < 8; i++)
			NEED(!tensor_request_wait(m[i], -1));
	} else {
		for (int i = 0; i < 8; i++)
			tensor_scope
				NEED(!tensor_group_recv(g, tensor_select(t, 0, i), 0,
							i & 1 ? &m[i] : NULL));
		for (int i = 1; i < 8; i += 2)
			NEED(!tensor_request_wait(m[i], -1));
		for (int i = 0; i < 8; i++)
			tensor_scope
				NEED(is_full_of(tensor_select(t, 0, i), i));
		NEED(!tensor_group_all_reduce(g, sum, sum, TENSOR_GROUP_SUM, &r));
	}
	NEED(!tensor_request_wait(r, -1));
	NEED(is_full_of(sum, 2));
	tensor_release(sum);
	tensor_release(t);
}

/* A collective that is called while the group waits for a message begins at once. */
static void while_a_receive_waits(tensor_group *g, void *arg)
{
	tensor *t = tensor_full(TENSOR_INTS(3), S(1), F32),
	       *last = tensor_zeros(TENSOR_INTS(3), F32);
	tensor_request *r = NULL;
	double start;

	if (tensor_group_rank(g))
		NEED(!tensor_group_recv(g, last, 0, &r));
	usleep(20000);
	NEED(!tensor_group_barrier(g, NULL));
	start = seconds();
	for (int i = 0; i < 200; i++) {
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_MAX, NULL));
		usleep(100); /* the group sleeps again */
	}
	/* With sleeps that only a timeout ends it would be more than two seconds. */
	NEED(seconds() - start < 1.5);
	if (!tensor_group_rank(g))
		NEED(!tensor_group_send(g, t, 1, NULL));
	else
		NEED(!tensor_request_wait(r, -1) && is_full_of(last, 1));
	tensor_release(t);
	tensor_release(last);
}

static void waiting_receive_delays_no_collective(void **state)
{
	run_ranks(2, while_a_receive_waits, NULL);
}

static void messages_go_on_beside_collectives(void **state)
{
	run_ranks(2, beside_a_collective, NULL);
}

static void other_message(tensor_group *g, void *arg)
{
	tensor_scope {
		tensor *t = tensor_full(TENSOR_INTS(4, 3), S(7), F32);

		/* The sender closes the group after its last send. */
		if (tensor_group_rank(g))
			usleep(50000);
		for (int i = 0; i < 3; i++)
			if (!tensor_group_rank(g)) {
				NEED(!tensor_group_send(
					g, i ? t : tensor_full(TENSOR_INTS(2, 200000), S(1), F32),
					1, NULL));
			} else if (!i) {
				NEED_ERROR(tensor_group_recv(g, t, 0, NULL), EINVAL,
					   "f32 [2, 200000]");
				NEED(strstr(tensor_last_error()->text, "f32 [4, 3]") != NULL);
			} else {
				tensor_zero_(t);
				NEED(!tensor_group_recv(g, t, 0, NULL));
				NEED(is_full_of(t, 7));
			}
	}
}

static void message_of_another_shape_is_dropped(void **state)
{
	run_ranks(2, other_message, NULL);
}

/* ---- ranks that differ ---- */

static void different_calls(tensor_group *g, void *arg)
{
	int rank = tensor_group_rank(g), last = rank == tensor_group_size(g) - 1;

	tensor_scope {
		tensor *a = tensor_full(TENSOR_INTS(4, 3), S(1), F32);
		tensor *b = tensor_full(TENSOR_INTS(4, 300000), S(1), F32);
		tensor *d =
			tensor_full(TENSOR_INTS(4, 3), S(1), TENSOR_OPTIONS(.dtype = TENSOR_F64));
		tensor *t;

		t = last ? b : a;
		NEED_ERROR(tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL), EINVAL,
			   "f32 [4, 300000]");
		NEED(strstr(tensor_last_error()->text, "f32 [4, 3]") != NULL);
		t = last ? d : a;
		NEED_ERROR(tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL), EINVAL,
			   "f64 [4, 3]");
		NEED_ERROR(tensor_group_all_reduce(
				   g, a, a, last ? TENSOR_GROUP_MAX : TENSOR_GROUP_MIN, NULL),
			   EINVAL, "(max)");
		NEED_ERROR(tensor_group_broadcast(g, a, last, NULL), EINVAL, "root 1");
		NEED_ERROR(last ? tensor_group_barrier(g, NULL) :
				  tensor_group_broadcast(g, a, 0, NULL),
			   EINVAL, "barrier");
		NEED(is_full_of(a, 1));
		/* The group goes on. */
		NEED(!tensor_group_all_reduce(g, a, a, TENSOR_GROUP_SUM, NULL));
		NEED(is_full_of(a, tensor_group_size(g)));
	}
}

static void ranks_that_differ_all_get_both_values(void **state)
{
	run_ranks(2, different_calls, NULL);
	run_ranks(5, different_calls, NULL);
}

/* ---- ranks that end ---- */

struct end {
	int kind; /* 0: killed, 1: closes the group, 2: exits without a close, 3: sleeps */
};

static void one_ends(tensor_group *g, void *arg)
{
	const struct end *e = arg;
	struct tensor_group_stats stats;
	tensor *t = tensor_full(TENSOR_INTS(100000), S(1), F32);
	tensor_request *r, *m;
	double start;

	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
	if (tensor_group_rank(g) == 2) {
		usleep(50000);
		if (e->kind == 0)
			raise(SIGKILL);
		if (e->kind == 1)
			tensor_group_close(g);
		if (e->kind == 3)
			usleep(2000000);
		_exit(0);
	}
	start = seconds();
	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, &r));
	if (e->kind != 3) {
		NEED(!tensor_group_recv(g, t, 2, &m));
		NEED_ERROR(tensor_request_wait(m, -1), e->kind == 1 ? EPIPE : ECONNRESET, "rank 2");
	}
	NEED_ERROR(tensor_request_wait(r, -1),
		   e->kind == 1 ? EPIPE :
		   e->kind == 3 ? ETIMEDOUT :
				  ECONNRESET,
		   "rank");
	NEED(strstr(tensor_last_error()->text, "rank 2") || e->kind == 3);
	NEED(seconds() - start < 1.9);
	NEED(tensor_group_barrier(g, NULL) < 0);
	NEED(!tensor_group_stats(g, &stats));
	NEED(stats.failed == (e->kind == 3 ? stats.failed : 2));
	tensor_release(t);
}

static void end_of_a_rank_is_an_error_that_names_it(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct end e = { kind };
		const char *address = ranks_address();
		pid_t pids[4];

		for (int i = 0; i < 4; i++)
			pids[i] = rank_start(address, i, 4, kind == 3 ? 500 * MS : 30000 * MS,
					     one_ends, &e);
		for (int i = 0; i < 4; i++)
			assert_int_equal(rank_end(pids[i]), i == 2 && kind == 0 ? -SIGKILL : 0);
	}
}

/* ---- joining ---- */

static tensor_group *join(int rank, int size, const char *address, int64_t timeout_ns)
{
	return tensor_group_open("local", TENSOR_GROUP_OPTIONS(.rank = rank, .size = size,
							       .address = address,
							       .timeout_ns = timeout_ns));
}

/* Rank 1 takes nothing, rank 2 dies: the message of rank 0 fails with the group, and what it held ends with it. */
static void message_fails_with_the_group(tensor_group *g, void *arg)
{
	tensor *first = tensor_zeros(TENSOR_INTS(2), SHAREABLE(TENSOR_F32)); /* opens the device */
	int rank = tensor_group_rank(g), fds = count_fds(), buffers = count_buffers();
	tensor_group *inner = tensor_group_open(
		"local", TENSOR_GROUP_OPTIONS(.rank = rank, .size = 3, .address = arg,
					      .timeout_ns = 30000 * MS));
	tensor *t = tensor_full(TENSOR_INTS(3000000), S(1), F32);
	tensor_request *r, *m;

	NEED(inner);
	NEED(!tensor_group_barrier(inner, NULL));
	if (rank == 0)
		NEED(!tensor_group_send(inner, t, 1, &m));
	if (rank == 1)
		NEED(!tensor_group_recv(inner, t, 2, &m));
	if (rank == 2) {
		usleep(50000);
		raise(SIGKILL);
	}
	NEED(!tensor_group_all_reduce(inner, t, t, TENSOR_GROUP_SUM, &r));
	NEED_ERROR(tensor_request_wait(r, -1), ECONNRESET, "rank 2");
	NEED_ERROR(tensor_request_wait(m, -1), ECONNRESET, "rank 2");
	tensor_release(t);
	tensor_group_close(inner);
	for (int i = 0; i < 1000 && (count_fds() != fds || count_buffers() != buffers); i++)
		usleep(1000);
	NEED(count_fds() == fds);
	NEED(count_buffers() == buffers);
	tensor_release(first);
}

static void message_that_fails_with_the_group_holds_nothing(void **state)
{
	char inner[64];
	const char *outer;
	pid_t pids[3];

	snprintf(inner, sizeof(inner), "%s", ranks_address());
	outer = ranks_address();
	for (int i = 0; i < 3; i++)
		pids[i] = rank_start(outer, i, 3, 30000 * MS, message_fails_with_the_group, inner);
	assert_int_equal(rank_end(pids[0]), 0);
	assert_int_equal(rank_end(pids[1]), 0);
	assert_int_equal(rank_end(pids[2]), -SIGKILL);
}

static void *refused_ranks(void *arg)
{
	usleep(50000);
	assert_null(join(1, 4, arg, 3000 * MS));
	assert_int_equal(tensor_last_error()->code, EINVAL);
	assert_null(join(0, 3, arg, 3000 * MS));
	assert_int_equal(tensor_last_error()->code, EADDRINUSE);
	return NULL;
}

static void missing_ranks_are_named(void **state)
{
	const char *address = ranks_address();
	int before = count_fds();
	pthread_t thread;

	assert_null(join(1, 3, address, 50 * MS));
	assert_int_equal(tensor_last_error()->code, ETIMEDOUT);
	assert_non_null(strstr(tensor_last_error()->text, "rank 0"));
	pthread_create(&thread, NULL, refused_ranks, (void *)address);
	assert_null(join(0, 3, address, 500 * MS));
	assert_int_equal(tensor_last_error()->code, ETIMEDOUT);
	assert_non_null(strstr(tensor_last_error()->text, "1, 2"));
	pthread_join(thread, NULL);
	assert_int_equal(count_fds(), before);
}

static void only_barrier(tensor_group *g, void *arg)
{
	NEED(!tensor_group_barrier(g, NULL));
}

static void taken_rank_is_refused(void **state)
{
	const char *address = ranks_address();
	pid_t pids[3];

	pids[1] = rank_start(address, 1, 3, 20000 * MS, only_barrier, NULL);
	pids[0] = rank_start(address, 0, 3, 20000 * MS, only_barrier, NULL);
	usleep(300000);
	assert_null(join(1, 3, address, 20000 * MS));
	assert_int_equal(tensor_last_error()->code, EEXIST);
	pids[2] = rank_start(address, 2, 3, 20000 * MS, only_barrier, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rank_end(pids[i]), 0);
}

static void environment_names_the_rank(void **state)
{
	tensor_group *g = tensor_group_open(NULL, NULL);

	assert_non_null(g); /* alone */
	assert_int_equal(tensor_group_size(g), 1);
	assert_int_equal(tensor_group_rank(g), 0);
	assert_string_equal(tensor_group_engine(g), "local");
	tensor_group_close(g);
	setenv("TENSOR_RANK", "3", 1);
	setenv("TENSOR_SIZE", "2", 1);
	assert_null(tensor_group_open(NULL, NULL));
	assert_int_equal(tensor_last_error()->code, EINVAL);
	setenv("TENSOR_RANK", "none", 1);
	assert_null(tensor_group_open(NULL, NULL));
	assert_int_equal(tensor_last_error()->code, EINVAL);
	unsetenv("TENSOR_RANK");
	unsetenv("TENSOR_SIZE");
	assert_null(tensor_group_open("none", NULL));
	assert_int_equal(tensor_last_error()->code, ENOTSUP);
	assert_null(join(0, 2, NULL, MS));
	assert_int_equal(tensor_last_error()->code, EINVAL);
	assert_null(join(0, TENSOR_GROUP_LOCAL_MAX + 1, "a", MS));
	assert_int_equal(tensor_last_error()->code, EINVAL);
	assert_null(join(-1, 2, "a", MS));
	assert_int_equal(tensor_last_error()->code, EINVAL);
}

/* ---- arguments ---- */

static void wrong_arguments(tensor_group *g, void *arg)
{
	tensor_scope {
		tensor *a = tensor_full(TENSOR_INTS(4), S(1), F32),
		       *b = tensor_full(TENSOR_INTS(3), S(1), F32);
		tensor *d = tensor_full(TENSOR_INTS(4), S(1), TENSOR_OPTIONS(.dtype = TENSOR_F64));
		tensor *wide =
			tensor_expand(tensor_full(TENSOR_INTS(1), S(1), F32), TENSOR_INTS(4));
		tensor *readonly = tensor_from_blob_readonly(tensor_data(a), TENSOR_INTS(4),
							     TENSOR_NO_INTS, F32, NULL, NULL);
		tensor *sparse = tensor_to_sparse(a);
		tensor *f8 = tensor_to(a, TENSOR_OPTIONS(.dtype = TENSOR_F8_E4M3FN));

		NEED(tensor_group_barrier(NULL, NULL) == -EINVAL);
		NEED(tensor_group_all_reduce(g, a, NULL, 0, NULL) == -EINVAL);
		NEED(tensor_group_all_reduce(g, NULL, a, 0, NULL) == -EINVAL);
		NEED(tensor_group_all_reduce(g, b, a, 0, NULL) == -EINVAL);
		NEED(tensor_group_all_reduce(g, d, a, 0, NULL) == -EINVAL);
		NEED(tensor_group_all_reduce(g, a, a, 9, NULL) == -EINVAL);
		NEED(tensor_group_all_reduce(g, wide, a, 0, NULL) == -EINVAL);
		NEED(tensor_group_all_reduce(g, readonly, a, 0, NULL) == -EACCES);
		NEED(tensor_group_all_reduce(g, sparse, sparse, 0, NULL) == -EOPNOTSUPP);
		NEED(tensor_group_all_reduce(g, f8, f8, 0, NULL) == -EINVAL);
		NEED(tensor_group_all_reduce(g, tensor_narrow(a, 0, 1, 3),
					     tensor_narrow(a, 0, 0, 3), 0, NULL) == -EINVAL);
		NEED(tensor_group_broadcast(g, a, 2, NULL) == -EINVAL);
		NEED(tensor_group_broadcast(g, a, -1, NULL) == -EINVAL);
		NEED(tensor_group_all_gather(g, a, a, NULL) == -EINVAL);
		NEED(tensor_group_scatter(g, a, a, tensor_group_rank(g), NULL) == -EINVAL);
		NEED(tensor_group_all_to_all(g, a, a, NULL) == -EINVAL);
		NEED(tensor_group_all_to_all(g, tensor_detach(d), d, NULL) == -EINVAL);
		NEED(tensor_group_all_to_all(g, b, tensor_clone(b), NULL) == -EINVAL);
		NEED(tensor_group_send(g, a, tensor_group_rank(g), NULL) == -EINVAL);
		NEED(tensor_group_recv(g, a, 7, NULL) == -EINVAL);
		NEED(tensor_request_wait(NULL, 0) == -EINVAL);
		NEED(tensor_request_done(NULL) == -EINVAL);
		NEED(tensor_group_rank(NULL) == -EINVAL && tensor_group_size(NULL) == -EINVAL);
		NEED(!tensor_group_engine(NULL));
		tensor_group_close(NULL);
		/* Floats of 8 bits and sizes beyond a slot can be moved. */
		NEED(!tensor_group_broadcast(g, f8, 0, NULL));
		NEED(IN_CHILD({
			     alarm(5);
			     NEED(tensor_group_barrier(g, NULL) == -EBUSY);
			     NEED(tensor_group_all_reduce(g, a, a, 0, NULL) == -EBUSY);
			     tensor_group_close(g);
		     }) == 0);
		NEED(!tensor_group_all_reduce(g, a, a, 0, NULL));
		NEED(is_full_of(a, 2));
	}
}

static void wrong_arguments_are_refused(void **state)
{
	run_ranks(2, wrong_arguments, NULL);
}

/* A leaf that requires a gradient can be a result, and counts the change. */
static void leaf(tensor_group *g, void *arg)
{
	tensor_scope {
		tensor *t = tensor_full(TENSOR_INTS(4, 2), S(1), F32),
		       *across = tensor_transpose(t, 0, 1);
		int64_t before;

		tensor_set_requires_grad(t, true);
		before = tensor_version(t);
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
		NEED(tensor_version(t) > before);
		before = tensor_version(t);
		NEED(!tensor_group_all_reduce(g, across, across, TENSOR_GROUP_SUM, NULL));
		NEED(tensor_version(t) > before);
		NEED(tensor_requires_grad(t) && tensor_is_leaf(t));
		NEED(is_full_of(tensor_detach(t), 4));
	}
}

static void results_can_be_leaves(void **state)
{
	run_ranks(2, leaf, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_end_in_order),
		cmocka_unit_test(wait_for_a_request_times_out),
		cmocka_unit_test(close_ends_requests),
		cmocka_unit_test(messages_go_from_rank_to_rank),
		cmocka_unit_test(messages_go_on_beside_collectives),
		cmocka_unit_test(waiting_receive_delays_no_collective),
		cmocka_unit_test(message_of_another_shape_is_dropped),
		cmocka_unit_test(ranks_that_differ_all_get_both_values),
		cmocka_unit_test(end_of_a_rank_is_an_error_that_names_it),
		cmocka_unit_test(message_that_fails_with_the_group_holds_nothing),
		cmocka_unit_test(missing_ranks_are_named),
		cmocka_unit_test(taken_rank_is_refused),
		cmocka_unit_test(environment_names_the_rank),
		cmocka_unit_test(wrong_arguments_are_refused),
		cmocka_unit_test(results_can_be_leaves),
	};

	return cmocka_run_group_tests_name("group_requests", tests, NULL, NULL);
}
