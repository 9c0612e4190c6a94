// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Tensors in files: bytes that NumPy and other programs wrote, the bytes that the library writes,
 * and round trips for every dtype, shape and stride.
 */
#include "files.h"

static const struct tensor_load_options readonly = { .map = TENSOR_MAP_READONLY };
static const struct tensor_load_options private = { .map = TENSOR_MAP_PRIVATE };

/* The output of numpy.save() of NumPy 2 for arange(6, dtype='<f4').reshape(2, 3). */
#define NPY_2X3                                                                                \
	"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" \
	"                                                          \n"
static const float six[] = { 0, 1, 2, 3, 4, 5 };

static void npy_bytes_equal_those_of_numpy(void **state)
{
	unsigned char golden[128 + sizeof(six)], *ours;
	size_t n;

	assert_int_equal(sizeof(NPY_2X3) - 1, 128);
	join(golden, NPY_2X3, 128, six, sizeof(six));
	write_file("golden.npy", golden, sizeof(golden));
	tensor_scope {
		tensor *t = ok(tensor_load_npy("golden.npy", NULL));

		assert_shape(t, 2, 3);
		assert_int_equal(tensor_dtype(t), TENSOR_F32);
		assert_values(t, 0, 0, 1, 2, 3, 4, 5);
		assert_done(tensor_save_npy("ours.npy", t));
	}
	ours = read_file("ours.npy", &n);
	assert_int_equal(n, sizeof(golden));
	assert_memory_equal(ours, golden, n);
	free(ours);
}

/*
 * Variants that other programs write: versions 2 and 3, double quotes, other orders, no trailing
 * comma, 2L.
 */
static void header_variants_of_other_writers_are_read(void **state)
{
	static const struct {
		const char *head;
		size_t n;
	} heads[] = {
#define HEAD(s) { s, sizeof(s) - 1 }
		HEAD("\x93NUMPY\x02\x00?\x00\x00\x00"
		     "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}\n"),
		HEAD("\x93NUMPY\x03\x00?\x00\x00\x00"
		     "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2, 3,),}  \n"),
		HEAD("\x93NUMPY\x01\x00?\x00{'shape': (2L, 3L), 'fortran_order': False, 'descr': "
		     "'=f4', }\n"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		unsigned char file[256];
		size_t n = join(file, heads[i].head, heads[i].n, six, sizeof(six));

		file[8] = (unsigned char)(heads[i].n - (file[6] == 1 ? 10 : 12));
		write_file("other.npy", file, n);
		tensor_scope {
			tensor *t = ok(tensor_load_npy("other.npy", NULL));

			assert_shape(t, 2, 3);
			assert_values(t, 0, 0, 1, 2, 3, 4, 5);
		}
	}
}

static void big_endian_files_are_swapped(void **state)
{
	static const unsigned char data[] = { 0x40, 0x49, 0x0f, 0xdb, 0xc0, 0, 0, 0 };
	unsigned char file[256];
	const char head[] =
		"\x93NUMPY\x01\x00\x3a\x00{'descr': '>c8', 'fortran_order': False, 'shape': "
		"(1,), }\n";
	size_t n = join(file, head, sizeof(head) - 1, data, sizeof(data));

	write_file("swapped.npy", file, n);
	tensor_scope {
		tensor *t = ok(tensor_load_npy("swapped.npy", NULL));
		const float *v = tensor_data(t);

		assert_int_equal(tensor_dtype(t), TENSOR_C64);
		assert_true(v[0] == 3.14159274f && v[1] == -2);
		assert_fails(tensor_load_npy("swapped.npy", &readonly), EOPNOTSUPP, "byte order");
	}
}

static void fortrans_order_becomes_strides(void **state)
{
	tensor_scope {
		tensor *t = iota(1, TENSOR_INTS(4, 3, 2)), *turned, *back;

		turned = ok(tensor_permute(t, TENSOR_INTS(2, 1, 0)));
		assert_done(tensor_save_npy("fortran.npy", turned));
		back = ok(tensor_load_npy("fortran.npy", NULL));
		assert_shape(back, 2, 3, 4);
		assert_int_equal(tensor_stride(back, 0), 1);
		assert_int_equal(tensor_stride(back, 1), 2);
		assert_int_equal(tensor_stride(back, 2), 6);
		assert_values(tensor_sum(tensor_sub(back, turned)), 0, 0);
		assert_values(tensor_select(tensor_select(back, 0, 1), 0, 2), 0, 6, 12, 18, 24);
	}
}

/* ---- round trips ---- */

static bool same_tensor(tensor *a, tensor *b)
{
	size_t n = tensor_numel(a) * tensor_itemsize(tensor_dtype(a));
	char *x = malloc(n + 1), *y = malloc(n + 1);
	bool equal = tensor_dtype(a) == tensor_dtype(b) && tensor_dim(a) == tensor_dim(b);

	for (int i = 0; equal && i < tensor_dim(a); i++)
		equal = tensor_size(a, i) == tensor_size(b, i);
	if (equal) {
		assert_done(tensor_copy_to(a, x, n));
		assert_done(tensor_copy_to(b, y, n));
		equal = !memcmp(x, y, n);
	}
	free(x);
	free(y);
	return equal;
}

#define KINDS 7

/* A tensor of this dtype in one of several shapes and strides. */
static tensor *sample(enum tensor_dtype dtype, int kind)
{
	tensor *t = ok(tensor_to_copy(iota(kind, TENSOR_INTS(6, 8)), OF(dtype)));

	switch (kind) {
	case 0:
		return t;
	case 1:
		return tensor_t(t);
	case 2:
		return tensor_slice(t, 1, 1, 8, 3);
	case 3:
		return tensor_expand(tensor_select(t, 0, 2), TENSOR_INTS(3, 8));
	case 4:
		return tensor_select(tensor_select(t, 0, 1), 0, 1); /* 0-d */
	case 5:
		return tensor_narrow(t, 0, 2, 0); /* empty */
	default:
		return tensor_view(t, TENSOR_INTS(1, 2, 1, 3, 2, 2, 2, 1));
	}
}

/* .npy has no bf16 and no 8-bit floats. */
static bool in_npy(enum tensor_dtype d)
{
	return d != TENSOR_BF16 && d < TENSOR_F8_E4M3FN;
}

static bool in_safetensors(enum tensor_dtype d)
{
	return d != TENSOR_C128;
}

static void npy_round_trip_keeps_every_dtype_and_stride(void **state)
{
	for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++) {
		for (int kind = 0; kind < KINDS && in_npy(d); kind++) {
			tensor_scope {
				tensor *t = ok(sample(d, kind));

				assert_done(tensor_save_npy("t.npy", t));
				assert_true(same_tensor(t, ok(tensor_load_npy("t.npy", NULL))));
				assert_true(
					same_tensor(t, ok(tensor_load_npy("t.npy", &readonly))));
				assert_true(same_tensor(t, ok(tensor_load_npy("t.npy", &private))));
			}
		}
	}
	tensor_scope {
		assert_fails(tensor_save_npy("t.npy", ok(sample(TENSOR_BF16, 0))), EOPNOTSUPP,
			     "bf16");
	}
}

static void check_archive(tensor_archive *a, const struct tensor_named *named, int64_t n)
{
	assert_non_null(a);
	assert_int_equal(tensor_archive_count(a), n);
	for (int64_t i = 0; i < n; i++) {
		tensor_scope {
			int64_t at = tensor_archive_find(a, named[i].name);

			assert_true(at >= 0);
			assert_string_equal(tensor_archive_name(a, at), named[i].name);
			assert_true(
				same_tensor(named[i].t, ok(tensor_archive_get(a, named[i].name))));
			assert_true(same_tensor(named[i].t, ok(tensor_archive_at(a, at))));
		}
	}
	tensor_archive_close(a);
}

/* Named samples of all dtypes; some names need to be quoted. */
static int64_t all_samples(struct tensor_named *named, bool (*has)(enum tensor_dtype))
{
	static char names[(TENSOR_DTYPE_COUNT - 1) * KINDS][48];
	int64_t n = 0;

	for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++) {
		for (int kind = 0; kind < KINDS && has(d); kind++, n++) {
			snprintf(names[n], sizeof(names[n]),
				 "%s/\"w\\%d\"\n\xc3\xa9\xf0\x9f\x98\x80", tensor_dtype_name(d),
				 kind);
			named[n] = (struct tensor_named){ names[n], ok(sample(d, kind)) };
		}
	}
	return n;
}

static void npz_round_trip_keeps_tensors(void **state)
{
	struct tensor_named named[(TENSOR_DTYPE_COUNT - 1) * KINDS];

	tensor_scope {
		int64_t n = all_samples(named, in_npy);

		assert_done(tensor_save_npz("t.npz", named, n, 0));
		check_archive(tensor_open_npz("t.npz", NULL), named, n);
		check_archive(tensor_open_npz("t.npz", &readonly), named, n);
		check_archive(tensor_open_npz("t.npz", &private), named, n);
		assert_done(tensor_save_npz("t.npz", named, n, TENSOR_SAVE_COMPRESSED));
		check_archive(tensor_open_npz("t.npz", NULL), named, n);
		assert_done(tensor_save_npz("t.npz", NULL, 0, 0));
		check_archive(tensor_open_npz("t.npz", NULL), named, 0);
	}
}

static void safetensors_round_trip_keeps_tensors(void **state)
{
	const struct tensor_metadata texts[] = { { "format", "pt" }, { "", "\t\"quoted\"\\" } };
	struct tensor_named named[(TENSOR_DTYPE_COUNT - 1) * KINDS];

	tensor_scope {
		int64_t n = all_samples(named, in_safetensors);
		tensor_archive *a;

		assert_done(tensor_save_safetensors("t.st", named, n, texts, 2));
		check_archive(tensor_open_safetensors("t.st", NULL), named, n);
		check_archive(tensor_open_safetensors("t.st", &readonly), named, n);
		check_archive(tensor_open_safetensors("t.st", &private), named, n);
		a = tensor_open_safetensors("t.st", NULL);
		assert_int_equal(tensor_archive_metadata_count(a), 2);
		for (int64_t i = 0; i < 2; i++) {
			const struct tensor_metadata *m = tensor_archive_metadata(a, i);
			const struct tensor_metadata *want = &texts[*m->key ? 0 : 1];

			assert_string_equal(m->key, want->key);
			assert_string_equal(m->value, want->value);
		}
		assert_null(tensor_archive_metadata(a, 2));
		tensor_archive_close(a);
		assert_done(tensor_save_safetensors("t.st", NULL, 0, NULL, 0));
		check_archive(tensor_open_safetensors("t.st", NULL), named, 0);
	}
}

/* A compressed member that is larger than the buffer for inflated data. */
static void large_members_are_inflated_whole(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_randint(50, TENSOR_SHAPE(3000, 1001), I64));
		struct tensor_named named = { "large", t };

		assert_done(tensor_save_npz("large.npz", &named, 1, TENSOR_SAVE_COMPRESSED));
		check_archive(tensor_open_npz("large.npz", NULL), &named, 1);
	}
}

/* The example of the format's documentation, as bytes. */
static void safetensors_bytes_are_read(void **state)
{
	const char head[] =
		"\x9b\0\0\0\0\0\0\0{\"__metadata__\":{\"by\":\"hand\"}, \"b\": "
		"{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[4,8]},"
		"\"a\\u00e9\":{\"data_offsets\":[0,4],\"shape\":[],\"dtype\":\"F32\"}}   ";
	static const unsigned char data[] = { 0, 0, 0xc0, 0x3f, 0x80, 0x3f, 0, 0xc0 };
	unsigned char file[256];
	size_t n = join(file, head, sizeof(head) - 1, data, sizeof(data));
	tensor_archive *a;

	file[0] = (unsigned char)(n - 16);
	write_file("hand.st", file, n);
	a = tensor_open_safetensors("hand.st", NULL);
	assert_non_null(a);
	assert_string_equal(tensor_archive_name(a, 0), "b");
	assert_string_equal(tensor_archive_name(a, 1), "a\xc3\xa9");
	assert_string_equal(tensor_archive_metadata(a, 0)->value, "hand");
	tensor_scope {
		tensor *b = ok(tensor_archive_get(a, "b"));

		assert_int_equal(tensor_dtype(b), TENSOR_BF16);
		assert_values(b, 0, 1, -2);
		assert_values(tensor_archive_get(a, "a\xc3\xa9"), 0, 1.5);
		assert_fails(tensor_archive_get(a, "c"), ENOENT, "no tensor 'c'");
		assert_fails(tensor_archive_at(a, 2), ENOENT, "not number 2");
	}
	tensor_archive_close(a);
}

/* ---- memory ---- */

static void a_map_outlives_file_and_archive(void **state)
{
	struct tensor_named named[2];
	tensor_archive *a;

	tensor_scope {
		tensor *x, *y;

		named[0] = (struct tensor_named){ "x", iota(0, TENSOR_INTS(3)) };
		named[1] = (struct tensor_named){ "y", iota(5, TENSOR_INTS(2)) };
		assert_done(tensor_save_safetensors("gone.st", named, 2, NULL, 0));
		a = tensor_open_safetensors("gone.st", &readonly);
		x = ok(tensor_archive_get(a, "x"));
		y = ok(tensor_archive_get(a, "y"));
		tensor_archive_close(a);
		assert_int_equal(unlink("gone.st"), 0);
		assert_values(tensor_mul_scalar(x, S(2)), 0, 0, 2, 4);
		assert_values(y, 0, 5, 6);
		assert_false(tensor_is_writable(x));
		assert_fails(tensor_add_scalar_(x, S(1)), EACCES, "read-only");
	}
}

static void a_private_map_never_changes_the_file(void **state)
{
	tensor_scope {
		tensor *t;

		assert_done(tensor_save_npy("kept.npy", iota(0, TENSOR_INTS(4))));
		t = ok(tensor_load_npy("kept.npy", &private));
		assert_true(tensor_is_writable(t));
		ok(tensor_add_scalar_(t, S(10)));
		assert_values(t, 0, 10, 11, 12, 13);
		assert_values(tensor_load_npy("kept.npy", &private), 0, 0, 1, 2, 3);
	}
}

/* Only a shareable tensor can have a label. */
static void a_shareable_load_has_a_buffer(void **state)
{
	const struct tensor_load_options shareable = { .shareable = true };

	tensor_scope {
		assert_done(tensor_save_npy("s.npy", iota(0, TENSOR_INTS(4))));
		assert_done(tensor_set_label(ok(tensor_load_npy("s.npy", &shareable)), "loaded"));
		assert_fails(tensor_set_label(ok(tensor_load_npy("s.npy", NULL)), "loaded"), EINVAL,
			     "");
	}
}

static void limit_of_the_caller_is_enforced(void **state)
{
	const struct tensor_load_options limits[] = { { .max_bytes = 16 }, { .max_bytes = 15 } };

	tensor_scope {
		assert_done(tensor_save_npy("l.npy", iota(0, TENSOR_INTS(4))));
		ok(tensor_load_npy("l.npy", &limits[0]));
		assert_fails(tensor_load_npy("l.npy", &limits[1]), EFBIG, "the limit is 15");
	}
}

static void only_regular_files_are_accepted(void **state)
{
	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(2));

		assert_int_equal(mkfifo("fifo", 0600), 0);
		assert_fails(tensor_load_npy("fifo", NULL), EINVAL, "not a regular file");
		assert_fails(tensor_open_npz("fifo", NULL), EINVAL, "not a regular file");
		assert_fails(tensor_save_npy("fifo", t), EINVAL, "not a regular file");
		assert_fails(tensor_load_npy("/dev/zero", NULL), EINVAL, "not a regular file");
		assert_fails(tensor_save_npy("/dev/null", t), EINVAL, "not a regular file");
		assert_fails(tensor_load_npy(".", NULL), EINVAL, "not a regular file");
		assert_fails(tensor_load_npy("missing", NULL), ENOENT, "missing");
		assert_fails(tensor_open_safetensors("missing", NULL), ENOENT, "missing");
		assert_fails(tensor_save_npy("no/such/folder", t), ENOENT, "no/such/folder");
		assert_fails(tensor_load_npy(NULL, NULL), EINVAL, "NULL");
		assert_fails(tensor_save_npy(NULL, t), EINVAL, "NULL");
		assert_fails(tensor_save_npy("x", NULL), EINVAL, "NULL");
	}
}

static void invalid_names_are_refused(void **state)
{
	static const char *const bad[] = { "", "\xff", "\xc0\x80", "\xed\xa0\x80", NULL };

	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(2));
		struct tensor_named twice[] = { { "a", t }, { "b", t }, { "a", t } },
				    none = { "a", NULL };
		struct tensor_named meta = { "__metadata__", t };
		struct tensor_metadata texts[] = { { "k", "1" }, { "k", "2" } };

		for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
			struct tensor_named named = { bad[i], t };

			assert_fails(tensor_save_npz("n", &named, 1, 0), EINVAL, "UTF-8");
			assert_fails(tensor_save_safetensors("n", &named, 1, NULL, 0), EINVAL,
				     "UTF-8");
		}
		assert_fails(tensor_save_npz("n", twice, 3, 0), EINVAL, "'a' occurs twice");
		assert_fails(tensor_save_safetensors("n", twice, 3, NULL, 0), EINVAL,
			     "'a' occurs twice");
		assert_fails(tensor_save_safetensors("n", twice, 2, texts, 2), EINVAL,
			     "'k' occurs twice");
		assert_fails(tensor_save_safetensors("n", &meta, 1, NULL, 0), EINVAL,
			     "__metadata__");
		assert_fails(tensor_save_npz("n", &none, 1, 0), EINVAL, "NULL");
		assert_fails(tensor_save_npz("n", twice, 2, 8), EINVAL, "flags");
		assert_int_equal(access("n", F_OK), -1);
	}
}

static void tensors_that_require_grad_are_saved(void **state)
{
	tensor_scope {
		tensor *t = iota(0, TENSOR_INTS(2));

		assert_done(tensor_set_requires_grad(t, true));
		assert_done(tensor_save_npy("g.npy", tensor_mul_scalar(t, S(3))));
		assert_values(tensor_load_npy("g.npy", NULL), 0, 0, 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(npy_bytes_equal_those_of_numpy),
		cmocka_unit_test(header_variants_of_other_writers_are_read),
		cmocka_unit_test(big_endian_files_are_swapped),
		cmocka_unit_test(fortrans_order_becomes_strides),
		cmocka_unit_test(npy_round_trip_keeps_every_dtype_and_stride),
		cmocka_unit_test(npz_round_trip_keeps_tensors),
		cmocka_unit_test(safetensors_round_trip_keeps_tensors),
		cmocka_unit_test(large_members_are_inflated_whole),
		cmocka_unit_test(safetensors_bytes_are_read),
		cmocka_unit_test(a_map_outlives_file_and_archive),
		cmocka_unit_test(a_private_map_never_changes_the_file),
		cmocka_unit_test(a_shareable_load_has_a_buffer),
		cmocka_unit_test(limit_of_the_caller_is_enforced),
		cmocka_unit_test(only_regular_files_are_accepted),
		cmocka_unit_test(invalid_names_are_refused),
		cmocka_unit_test(tensors_that_require_grad_are_saved),
	};

	return cmocka_run_group_tests_name("io", tests, make_folder, remove_folder);
}
