// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Device memory that libraries exchange through DLPack. On the emulation (make test-cuda) or a GPU, else skipped. */
#include "cuda_results.h"
#include "tests/cuda/host/include/cuda_host.h"

#include <tensor/dlpack.h>

static double sum_of(tensor *t)
{
	double v = -1;

	tensor_scope {
		assert_done(tensor_item(ok(tensor_sum(ok(t))), &v));
	}
	return v;
}

static void memory_is_shared(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *x = ok(tensor_full(TENSOR_SHAPE(4, 6), TENSOR_SCALAR(2.0), CUDA)), *y;
		tensor *part = ok(tensor_slice(tensor_t(x), 0, 1, 5, 2));
		struct DLManagedTensorVersioned *m = tensor_to_dlpack(part, 0);

		assert_non_null(m);
		assert_int_equal(m->dl_tensor.device.device_type, kDLCUDA);
		assert_int_equal(m->dl_tensor.device.device_id, 0);
		y = ok(tensor_from_dlpack(m));
		assert_int_equal(tensor_get_device(y).type, TENSOR_CUDA);
		assert_int_equal(tensor_size(y, 0), 2);
		assert_int_equal(tensor_size(y, 1), 4);
		ok(tensor_fill_(y, TENSOR_SCALAR(5.0)));
		assert_true(sum_of(x) == 24 * 2 + 8 * 3);
		assert_values(tensor_to(tensor_select(x, 0, 0), CPU), 0, 2, 5, 2, 5, 2, 2);
	}
}

/* ---- a producer ---- */

struct producer {
	DLManagedTensorVersioned managed;
	int64_t sizes[2];
	int deleted;
};

static void deleter(struct DLManagedTensorVersioned *m)
{
	((struct producer *)m->manager_ctx)->deleted++;
}

static struct DLManagedTensorVersioned *produce(struct producer *p, tensor *memory, int device)
{
	*p = (struct producer){ .managed = { .version = { 1, 0 }, .deleter = deleter } };
	p->managed.manager_ctx = p;
	p->sizes[0] = 300;
	p->managed.dl_tensor = (DLTensor){
		.data = tensor_device_data(memory),
		.device = { kDLCUDA, device },
		.ndim = 1,
		.dtype = { kDLFloat, 32, 1 },
		.shape = p->sizes,
	};
	return &p->managed;
}

/* The producer must not reuse the memory before queued work has read it. */
static void the_producer_is_told_after_the_work(void **state)
{
	const char *mode = getenv("CUDA_HOST_STREAMS");
	struct producer p;
	tensor *sum;

	NEED_DEVICE();
	tensor_scope {
		tensor *memory = ok(tensor_full(TENSOR_SHAPE(300), TENSOR_SCALAR(2.0), CUDA));

		assert_done(tensor_cuda_synchronize(0));
		tensor_scope {
			tensor *x = ok(tensor_from_dlpack(produce(&p, memory, 0)));

			for (int i = 0; i < 20; i++)
				x = ok(tensor_add(x, x));
			sum = tensor_retain(ok(tensor_sum(x)));
		}
		if (mode && !strcmp(mode, "lazy"))
			assert_int_equal(p.deleted, 0);
		assert_true(sum_of(sum) == 300 * 2.0 * (1 << 20));
		tensor_release(sum);
		assert_done(tensor_cuda_synchronize(0));
		assert_int_equal(p.deleted, 1);
	}
}

#define PENDING 20

static int deleted_last;

static void numbered_deleter(struct DLManagedTensorVersioned *m)
{
	const int number = (int)m->dl_tensor.byte_offset / 4;

	assert_int_equal(number, deleted_last + 1);
	deleted_last = number;
}

/* Thousands of entries may wait: a release looks at the first one of a stream alone. */
static void pending_releases_are_in_order(void **state)
{
	static struct producer p[PENDING];
	__typeof__(&cuda_host_fail) inject = emulation("cuda_host_fail");
	__typeof__(&cuda_host_calls) calls = emulation("cuda_host_calls");

	if (!inject || !calls) {
		print_message("# skipped: no emulation\n");
		skip();
	}
	tensor_scope {
		tensor *memory = ok(tensor_zeros(TENSOR_SHAPE(400), CUDA));

		assert_done(tensor_cuda_synchronize(0));
		deleted_last = -1;
		for (int i = 0; i < PENDING; i++) {
			produce(&p[i], memory, 0)->deleter = numbered_deleter;
			p[i].managed.dl_tensor.byte_offset = (uint64_t)i * 4;
			tensor_scope {
				ok(tensor_from_dlpack(&p[i].managed));
				inject("cudaEventQuery", 1, 600 /* cudaErrorNotReady */);
			}
			assert_int_equal(calls(), 1);
			inject(NULL, 0, 0);
		}
		assert_int_equal(deleted_last, -1);
		assert_done(tensor_cuda_synchronize(0));
		assert_int_equal(deleted_last, PENDING - 1);
	}
}

static void failing_deleter(struct DLManagedTensorVersioned *m)
{
	tensor_set_error(EIO, "of the deleter");
	deleter(m);
}

static void a_deleter_leaves_the_error_record(void **state)
{
	struct producer p;

	NEED_DEVICE();
	tensor_scope {
		tensor *memory = ok(tensor_zeros(TENSOR_SHAPE(300), CUDA));

		produce(&p, memory, 0)->deleter = failing_deleter;
		tensor_scope {
			ok(tensor_from_dlpack(&p.managed));
			tensor_set_error(EBUSY, "of the caller");
		}
		assert_done(tensor_cuda_synchronize(0));
		assert_int_equal(p.deleted, 1);
		assert_int_equal(tensor_last_error()->code, EBUSY);
		assert_string_equal(tensor_last_error()->text, "of the caller");
		tensor_clear_error();
		produce(&p, memory, 0)->deleter = failing_deleter;
		tensor_scope {
			ok(tensor_from_dlpack(&p.managed));
		}
		assert_done(tensor_cuda_synchronize(0));
		assert_int_equal(tensor_last_error()->code, 0);
	}
}

static void wrong_descriptions_are_refused(void **state)
{
	float host[300];
	struct producer p;
	tensor *memory;

	NEED_DEVICE();
	memory = tensor_retain(ok(tensor_zeros(TENSOR_SHAPE(300), CUDA)));
	tensor_scope {
		assert_fails(tensor_from_dlpack(produce(&p, memory, 99)), ENODEV, "cuda:99");
		assert_fails(tensor_from_dlpack(produce(&p, memory, -1)), ENODEV, "cuda:-1");
		if (tensor_cuda_device_count() > 1)
			assert_fails(tensor_from_dlpack(produce(&p, memory, 1)), EINVAL,
				     "not memory of cuda:1");
		produce(&p, memory, 0)->dl_tensor.data = host;
		assert_fails(tensor_from_dlpack(&p.managed), EINVAL, "not memory of cuda:0");
		produce(&p, memory, 0)->dl_tensor.data = NULL;
		assert_fails(tensor_from_dlpack(&p.managed), EINVAL, "without data");
		produce(&p, memory, 0)->dl_tensor.device.device_type = kDLROCM;
		assert_fails(tensor_from_dlpack(&p.managed), EOPNOTSUPP, "device type");
		assert_int_equal(p.deleted, 0);

		/* The bytes of 2.0f are no bools. */
		ok(tensor_fill_(memory, TENSOR_SCALAR(2.0)));
		produce(&p, memory, 0)->dl_tensor.dtype = (DLDataType){ kDLBool, 8, 1 };
		assert_fails(tensor_from_dlpack(&p.managed), EINVAL, "bool");
		ok(tensor_zero_(memory));
		assert_int_equal(tensor_dtype(ok(tensor_from_dlpack(&p.managed))), TENSOR_BOOL);
	}
	assert_done(tensor_cuda_synchronize(0));
	assert_int_equal(p.deleted, 1);
	tensor_release(memory);
}

static void memory_is_allocated_for_others(void **state)
{
	int64_t sizes[2] = { 3, 5 };
	DLTensor wanted = {
		.device = { kDLCUDA, 0 }, .ndim = 2, .dtype = { kDLFloat, 64, 1 }, .shape = sizes
	};
	DLManagedTensorVersioned *m = NULL;

	NEED_DEVICE();
	assert_int_equal(tensor_dlpack_allocate(&wanted, &m, NULL, NULL), 0);
	assert_int_equal(m->dl_tensor.device.device_type, kDLCUDA);
	m->deleter(m);
	wanted.device.device_id = 77;
	assert_int_equal(tensor_dlpack_allocate(&wanted, &m, NULL, NULL), -1);
}

static void a_capture_holds_memory_of_others(void **state)
{
	struct producer p;
	tensor_cuda_graph *g;

	NEED_DEVICE();
	g = tensor_cuda_graph_new(0);
	assert_non_null(g);
	tensor_scope {
		tensor *memory = ok(tensor_full(TENSOR_SHAPE(300), TENSOR_SCALAR(2.0), CUDA)), *y;

		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		tensor_scope {
			tensor *x = ok(tensor_from_dlpack(produce(&p, memory, 0)));

			y = tensor_retain(ok(tensor_add(x, x)));
		}
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_int_equal(p.deleted, 0);
		ok(tensor_fill_(memory, TENSOR_SCALAR(3.0)));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(sum_of(y) == 1800);
		tensor_release(y);
		assert_done(tensor_cuda_graph_release(g));
		assert_done(tensor_cuda_synchronize(0));
		assert_int_equal(p.deleted, 1);
	}
}

static void a_child_releases_what_it_inherited(void **state)
{
	struct producer p;
	int status;
	pid_t pid;

	NEED_DEVICE();
	tensor_scope {
		tensor *memory = ok(tensor_zeros(TENSOR_SHAPE(300), CUDA));
		tensor *x = tensor_retain(ok(tensor_from_dlpack(produce(&p, memory, 0))));

		pid = fork();
		if (!pid) {
			tensor *none =
				tensor_from_dlpack(produce(&(struct producer){ 0 }, memory, 0));

			_exit(!none && tensor_last_error()->code == ENODEV ? 0 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		tensor_release(x);
	}
	assert_done(tensor_cuda_synchronize(0));
	assert_int_equal(p.deleted, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_shared),
		cmocka_unit_test(the_producer_is_told_after_the_work),
		cmocka_unit_test(pending_releases_are_in_order),
		cmocka_unit_test(a_deleter_leaves_the_error_record),
		cmocka_unit_test(wrong_descriptions_are_refused),
		cmocka_unit_test(memory_is_allocated_for_others),
		cmocka_unit_test(a_capture_holds_memory_of_others),
		cmocka_unit_test(a_child_releases_what_it_inherited),
	};

	return cmocka_run_group_tests_name("cuda_dlpack", tests, NULL, NULL);
}
