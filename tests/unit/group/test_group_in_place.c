// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Large collectives on tensors in shared buffers: the bits of those on private memory, the mappings, and what prevents them. */
#include "ranks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <tensor/buffer.h>
#include <tensor/storage.h>

#define LARGE 300007 /* elements of f32: more than 1 MiB, and no multiple of a share */

static bool same(tensor *a, tensor *b)
{
	bool equal = a && b && tensor_numel(a) == tensor_numel(b);

	return equal && !memcmp(tensor_data(a), tensor_data(b),
				(size_t)tensor_numel(a) * tensor_itemsize(tensor_dtype(a)));
}

/* Numbers whose sum depends on the order. */
static tensor *numbers(int64_t n, enum tensor_dtype d)
{
	tensor *t = tensor_mul_scalar(tensor_randn(TENSOR_INTS(n), F32), S(2));

	t = d == TENSOR_I64 || d == TENSOR_U8 ? tensor_mul_scalar(t, S(100)) : tensor_exp(t);
	return tensor_to(tensor_abs(t), OF(d));
}

static tensor *in_buffer(tensor *t)
{
	return tensor_copy_(tensor_empty(TENSOR_INTS(tensor_numel(t)), SHAREABLE(tensor_dtype(t))),
			    t);
}

static tensor *empty(int64_t n, enum tensor_dtype d, bool shareable)
{
	return tensor_zeros(TENSOR_INTS(n), TENSOR_OPTIONS(.dtype = d, .shareable = shareable));
}

/* ---- bits ---- */

#define RESULTS 9

/* All operations on `in`, the results one after the other in a list. */
static void results(tensor_group *g, tensor *in, bool shareable, int op, tensor *out[RESULTS])
{
	int rank = tensor_group_rank(g), size = tensor_group_size(g), root = size - 1;
	enum tensor_dtype d = tensor_dtype(in);
	int64_t n = tensor_numel(in), part = n / size;

	out[0] = empty(n, d, shareable);
	NEED(!tensor_group_all_reduce(g, out[0], in, op, NULL));
	out[1] = empty(part, d, shareable);
	NEED(!tensor_group_reduce_scatter(g, out[1], in, op, NULL));
	out[2] = empty(n * size, d, shareable);
	NEED(!tensor_group_all_gather(g, out[2], in, NULL));
	out[3] = empty(rank == root ? n * size : 1, d, shareable);
	NEED(!tensor_group_gather(g, out[3], in, root, NULL));
	out[4] = empty(part, d, shareable);
	NEED(!tensor_group_scatter(g, out[4], in, root, NULL));
	out[5] = empty(n, d, shareable);
	NEED(!tensor_group_all_to_all(g, out[5], in, NULL));
	out[6] = tensor_copy_(empty(n, d, shareable), in);
	NEED(!tensor_group_broadcast(g, out[6], root, NULL));
	NEED(!tensor_group_all_reduce(g, out[6], out[6], op, NULL));
	out[7] = empty(n, d, shareable);
	NEED(!tensor_group_reduce(g, rank == root ? out[7] : NULL, in, op, root, NULL));
	out[8] = tensor_copy_(empty(n, d, shareable), in);
	NEED(!tensor_group_reduce(g, rank ? NULL : out[8], out[8], op, 0, NULL));
	NEED(same(out[8], rank ? in : out[0]));
}

static void compare(tensor_group *g, enum tensor_dtype d, int op)
{
	int size = tensor_group_size(g);
	tensor *in = numbers((int64_t)LARGE * 4 / (int)tensor_itemsize(d) / size * size, d);
	tensor *plain[RESULTS], *shared[RESULTS], *buffer = in_buffer(in);

	results(g, in, false, op, plain);
	results(g, buffer, true, op, shared);
	for (int i = 0; i < RESULTS; i++)
		NEED(same(plain[i], shared[i]));
	NEED(same(in, buffer));
}

static void operations(tensor_group *g, void *arg)
{
	static const struct {
		enum tensor_dtype dtype;
		int op;
	} cases[] = {
		{ TENSOR_F32, TENSOR_GROUP_SUM },     { TENSOR_BF16, TENSOR_GROUP_MEAN },
		{ TENSOR_F64, TENSOR_GROUP_PRODUCT }, { TENSOR_I64, TENSOR_GROUP_MAX },
		{ TENSOR_U8, TENSOR_GROUP_SUM },
	};

	tensor_manual_seed(tensor_group_rank(g) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		tensor_scope
			compare(g, cases[i].dtype, cases[i].op);
}

static void results_have_the_bits_of_copies(void **state)
{
	run_ranks(2, operations, NULL);
	run_ranks(5, operations, NULL);
}

/* ---- mappings ---- */

/* Buffers of at least 1 MiB that this process has mapped, those of other ranks among them. */
static int buffers(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long begin, end;
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:tensor (") && sscanf(line, "%lx-%lx", &begin, &end) == 2 &&
		     end - begin >= 1 << 20;
	if (f)
		fclose(f);
	return n;
}

static bool is_memfd(void)
{
	const char *provider = getenv("TENSOR_PROVIDER");

	return !provider || !strcmp(provider, "memfd");
}

static void map_and_forget(tensor_group *g, void *arg)
{
	int size = tensor_group_size(g);
	tensor *t = in_buffer(numbers(LARGE, TENSOR_F32));

	NEED(buffers() == 1);
	for (int i = 0; i < 3; i++) {
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_MAX, NULL));
		NEED(buffers() == size);
	}
	/* The others release a buffer that its owner has freed when the next one comes. */
	for (int i = 0; i < 20; i++) {
		tensor_release(t);
		t = in_buffer(numbers(LARGE, TENSOR_F32));
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_MAX, NULL));
		NEED(buffers() <= 2 * size);
	}
	tensor_release(t);
	NEED(!tensor_group_barrier(g, NULL));
}

static void buffers_are_mapped_once_and_released(void **state)
{
	if (!is_memfd())
		skip();
	run_ranks(3, map_and_forget, NULL);
}

/* All ranks copy, also those whose tensors could be read in place. */
static void copied(tensor_group *g, tensor *t)
{
	int before = buffers();

	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
	NEED(same(tensor_copy_(empty(LARGE, TENSOR_F32, false), t),
		  tensor_full(TENSOR_INTS(LARGE), S(tensor_group_size(g)), F32)));
	NEED(buffers() == before);
}

/* The root has mapped a part of each other rank, these the operands alone. */
static void map_parts(tensor_group *g, void *arg)
{
	int size = tensor_group_size(g), rank = tensor_group_rank(g);
	tensor *t = in_buffer(numbers(LARGE * 8, TENSOR_F32));

	for (int i = 0; i < 3; i++) {
		NEED(!tensor_group_reduce(g, rank ? NULL : t, t, TENSOR_GROUP_MAX, 0, NULL));
		NEED(buffers() == (rank ? size + 1 : 2 * size - 1));
	}
	/* A smaller share fits. */
	NEED(!tensor_group_reduce(g, rank == 1 ? t : NULL, t, TENSOR_GROUP_MAX, 1, NULL));
	tensor_release(t);
	NEED(!tensor_group_barrier(g, NULL));
}

static void parts_of_a_reduce_are_mapped_once(void **state)
{
	if (!is_memfd())
		skip();
	run_ranks(3, map_parts, NULL);
}

/* More ranks than there are bits in a word. */
static void of_many_ranks(tensor_group *g, void *arg)
{
	int size = tensor_group_size(g);
	tensor *t = in_buffer(tensor_full(TENSOR_INTS(LARGE), S(1), F32));

	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
	NEED(same(t, in_buffer(tensor_full(TENSOR_INTS(LARGE), S(size), F32))));
	NEED(buffers() >= size);
	tensor_release(t);
	NEED(!tensor_group_barrier(g, NULL));
}

static void any_number_of_ranks_reads_in_place(void **state)
{
	if (!is_memfd())
		skip();
	run_ranks(33, of_many_ranks, NULL);
}

static void one_rank_cannot(tensor_group *g, void *arg)
{
	bool is_one = tensor_group_rank(g) == 1;

	tensor_scope {
		tensor *ones = tensor_full(TENSOR_INTS(LARGE), S(1), F32);
		tensor *wide = tensor_full(TENSOR_INTS(2 * LARGE), S(1), SHAREABLE(TENSOR_F32));
		tensor *part = tensor_slice(wide, 0, 0, 2 * LARGE, 2);

		copied(g, is_one ? part : in_buffer(ones));
		copied(g, is_one ? ones : in_buffer(ones));
	}
}

static void one_rank_that_cannot_is_enough(void **state)
{
	run_ranks(3, one_rank_cannot, NULL);
}

/* Rank 1 has descriptors for itself, and none for what the others send. */
static void few_descriptors(tensor_group *g, void *arg)
{
	tensor *t = in_buffer(tensor_full(TENSOR_INTS(LARGE), S(1), F32));

	if (tensor_group_rank(g) == 1) {
		rlim_t n = (rlim_t)fcntl(0, F_DUPFD, 0) + 2;

		NEED(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ n, n }));
	}
	copied(g, t);
	NEED(!tensor_group_broadcast(g, t, 0, NULL));
	tensor_release(t);
}

static void rank_without_descriptors_copies(void **state)
{
	run_ranks(3, few_descriptors, NULL);
}

/* ---- beside other operations ---- */

static void beside_messages(tensor_group *g, void *arg)
{
	int rank = tensor_group_rank(g), size = tensor_group_size(g), next = (rank + 1) % size,
	    before = (rank + size - 1) % size;

	for (int i = 0; i < 20; i++)
		tensor_scope {
			tensor *t = in_buffer(tensor_full(TENSOR_INTS(LARGE), S(rank), F32));
			tensor *sent = in_buffer(tensor_full(TENSOR_INTS(LARGE), S(rank + i), F32));
			tensor *got = empty(LARGE, TENSOR_F32, i & 1);
			tensor_request *r[3];

			NEED(!tensor_group_send(g, sent, next, &r[0]));
			NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, &r[1]));
			NEED(!tensor_group_recv(g, got, before, &r[2]));
			for (int k = 0; k < 3; k++)
				NEED(!tensor_request_wait(r[k], -1));
			NEED(same(got, tensor_full(TENSOR_INTS(LARGE), S(before + i), F32)));
			NEED(same(t,
				  tensor_full(TENSOR_INTS(LARGE), S(size * (size - 1) / 2), F32)));
		}
}

static void messages_are_not_taken_for_tensors_in_place(void **state)
{
	run_ranks(3, beside_messages, NULL);
}

/* ---- what the owner does ---- */

/* A sealed buffer is read by the others; it cannot be a result. */
static void sealed(tensor_group *g, void *arg)
{
	int rank = tensor_group_rank(g);

	tensor_scope {
		tensor *t = in_buffer(tensor_full(TENSOR_INTS(LARGE), S(rank + 5), F32));

		if (!rank)
			NEED(!tensor_buffer_seal(t));
		NEED(!tensor_group_broadcast(g, t, 0, NULL));
		NEED(same(t, tensor_full(TENSOR_INTS(LARGE), S(5), F32)));
		if (rank)
			NEED(tensor_is_writable(t));
	}
}

static void sealed_buffers_are_read(void **state)
{
	run_ranks(3, sealed, NULL);
}

/* The owner changes and frees its tensor as soon as its call has returned. */
static void change_at_once(tensor_group *g, void *arg)
{
	int rank = tensor_group_rank(g), size = tensor_group_size(g);

	for (int i = 0; i < 50; i++)
		tensor_scope {
			tensor *t = in_buffer(tensor_full(TENSOR_INTS(LARGE), S(rank + i), F32));
			tensor *all = empty((int64_t)LARGE * size, TENSOR_F32, i & 1);

			if (rank == i % size)
				usleep(500);
			NEED(!tensor_group_all_gather(g, all, t, NULL));
			tensor_fill_(t, S(-1));
			for (int k = 0; k < size; k++)
				NEED(same(tensor_narrow(all, 0, (int64_t)k * LARGE, LARGE),
					  tensor_full(TENSOR_INTS(LARGE), S(k + i), F32)));
		}
}

static void owner_may_change_its_tensor_after_the_call(void **state)
{
	run_ranks(3, change_at_once, NULL);
}

/* Rank 1 stops after it has opened its buffer to the others, and is killed. */
static void killed_owner(tensor_group *g, void *arg)
{
	int rank = tensor_group_rank(g);
	tensor *t = in_buffer(tensor_full(TENSOR_INTS(LARGE), S(rank), F32));
	tensor_request *r;

	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
	if (rank == 1) {
		raise(SIGKILL);
		_exit(1);
	}
	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, &r));
	NEED_ERROR(tensor_request_wait(r, -1), ECONNRESET, "rank 1");
	tensor_release(t);
}

static void death_of_an_owner_is_an_error_that_names_it(void **state)
{
	const char *address = ranks_address();
	pid_t pids[3];

	for (int i = 0; i < 3; i++)
		pids[i] = rank_start(address, i, 3, INT64_C(60000000000), killed_owner, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rank_end(pids[i]), i == 1 ? -SIGKILL : 0);
}

static void sleep_long(int number)
{
	usleep(600000);
}

/* From rank 0 to rank 1: a broadcast, or a message. */
static int pass_on(tensor_group *g, tensor *t, bool is_message)
{
	if (!is_message)
		return tensor_group_broadcast(g, t, 0, NULL);
	return tensor_group_rank(g) ? tensor_group_recv(g, t, 0, NULL) :
				      tensor_group_send(g, t, 1, NULL);
}

/* Rank 1 is stopped while it reads, until rank 0 has given up and changed its tensor. */
static void give_up_early(tensor_group *g, void *is_message)
{
	const int64_t n = INT64_C(12) << 20;
	tensor *t;

	if (!tensor_group_rank(g)) {
		t = in_buffer(tensor_full(TENSOR_INTS(n), S(1), F32));
		NEED(!tensor_group_barrier(g, NULL));
		NEED_ERROR(pass_on(g, t, is_message), ETIMEDOUT, "rank");
		tensor_fill_(t, S(2));
		return;
	}
	signal(SIGALRM, sleep_long);
	t = tensor_empty(TENSOR_INTS(n), F32);
	NEED(!tensor_group_barrier(g, NULL)); /* rank 0 takes its time to fill the tensor */
	usleep(is_message ? 50000 : 0);	      /* the message is there */
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 2000 }, NULL);
	NEED_ERROR(pass_on(g, t, is_message), EPIPE, "rank 0 has left");
}

static void owner_that_gave_up_is_an_error(void **state)
{
	static bool is_message = true;
	pid_t pids[2];

	for (int kind = 0; kind < 2; kind++) {
		const char *address = ranks_address();

		for (int i = 0; i < 2; i++)
			pids[i] = rank_start(address, i, 2,
					     i ? INT64_C(60000000000) : INT64_C(250000000),
					     give_up_early, kind ? &is_message : NULL);
		for (int i = 0; i < 2; i++)
			assert_int_equal(rank_end(pids[i]), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_have_the_bits_of_copies),
		cmocka_unit_test(buffers_are_mapped_once_and_released),
		cmocka_unit_test(parts_of_a_reduce_are_mapped_once),
		cmocka_unit_test(any_number_of_ranks_reads_in_place),
		cmocka_unit_test(one_rank_that_cannot_is_enough),
		cmocka_unit_test(rank_without_descriptors_copies),
		cmocka_unit_test(messages_are_not_taken_for_tensors_in_place),
		cmocka_unit_test(sealed_buffers_are_read),
		cmocka_unit_test(owner_may_change_its_tensor_after_the_call),
		cmocka_unit_test(death_of_an_owner_is_an_error_that_names_it),
		cmocka_unit_test(owner_that_gave_up_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
