// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Process groups of the engine "nccl" on the emulation of CUDA and NCCL: the order of streams, what the host waits for, and
 * ranks that differ, die or stand still. `make test-cuda` runs it; elsewhere its tests are skipped. What all engines
 * promise is in the tests of groups, which run with TEST_GROUP=nccl.
 */
#include "ranks.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <dlfcn.h>
#include <tensor/cuda.h>

#define SECONDS INT64_C(1000000000)
#define HERE	TENSOR_OPTIONS(.dtype = TENSOR_F32, .device = ranks_device)

/* Functions of the emulation, which the plugins have loaded. */
static struct {
	__typeof__(&cuda_host_counts) counts;
	__typeof__(&cuda_host_fail) inject;
	__typeof__(&cuda_host_set_streams) set_streams;
	__typeof__(&cuda_host_streams) streams;
	__typeof__(&cudaSetDevice) set_device;
	__typeof__(&cudaStreamCreateWithFlags) stream_create;
	void (*set_progress)(int on);
} host;

/* Within a rank. */
static void find_emulation(tensor_group *g)
{
	void *cuda = dlopen("libcuda_host.so", RTLD_NOW | RTLD_NOLOAD),
	     *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);

	NEED(cuda && nccl);
	host.counts = dlsym(cuda, "cuda_host_counts");
	host.inject = dlsym(cuda, "cuda_host_fail");
	host.set_streams = dlsym(cuda, "cuda_host_set_streams");
	host.streams = dlsym(cuda, "cuda_host_streams");
	host.set_device = dlsym(cuda, "cudaSetDevice");
	host.stream_create = dlsym(cuda, "cudaStreamCreateWithFlags");
	host.set_progress = dlsym(nccl, "nccl_host_set_progress");
	NEED(host.counts && host.inject && host.set_streams && host.streams && host.set_device &&
	     host.stream_create && host.set_progress);
}

#define NEED_EMULATION()                                                      \
	do {                                                                  \
		if (!ranks_are_nccl()) {                                      \
			print_message("# skipped: make test-cuda runs it\n"); \
			skip();                                               \
		}                                                             \
	} while (0)

static tensor *filled(double value, int64_t n)
{
	return tensor_full(TENSOR_INTS(n), TENSOR_SCALAR(value), HERE);
}

static bool is_all(tensor *t, double value)
{
	tensor *all = t ? tensor_all(tensor_eq_scalar(t, TENSOR_SCALAR(value))) : NULL;
	double same = 0;

	return all && !tensor_item(all, &same) && same == 1;
}

static double sum_of_ranks(tensor_group *g)
{
	int n = tensor_group_size(g);

	return n * (n - 1) / 2;
}

/* ---- streams ---- */

static void in_order(tensor_group *g, void *arg)
{
	struct cuda_host_counts before, after;

	find_emulation(g);
	for (int i = 0; i < 20; i++)
		tensor_scope {
			tensor *t = filled(tensor_group_rank(g), 1000), *sum, *later;

			host.counts(&before);
			t = tensor_add_scalar(t, TENSOR_SCALAR(i));
			sum = tensor_empty_like(t, HERE);
			NEED(!tensor_group_all_reduce(g, sum, t, TENSOR_GROUP_SUM, NULL));
			tensor_zero_(t);
			later = tensor_mul_scalar(sum, TENSOR_SCALAR(2));
			host.counts(&after);
			NEED(after.waits == before.waits);
			NEED(is_all(later, 2 * (sum_of_ranks(g) + i * tensor_group_size(g))));
			NEED(is_all(t, 0));
		}
}

static void collectives_are_work_of_the_stream(void **state)
{
	NEED_EMULATION();
	run_ranks(3, in_order, NULL);
}

static void captured(tensor_group *g, void *arg)
{
	tensor_cuda_graph *graph = tensor_cuda_graph_new(ranks_device.index);
	tensor *x = filled(1, 8), *out = filled(0, 8);

	NEED(graph && !tensor_cuda_graph_capture_begin(graph, NULL));
	NEED_ERROR(tensor_group_all_reduce(g, out, x, TENSOR_GROUP_SUM, NULL), EOPNOTSUPP,
		   "which a graph cannot capture");
	NEED_ERROR(tensor_cuda_graph_capture_end(graph), ECANCELED, "all_reduce");
	NEED(!tensor_cuda_graph_release(graph));
	NEED(!tensor_group_all_reduce(g, out, x, TENSOR_GROUP_SUM, NULL));
	NEED(is_all(out, tensor_group_size(g)));
}

static void collectives_are_no_part_of_a_graph(void **state)
{
	NEED_EMULATION();
	run_ranks(2, captured, NULL);
}

/* What was queued before a request comes before it, and what is queued after its wait comes after it. */
static void requests(tensor_group *g, void *arg)
{
	struct cuda_host_counts before, after;

	find_emulation(g);
	for (int i = 0; i < 20; i++)
		tensor_scope {
			tensor_request *r[3];
			tensor *t[3];

			host.counts(&before);
			for (int k = 0; k < 3; k++) {
				t[k] = tensor_add_scalar(filled(k, 5000 + i),
							 TENSOR_SCALAR(tensor_group_rank(g)));
				NEED(!tensor_group_all_reduce(g, t[k], t[k], TENSOR_GROUP_SUM,
							      &r[k]));
			}
			/* The memory of tensors that the program has released is not used for others. */
			filled(77, 5000 + i);
			for (int k = 2; k >= 0; k--) {
				NEED(!tensor_request_wait(r[k], -1));
				t[k] = tensor_add_scalar(t[k], TENSOR_SCALAR(1));
			}
			host.counts(&after);
			NEED(after.waits == before.waits);
			for (int k = 0; k < 3; k++)
				NEED(is_all(t[k], sum_of_ranks(g) + k * tensor_group_size(g) + 1));
		}
}

static void requests_are_ordered_by_their_wait(void **state)
{
	NEED_EMULATION();
	run_ranks(2, requests, NULL);
	run_ranks(4, requests, NULL);
}

/* Tensors that the program releases at once, and results that are not contiguous. */
static void released(tensor_group *g, void *arg)
{
	tensor_request *r[30];
	tensor *out[30];

	find_emulation(g);
	for (int i = 0; i < 30; i++)
		tensor_scope {
			tensor *wide = tensor_zeros(TENSOR_INTS(300, 2), HERE);
			tensor *in = tensor_add_scalar(filled(tensor_group_rank(g), 300),
						       TENSOR_SCALAR(i));

			out[i] =
				tensor_keep(tensor_slice(tensor_t(wide), 0, i & 1, 1 + (i & 1), 1));
			in = tensor_reshape(in, TENSOR_INTS(1, 300));
			NEED(!tensor_group_all_reduce(g, out[i], in, TENSOR_GROUP_MEAN, &r[i]));
		}
	for (int i = 0; i < 30; i++)
		tensor_scope {
			NEED(!tensor_request_wait(r[i], -1));
			NEED(is_all(out[i], sum_of_ranks(g) / tensor_group_size(g) + i));
			tensor_release(out[i]);
		}
}

static void requests_keep_their_tensors(void **state)
{
	NEED_EMULATION();
	run_ranks(2, released, NULL);
}

/* Of the device, not of the host. */
static void done(tensor_group *g, void *arg)
{
	int other = tensor_group_rank(g);

	find_emulation(g);
	tensor_scope {
		tensor *t = filled(other, 10);
		tensor_request *r;

		NEED(!tensor_cuda_synchronize(ranks_device.index));
		host.set_streams(CUDA_HOST_LAZY, 1);
		host.set_progress(!other);
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, &r));
		if (!other) {
			NEED(!tensor_group_barrier(g, NULL));
			usleep(20000);
			NEED(!tensor_request_done(r));
		} else {
			NEED(!tensor_group_barrier(g, NULL));
			usleep(100000);
			host.set_progress(1);
		}
		while (!tensor_request_done(r))
			usleep(1000);
		NEED(!tensor_request_wait(r, -1));
		NEED(is_all(t, 1));
	}
}

static void a_request_is_done_when_the_device_is(void **state)
{
	NEED_EMULATION();
	run_ranks(2, done, NULL);
}

/* Other streams of the program. */
static void streams(tensor_group *g, void *arg)
{
	cudaStream_t stream;

	find_emulation(g);
	NEED(!host.set_device(ranks_device.index));
	NEED(!host.stream_create(&stream, cudaStreamNonBlocking));
	tensor_scope {
		tensor *t = filled(tensor_group_rank(g), 1000);
		tensor_request *r;

		NEED(!tensor_cuda_synchronize(ranks_device.index));
		NEED(!tensor_cuda_set_stream(ranks_device.index, stream));
		t = tensor_add_scalar(t, TENSOR_SCALAR(1));
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
		t = tensor_add_scalar(t, TENSOR_SCALAR(1));
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, &r));
		NEED(!tensor_request_wait(r, -1));
		NEED(is_all(t, 2 * (sum_of_ranks(g) + 2 + 1)));
		NEED(!tensor_cuda_set_stream(ranks_device.index, NULL));
	}
}

static void operations_follow_the_current_stream(void **state)
{
	NEED_EMULATION();
	run_ranks(2, streams, NULL);
}

/* ---- ranks that differ ---- */

static void differ(tensor_group *g, void *arg)
{
	bool other = tensor_group_rank(g) == 1;

	find_emulation(g);
	tensor_scope {
		tensor *t = filled(1, 100),
		       *cpu = tensor_ones(TENSOR_INTS(100), TENSOR_OPTIONS(.dtype = TENSOR_F32));
		tensor *far = tensor_ones(
			TENSOR_INTS(100),
			TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(1 - ranks_device.index)));

		NEED_ERROR(tensor_group_all_reduce(g, other ? cpu : t, other ? cpu : t,
						   TENSOR_GROUP_SUM, NULL),
			   EINVAL,
			   "all_reduce: the ranks differ: rank 0 calls all_reduce (sum) of f32 "
			   "[100] on cuda, rank 1 all_reduce (sum) of f32 [100]");
		NEED_ERROR(tensor_group_broadcast(g, t, other, NULL), EINVAL, "with root 1 of");
		NEED_ERROR(tensor_group_broadcast(g, far, 0, NULL), EINVAL, "that of this rank is");
		/* Each kind of tensor by itself. */
		NEED(!tensor_group_all_reduce(g, cpu, cpu, TENSOR_GROUP_SUM, NULL));
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
		NEED(is_all(t, tensor_group_size(g)) && is_all(cpu, tensor_group_size(g)));
	}
}

static void tensors_of_the_host_are_not_those_of_a_device(void **state)
{
	NEED_EMULATION();
	run_ranks(2, differ, NULL);
	run_ranks(3, differ, NULL);
}

/* ---- a rank that is lost while the device works ---- */

static void stand_still(tensor_group *g)
{
	NEED(!tensor_cuda_synchronize(ranks_device.index));
	host.set_streams(CUDA_HOST_LAZY, 1);
	host.set_progress(0);
}

static void dies(tensor_group *g, void *arg)
{
	find_emulation(g);
	tensor_scope {
		tensor *t = filled(1, 100);

		if (tensor_group_rank(g) == 1)
			stand_still(g);
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
		if (tensor_group_rank(g) == 1)
			raise(SIGKILL);
		/* The kernel would wait for ever. */
		NEED(!tensor_cuda_synchronize(ranks_device.index));
		NEED_ERROR(tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL), ECONNRESET,
			   "all_reduce: rank 1 (process ");
		NEED_ERROR(tensor_group_barrier(g, NULL), ECONNRESET, "rank 1");
	}
}

static void a_rank_that_dies_ends_what_the_device_does(void **state)
{
	const char *address = ranks_address();
	pid_t pids[3];

	NEED_EMULATION();
	for (int i = 0; i < 3; i++)
		pids[i] = rank_start(address, i, 3, 60 * SECONDS, dies, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rank_end(pids[i]), i == 1 ? -SIGKILL : 0);
}

/* The error of one rank ends the others' operations, which have begun. */
static void fails(tensor_group *g, void *arg)
{
	find_emulation(g);
	tensor_scope {
		tensor *t = filled(1, 100);

		if (tensor_group_rank(g) == 1) {
			host.inject("ncclAllReduce", 1, 2);
			NEED_ERROR(tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL), EIO,
				   "all_reduce: unhandled system error");
			NEED_ERROR(tensor_group_barrier(g, NULL), EIO, "unhandled system error");
		} else {
			NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
			NEED(!tensor_cuda_synchronize(ranks_device.index));
			NEED_ERROR(tensor_group_barrier(g, NULL), EPIPE,
				   "has left the group after an error");
		}
	}
}

static void an_error_of_one_rank_ends_the_others_operations(void **state)
{
	NEED_EMULATION();
	run_ranks(3, fails, NULL);
}

static void late(tensor_group *g, void *arg)
{
	find_emulation(g);
	tensor_scope {
		tensor *t = filled(1, 100);

		if (tensor_group_rank(g) == 1)
			stand_still(g);
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
		NEED(tensor_group_rank(g) == 1 || !tensor_cuda_synchronize(ranks_device.index));
		/* Of the rank that has found it first. */
		if (tensor_group_rank(g) == 1)
			usleep(1500000);
		else
			NEED(tensor_group_barrier(g, NULL) < 0 &&
			     (strstr(tensor_last_error()->text,
				     "the device has not carried it out within 500 ms") ||
			      strstr(tensor_last_error()->text, "rank 1 has left the group")));
	}
}

static void a_device_that_stands_still_ends_the_group(void **state)
{
	NEED_EMULATION();
	run_ranks_for(2, SECONDS / 2, late, NULL);
}

/* ---- joining, leaving ---- */

static void no_group(int rank, const char *address, int code, const char *words)
{
	tensor_group *g = tensor_group_open(
		"nccl", TENSOR_GROUP_OPTIONS(.rank = rank, .size = 2, .address = address,
					     .timeout_ns = 20 * SECONDS));

	if (g || tensor_last_error()->code != code || !strstr(tensor_last_error()->text, words)) {
		fprintf(stderr, "# rank %d: %s\n", rank, tensor_last_error()->text);
		_exit(1);
	}
}

/* Of two ranks one cannot join. */
static void refused(const char *variable, const char *value, int code, const char *words)
{
	const char *address = ranks_address();
	pid_t pids[2];

	for (int rank = 0; rank < 2; rank++) {
		pids[rank] = fork();
		if (pids[rank])
			continue;
		alarm(60);
		if (rank == 1)
			setenv(variable, value, 1);
		no_group(rank, address, code, words);
		_exit(0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(rank_end(pids[i]), 0);
}

static void a_rank_that_cannot_join_is_an_error_of_all(void **state)
{
	NEED_EMULATION();
	refused("TENSOR_NCCL", "/no/such/library", ENOTSUP,
		"group_open: nccl: rank 1: /no/such/library");
	refused("TENSOR_NCCL", "libm.so.6", ENOTSUP, "ncclGetVersion");
	refused("CUDA_HOST_DEVICES", "0", ENODEV, "group_open: nccl: rank 1: cuda: no device");
}

static void forked(tensor_group *g, void *arg)
{
	tensor *t = filled(1, 10);
	pid_t pid;

	NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
	pid = fork();
	if (!pid) {
		NEED_ERROR(tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL), EBUSY,
			   "the group is the parent's");
		tensor_group_close(g);
		_exit(0);
	}
	NEED(rank_end(pid) == 0);
	NEED(is_all(t, 2));
	tensor_release(t);
}

static void a_child_has_no_group(void **state)
{
	NEED_EMULATION();
	run_ranks(2, forked, NULL);
}

/* Requests are waited for after the group was closed, which waits for the device. */
static void closed(tensor_group *g, void *arg)
{
	tensor_request *r[5];
	tensor *t = filled(1, 1000);
	int rank = tensor_group_rank(g), size = tensor_group_size(g);

	for (int i = 0; i < 5; i++)
		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, &r[i]));
	while (!tensor_request_done(r[4]))
		usleep(1000);
	usleep(rank ? 100000 : 0);
	tensor_group_close(g);
	for (int i = 0; i < 5; i++)
		NEED(!tensor_request_wait(r[i], -1));
	NEED(is_all(t, size * size * size * size * size));
	tensor_release(t);
	_exit(0);
}

static void requests_outlive_the_group(void **state)
{
	NEED_EMULATION();
	run_ranks(2, closed, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives_are_work_of_the_stream),
		cmocka_unit_test(collectives_are_no_part_of_a_graph),
		cmocka_unit_test(requests_are_ordered_by_their_wait),
		cmocka_unit_test(requests_keep_their_tensors),
		cmocka_unit_test(a_request_is_done_when_the_device_is),
		cmocka_unit_test(operations_follow_the_current_stream),
		cmocka_unit_test(tensors_of_the_host_are_not_those_of_a_device),
		cmocka_unit_test(a_rank_that_dies_ends_what_the_device_does),
		cmocka_unit_test(an_error_of_one_rank_ends_the_others_operations),
		cmocka_unit_test(a_device_that_stands_still_ends_the_group),
		cmocka_unit_test(a_rank_that_cannot_join_is_an_error_of_all),
		cmocka_unit_test(a_child_has_no_group),
		cmocka_unit_test(requests_outlive_the_group),
	};

	return cmocka_run_group_tests_name("cuda_group", tests, NULL, NULL);
}
