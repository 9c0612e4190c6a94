// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * DLPack: exported and imported tensors share memory and have the right lifetime; invalid
 * structures are refused.
 */
#include "check.h"

#include <pthread.h>
#include <sys/mman.h>
#include <tensor/dlpack.h>

#include "dlpack_layout.h"

static void call_deleter(struct DLManagedTensorVersioned *m)
{
	assert_non_null(m);
	m->deleter(m);
}

/* A tensor of another library: its deleter counts its calls. */
struct foreign {
	struct DLManagedTensorVersioned managed;
	int64_t shape[20], strides[20];
	float data[24];
	int deleted;
};

static void foreign_deleter(struct DLManagedTensorVersioned *m)
{
	((struct foreign *)m->manager_ctx)->deleted++;
}

/* [2, 3] of f32, 0 to 5 */
static struct foreign foreign_new(void)
{
	struct foreign f = { .shape = { 2, 3 }, .strides = { 3, 1 } };

	for (int i = 0; i < 24; i++)
		f.data[i] = (float)i;
	f.managed.version.major = 1;
	f.managed.deleter = foreign_deleter;
	f.managed.dl_tensor =
		(DLTensor){ .device = { kDLCPU, 0 }, .ndim = 2, .dtype = { kDLFloat, 32, 1 } };
	return f;
}

/* Sets the pointers, which refer to the struct's final place. */
static struct DLManagedTensorVersioned *foreign_place(struct foreign *f)
{
	f->managed.manager_ctx = f;
	f->managed.dl_tensor.data = f->data;
	f->managed.dl_tensor.shape = f->shape;
	f->managed.dl_tensor.strides = f->strides;
	return &f->managed;
}

/* ---- export ---- */

static void exported_tensor_keeps_its_geometry(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3)),
		       *t = ok(tensor_slice(ok(tensor_t(x)), 0, 1, 3, 1));
		struct DLManagedTensorVersioned *m = tensor_to_dlpack(t, 0);
		const DLTensor *d = &m->dl_tensor;

		assert_int_equal(m->version.major, DLPACK_MAJOR_VERSION);
		assert_int_equal(m->version.minor, DLPACK_MINOR_VERSION);
		assert_int_equal(m->flags, 0);
		assert_ptr_equal((char *)d->data + d->byte_offset, tensor_data(t));
		assert_int_equal(d->device.device_type, kDLCPU);
		assert_int_equal(d->ndim, 2);
		assert_int_equal(d->shape[0], 2);
		assert_int_equal(d->strides[0], 1);
		assert_int_equal(d->strides[1], 3);
		assert_int_equal(d->dtype.code, kDLFloat);
		assert_int_equal(d->dtype.bits, 32);
		assert_int_equal(d->dtype.lanes, 1);
		call_deleter(m);
		m = tensor_to_dlpack(x, TENSOR_DLPACK_COPIED);
		assert_int_equal(m->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
		call_deleter(m);
		m = tensor_to_dlpack(ok(tensor_empty(TENSOR_INTS(0, 3), F32)), 0);
		assert_null(m->dl_tensor.data);
		call_deleter(m);
	}
}

static void every_dtype_is_exported_and_imported(void **state)
{
	for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++)
		tensor_scope {
			tensor *x = ok(tensor_to(iota(0, TENSOR_INTS(2)), OF(d))), *y;
			struct DLManagedTensorVersioned *m = tensor_to_dlpack(x, 0);

			assert_non_null(m);
			y = ok(tensor_from_dlpack(m));
			assert_int_equal(tensor_dtype(y), d);
			assert_ptr_equal(tensor_data(y), tensor_data(x));
			assert_values(ok(tensor_to(y, F64)), 0, 0, 1);
		}
}

/* The memory outlives the tensor, its views, its scope, and changes of its shape and size. */
static void exported_memory_outlives_its_tensor(void **state)
{
	struct DLManagedTensorVersioned *m = NULL;
	struct DLManagedTensor *plain = NULL;
	float *data;

	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3));

		m = tensor_to_dlpack(x, 0);
		plain = tensor_to_dlpack_unversioned(x, 0);
		ok(tensor_t_(x));
		ok(tensor_resize_(x, TENSOR_INTS(1000, 1000)));
		ok(tensor_zero_(x));
	}
	data = m->dl_tensor.data;
	assert_int_equal(m->dl_tensor.shape[1], 3);
	assert_true(data[5] == 5);
	call_deleter(m);
	data = plain->dl_tensor.data;
	assert_true(data[4] == 4);
	plain->deleter(plain);
}

static void *call_deleter_in_thread(void *m)
{
	call_deleter(m);
	return NULL;
}

static void other_threads_may_release_exported_tensors(void **state)
{
	pthread_t thread;

	for (int i = 0; i < 100; i++)
		tensor_scope {
			tensor *x = iota(0, TENSOR_INTS(3));
			struct DLManagedTensorVersioned *m = tensor_to_dlpack(x, 0);

			assert_int_equal(pthread_create(&thread, NULL, call_deleter_in_thread, m),
					 0);
			assert_values(ok(tensor_neg(x)), 0, 0, -1, -2);
			pthread_join(thread, NULL);
		}
}

static void tensors_without_dlpack_form_are_refused(void **state)
{
	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(2, 3)), *q;

		assert_fails(tensor_to_dlpack(NULL, 0), EINVAL, "");
		assert_fails(tensor_to_dlpack(tensor_none, 0), EINVAL, "got tensor_none");
		assert_fails(tensor_to_dlpack(x, 2), EINVAL, "flags");
		assert_fails(tensor_to_dlpack(ok(tensor_to_sparse(x)), 0), EOPNOTSUPP, "strided");
		q = ok(tensor_quantize_per_tensor(x, 0.1, 0, TENSOR_U8));
		assert_fails(tensor_to_dlpack(q, 0), EOPNOTSUPP, "plain");
		assert_done(tensor_set_requires_grad(x, true));
		assert_fails(tensor_to_dlpack(x, 0), EINVAL, "gradient");
		assert_fails(tensor_to_dlpack_unversioned(ok(tensor_mul(x, x)), 0), EINVAL,
			     "gradient");
		call_deleter(tensor_to_dlpack(ok(tensor_detach(x)), 0));
	}
}

static int device_alloc(const struct tensor_allocator *self, tensor_device device, size_t nbytes,
			void **data)
{
	*data = aligned_alloc(64, (nbytes + 63) / 64 * 64);
	return *data ? 0 : -ENOMEM;
}

static void device_free(const struct tensor_allocator *self, tensor_device device, void *data,
			size_t nbytes)
{
	free(data);
}

static void memory_of_other_devices_is_refused(void **state)
{
	static const struct tensor_allocator allocator = { .name = "npu",
							   .alloc = device_alloc,
							   .free = device_free };
	tensor_device npu;

	assert_true(tensor_register_backend("npu", &allocator, &npu) >= 0);
	tensor_scope {
		tensor *t = ok(tensor_empty_on(npu, TENSOR_INTS(2), TENSOR_F32));

		assert_fails(tensor_to_dlpack(t, 0), EOPNOTSUPP,
			     "not that of npu: copy the tensor to the CPU first");
	}
}

static void description_belongs_to_the_tensor(void **state)
{
	float *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	DLTensor d = { .ndim = 99 };

	tensor_scope {
		tensor *t = ok(tensor_t(iota(0, TENSOR_INTS(2, 3)))), *constant;

		assert_done(tensor_to_dltensor(t, &d));
		assert_ptr_equal(d.data, tensor_data(t));
		assert_ptr_equal(d.shape, tensor_sizes(t));
		assert_ptr_equal(d.strides, tensor_strides(t));
		assert_int_equal(d.ndim, 2);
		assert_int_equal(d.byte_offset, 0);
		assert_int_equal(d.dtype.code, kDLFloat);
		d.ndim = 99;
		assert_fails(tensor_to_dltensor(NULL, &d), EINVAL, "");
		assert_fails(tensor_to_dltensor(t, NULL), EINVAL, "NULL");
		assert_fails(tensor_to_dltensor(ok(tensor_to_sparse(t)), &d), EOPNOTSUPP,
			     "sparse_coo");
		constant = ok(tensor_from_blob_readonly(page, TENSOR_SHAPE(3), TENSOR_NO_INTS, F32,
							NULL, NULL));
		assert_fails(tensor_to_dltensor(constant, &d), EACCES, "read-only");
		assert_done(tensor_set_requires_grad(t, true));
		assert_fails(tensor_to_dltensor(t, &d), EINVAL, "gradient");
		assert_int_equal(d.ndim, 99);
	}
	munmap(page, 4096);
}

static void keep_error(void *ctx, const char *kind, const char *message)
{
	snprintf(ctx, 200, "%s: %s", kind, message);
}

static void allocator_gives_tensors_of_the_prototype(void **state)
{
	const DLPackManagedTensorAllocator allocate = tensor_dlpack_allocate;
	int64_t shape[] = { 2, 3 };
	DLTensor d = { .device = { kDLCPU, 0 }, .ndim = 2, .dtype = { kDLInt, 16, 1 } };
	DLManagedTensorVersioned *m = NULL;
	char error[200] = "";

	d.shape = shape;
	assert_int_equal(allocate(&d, &m, error, keep_error), 0);
	assert_int_equal(m->dl_tensor.ndim, 2);
	assert_int_equal(m->dl_tensor.shape[1], 3);
	assert_int_equal(m->dl_tensor.dtype.bits, 16);
	assert_int_equal(m->flags, 0);
	memset(m->dl_tensor.data, 0, 12);
	call_deleter(m);
	assert_string_equal(error, "");
	m = NULL;
	shape[0] = INT64_MAX / 8;
	assert_int_equal(allocate(&d, &m, error, keep_error), -1);
	assert_contains(error, "MemoryError: ");
	shape[0] = -1;
	assert_int_equal(allocate(&d, &m, error, keep_error), -1);
	assert_contains(error, "BufferError: dlpack_allocate: size -1");
	d.dtype.lanes = 2;
	assert_int_equal(allocate(&d, &m, error, keep_error), -1);
	assert_contains(error, "BufferError: dlpack_allocate: data type int with 2 lanes");
	d.device.device_type = kDLROCM;
	assert_int_equal(allocate(&d, &m, error, keep_error), -1);
	assert_contains(error, "device type 10");
	assert_int_equal(allocate(NULL, &m, error, keep_error), -1);
	assert_contains(error, "NULL");
	assert_int_equal(allocate(&d, &m, NULL, NULL), -1);
	assert_null(m);
}

/* ---- import ---- */

static void imported_memory_lives_until_its_last_view(void **state)
{
	struct foreign f = foreign_new();
	tensor *t = ok(tensor_from_dlpack(foreign_place(&f))), *row = ok(tensor_select(t, 0, 1)),
	       *saved;

	assert_values(t, 0, 0, 1, 2, 3, 4, 5);
	f.data[4] = 40;
	ok(tensor_mul_scalar_(row, TENSOR_SCALAR(2)));
	assert_true(f.data[3] == 6 && f.data[4] == 80);
	saved = ok(tensor_detach(row));
	tensor_release(t);
	tensor_release(row);
	assert_int_equal(f.deleted, 0);
	assert_values(saved, 0, 6, 80, 10);
	tensor_release(saved);
	assert_int_equal(f.deleted, 1);
	/* The deleter and the strides may be NULL. */
	f.managed.deleter = NULL;
	f.managed.dl_tensor.strides = NULL;
	t = ok(tensor_from_dlpack(&f.managed));
	assert_true(tensor_is_contiguous(t));
	tensor_release(t);
	assert_int_equal(f.deleted, 1);
}

static void strides_and_offsets_are_followed(void **state)
{
	struct foreign f = foreign_new();
	DLTensor *d = &foreign_place(&f)->dl_tensor;

	tensor_scope {
		f.strides[0] = -3;
		f.strides[1] = -1;
		d->byte_offset = 20;
		assert_values(ok(tensor_from_dlpack(&f.managed)), 0, 5, 4, 3, 2, 1, 0);
	}
	tensor_scope {
		f.strides[0] = 0;
		f.strides[1] = 2;
		d->byte_offset = 4;
		assert_values(ok(tensor_from_dlpack(&f.managed)), 0, 1, 3, 5, 1, 3, 5);
	}
	tensor_scope {
		d->ndim = 0;
		d->shape = d->strides = NULL;
		assert_values(ok(tensor_from_dlpack(&f.managed)), 0, 1);
	}
	tensor_scope {
		tensor *none;

		d->ndim = 2;
		d->shape = f.shape;
		d->strides = f.strides;
		f.shape[0] = 1;
		f.strides[0] = INT64_MIN; /* points outside the address space */
		assert_values(ok(tensor_from_dlpack(&f.managed)), 0, 1, 3, 5);
		f.shape[1] = 0;
		f.strides[1] = INT64_MAX;
		d->data = NULL;
		none = ok(tensor_from_dlpack(&f.managed));
		assert_shape(none, 1, 0);
	}
	assert_int_equal(f.deleted, 5);
}

static void read_only_memory_stays_read_only(void **state)
{
	float *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct foreign f = foreign_new();
	struct DLManagedTensorVersioned *m;

	foreign_place(&f)->dl_tensor.data = page;
	f.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
	tensor_scope {
		tensor *t = ok(tensor_from_dlpack(&f.managed));

		assert_false(tensor_is_writable(t));
		assert_fails(tensor_add_scalar_(t, TENSOR_SCALAR(1)), EACCES, "");
		assert_fails(tensor_to_dlpack_unversioned(t, 0), EACCES, "read-only");
		m = tensor_to_dlpack(t, 0);
		assert_int_equal(m->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
		call_deleter(m);
	}
	assert_int_equal(f.deleted, 1);
	munmap(page, 4096);
}

/* A later minor version adds enumerators and flags and changes nothing else. */
static void later_minor_versions_and_their_flags_are_accepted(void **state)
{
	const uint32_t minors[] = { 0, DLPACK_MINOR_VERSION, DLPACK_MINOR_VERSION + 1, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct foreign f = foreign_new();

		foreign_place(&f)->version.minor = minors[i];
		f.managed.flags = UINT64_MAX & ~DLPACK_FLAG_BITMASK_READ_ONLY;
		tensor_scope {
			tensor *t = ok(tensor_from_dlpack(&f.managed));

			assert_true(tensor_is_writable(t));
			assert_values(t, 0, 0, 1, 2, 3, 4, 5);
		}
		assert_int_equal(f.deleted, 1);
	}
}

static void pinned_host_memory_is_accepted(void **state)
{
	const DLDeviceType pinned[] = { kDLCUDAHost, kDLROCMHost };

	for (size_t i = 0; i < ARRAY_SIZE(pinned); i++) {
		struct foreign f = foreign_new();

		foreign_place(&f)->dl_tensor.device.device_type = pinned[i];
		tensor_scope {
			assert_values(ok(tensor_from_dlpack(&f.managed)), 0, 0, 1, 2, 3, 4, 5);
		}
		assert_int_equal(f.deleted, 1);
	}
}

/* Makes one field invalid; a refused structure stays with the caller. */
#define LIE(errno_, words, change)                                           \
	do {                                                                 \
		struct foreign f = foreign_new();                            \
		DLTensor *d = &foreign_place(&f)->dl_tensor;                 \
                                                                             \
		(void)d;                                                     \
		change;                                                      \
		assert_fails(tensor_from_dlpack(&f.managed), errno_, words); \
		assert_int_equal(f.deleted, 0);                              \
	} while (0)

static void invalid_structures_are_refused(void **state)
{
	LIE(EOPNOTSUPP, "version", f.managed.version.major = 2);
	LIE(EOPNOTSUPP, "version", f.managed.version.major = 0);
	LIE(EINVAL, "dimensions", d->ndim = -1);
	LIE(EINVAL, "dimensions", d->ndim = INT32_MIN);
	LIE(EOPNOTSUPP, "dimensions", d->ndim = 17);
	LIE(EOPNOTSUPP, "dimensions", d->ndim = INT32_MAX);
	LIE(EINVAL, "shape", d->shape = NULL);
	LIE(EINVAL, "negative", f.shape[1] = -1);
	LIE(EINVAL, "negative", f.shape[0] = INT64_MIN);
	LIE(EINVAL, "data", d->data = NULL);
	LIE(EINVAL, "aligned", d->byte_offset = 2);
	LIE(EOPNOTSUPP, "lanes", d->dtype.lanes = 4);
	LIE(EOPNOTSUPP, "lanes", d->dtype.lanes = 0);
	LIE(EOPNOTSUPP, "float with 2 lanes, vectors", d->dtype.lanes = 2);
	LIE(EOPNOTSUPP, "smaller than a byte", d->dtype = ((DLDataType){ kDLInt, 4, 1 }));
	LIE(EOPNOTSUPP, "float4_e2m1fn of 4 bits, elements smaller than a byte",
	    (d->dtype = (DLDataType){ kDLFloat4_e2m1fn, 4, 1 },
	     f.managed.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED));
	LIE(EOPNOTSUPP, "bool of 1 bits", d->dtype = ((DLDataType){ kDLBool, 1, 1 }));
	LIE(EOPNOTSUPP, "of 0 bits", d->dtype.bits = 0);
	LIE(EOPNOTSUPP, "float8_e5m2fnuz (code 13)",
	    d->dtype = ((DLDataType){ kDLFloat8_e5m2fnuz, 8, 1 }));
	LIE(EOPNOTSUPP, "bits", d->dtype.bits = 128);
	LIE(EOPNOTSUPP, "code", d->dtype.code = 99);
	LIE(EOPNOTSUPP, "device", d->device.device_type = kDLROCM);
	LIE(EOPNOTSUPP, "device", d->device.device_type = 0);
	LIE(EOPNOTSUPP, "device type 13", d->device.device_type = kDLCUDAManaged);
	LIE(EOPNOTSUPP, "device type 18", d->device.device_type = kDLTrn);
	LIE(EINVAL, "bool", (d->dtype = (DLDataType){ kDLBool, 8, 1 }, f.data[0] = 1));
	LIE(EOVERFLOW, "", f.shape[0] = INT64_MAX);
	LIE(EOVERFLOW, "", f.strides[0] = INT64_MAX);
	LIE(EOVERFLOW, "", f.strides[0] = INT64_MIN);
	LIE(EOVERFLOW, "", (f.strides[0] = INT64_MAX / 2, f.strides[1] = -INT64_MAX / 2));
	LIE(EOVERFLOW, "",
	    (f.shape[0] = f.shape[1] = 1l << 31, d->strides = NULL, f.shape[1] = 1l << 30));
	LIE(EOVERFLOW, "", d->byte_offset = UINT64_MAX - 3);
	LIE(EOVERFLOW, "", f.strides[0] = -(INT64_MAX / 8));
	assert_fails(tensor_from_dlpack(NULL), EINVAL, "NULL");
	assert_fails(tensor_from_dlpack_unversioned(NULL), EINVAL, "NULL");
}

/* Resizing allocates memory of the library; sending and saving copy. */
static void imported_tensor_works_with_all_functions(void **state)
{
	struct foreign f = foreign_new();

	tensor_scope {
		tensor *t = ok(tensor_from_dlpack(foreign_place(&f))), *w = ok(tensor_detach(t));

		assert_done(tensor_set_requires_grad(w, true));
		assert_done(tensor_backward(ok(tensor_sum(ok(tensor_mul(w, t))))));
		assert_values(tensor_grad(w), 0, 0, 1, 2, 3, 4, 5);
		assert_fails(tensor_share_memory(t), EOPNOTSUPP, "");
		ok(tensor_resize_(t, TENSOR_INTS(100)));
		ok(tensor_zero_(t));
		assert_true(f.data[23] == 23);
	}
	assert_int_equal(f.deleted, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exported_tensor_keeps_its_geometry),
		cmocka_unit_test(every_dtype_is_exported_and_imported),
		cmocka_unit_test(exported_memory_outlives_its_tensor),
		cmocka_unit_test(other_threads_may_release_exported_tensors),
		cmocka_unit_test(tensors_without_dlpack_form_are_refused),
		cmocka_unit_test(memory_of_other_devices_is_refused),
		cmocka_unit_test(description_belongs_to_the_tensor),
		cmocka_unit_test(allocator_gives_tensors_of_the_prototype),
		cmocka_unit_test(imported_memory_lives_until_its_last_view),
		cmocka_unit_test(strides_and_offsets_are_followed),
		cmocka_unit_test(read_only_memory_stays_read_only),
		cmocka_unit_test(later_minor_versions_and_their_flags_are_accepted),
		cmocka_unit_test(pinned_host_memory_is_accepted),
		cmocka_unit_test(invalid_structures_are_refused),
		cmocka_unit_test(imported_tensor_works_with_all_functions),
	};

	return cmocka_run_group_tests_name("dlpack", tests, NULL, NULL);
}
