// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The Arrow C data interface: columns share memory with tensors and are released once; invalid
 * structures are refused and stay with the caller.
 */
#include "check.h"

#include <pthread.h>
#include <tensor/arrow.h>

/* A column of another library: its functions count their calls. */
struct foreign {
	struct ArrowSchema schema;
	struct ArrowArray array;
	const void *buffers[2];
	_Alignas(16) uint8_t data[64];
	uint8_t valid[8];
	int schemas, arrays; /* calls of release */
};

static void foreign_schema_release(struct ArrowSchema *s)
{
	((struct foreign *)s->private_data)->schemas++;
	s->release = NULL;
}

static void foreign_array_release(struct ArrowArray *a)
{
	((struct foreign *)a->private_data)->arrays++;
	a->release = NULL;
}

/* `length` elements of this format, whose bytes are 0 */
static struct foreign *foreign_init(struct foreign *f, const char *format, int64_t length)
{
	memset(f, 0, sizeof(*f));
	f->buffers[1] = f->data;
	f->schema = (struct ArrowSchema){
		.format = format,
		.release = foreign_schema_release,
		.private_data = f,
	};
	f->array = (struct ArrowArray){
		.length = length,
		.n_buffers = 2,
		.buffers = f->buffers,
		.release = foreign_array_release,
		.private_data = f,
	};
	return f;
}

static tensor *import(struct foreign *f)
{
	return tensor_from_arrow(&f->schema, &f->array);
}

static const struct {
	enum tensor_dtype dtype;
	const char *format;
} types[] = {
	{ TENSOR_BOOL, "b" }, { TENSOR_I8, "c" },  { TENSOR_U8, "C" },	{ TENSOR_I16, "s" },
	{ TENSOR_U16, "S" },  { TENSOR_I32, "i" }, { TENSOR_U32, "I" }, { TENSOR_I64, "l" },
	{ TENSOR_U64, "L" },  { TENSOR_F16, "e" }, { TENSOR_F32, "f" }, { TENSOR_F64, "g" },
};

static void release(struct ArrowSchema *s, struct ArrowArray *a)
{
	s->release(s);
	a->release(a);
	assert_null(s->release);
	assert_null(a->release);
}

/* ---- export ---- */

static void exported_column_is_the_memory_of_the_tensor(void **state)
{
	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(2, 3)), *t = ok(tensor_select(x, 0, 1));
		struct ArrowSchema schema;
		struct ArrowArray array;

		assert_done(tensor_to_arrow(t, &schema, &array));
		assert_string_equal(schema.format, "f");
		assert_string_equal(schema.name, "");
		assert_null(schema.metadata);
		assert_int_equal(schema.flags, 0);
		assert_int_equal(schema.n_children, 0);
		assert_null(schema.children);
		assert_null(schema.dictionary);
		assert_int_equal(array.length, 3);
		assert_int_equal(array.null_count, 0);
		assert_int_equal(array.offset, 0);
		assert_int_equal(array.n_buffers, 2);
		assert_null(array.buffers[0]);
		assert_ptr_equal(array.buffers[1], tensor_data(t));
		assert_int_equal(array.n_children, 0);
		assert_null(array.children);
		assert_null(array.dictionary);
		release(&schema, &array);
	}
}

static void every_type_is_exported_and_imported(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		tensor_scope {
			tensor *x = ok(tensor_to(iota(0, TENSOR_INTS(2)), OF(types[i].dtype))), *y;
			struct ArrowSchema schema;
			struct ArrowArray array;
			bool copied = types[i].dtype == TENSOR_BOOL;

			assert_done(tensor_to_arrow(x, &schema, &array));
			assert_string_equal(schema.format, types[i].format);
			y = ok(tensor_from_arrow(&schema, &array));
			assert_null(schema.release);
			assert_null(array.release);
			assert_int_equal(tensor_dtype(y), types[i].dtype);
			assert_true((tensor_data(y) == tensor_data(x)) == !copied);
			assert_true(tensor_is_writable(y) == copied);
			assert_values(ok(tensor_to(y, F64)), 0, 0, 1);
		}
}

static void bools_become_bits_and_back(void **state)
{
	for (int n = 0; n < 20; n++)
		tensor_scope {
			tensor *t = ok(tensor_eq(
				ok(tensor_remainder_scalar(iota(0, TENSOR_INTS(n)), S(3))), S(1)));
			struct ArrowSchema schema;
			struct ArrowArray array;
			const uint8_t *bits;

			assert_done(tensor_to_arrow(t, &schema, &array));
			bits = array.buffers[1];
			for (int i = 0; i < (n + 7) / 8 * 8; i++)
				assert_int_equal(bits[i / 8] >> (i % 8) & 1, i < n && i % 3 == 1);
			assert_same(ok(tensor_from_arrow(&schema, &array)), t);
		}
}

static void *release_in_thread(void *array)
{
	struct ArrowArray *a = array;

	a->release(a);
	return NULL;
}

static void exported_memory_outlives_its_tensor(void **state)
{
	struct ArrowSchema schema;
	struct ArrowArray array, moved;
	pthread_t thread;

	tensor_scope {
		tensor *x = iota(0, TENSOR_INTS(3));

		assert_done(tensor_to_arrow(x, &schema, &array));
		ok(tensor_resize_(x, TENSOR_INTS(1000)));
		ok(tensor_zero_(x));
	}
	schema.release(&schema);
	moved = array; /* receivers move the structure */
	array.release = NULL;
	assert_true(((const float *)moved.buffers[1])[2] == 2);
	assert_int_equal(pthread_create(&thread, NULL, release_in_thread, &moved), 0);
	pthread_join(thread, NULL);
	assert_null(moved.release);
}

static void tensors_that_are_no_column_are_refused(void **state)
{
	struct ArrowSchema schema = { .format = "unchanged" };
	struct ArrowArray array = { .length = 99 };

	tensor_scope {
		tensor *x = iota(1, TENSOR_INTS(4)), *m = iota(1, TENSOR_INTS(2, 3));
		tensor *gap = ok(tensor_slice(x, 0, 0, 4, 2));

		assert_fails(tensor_to_arrow(NULL, &schema, &array), EINVAL, "");
		assert_fails(tensor_to_arrow(tensor_none, &schema, &array), EINVAL, "tensor_none");
		assert_fails(tensor_to_arrow(x, NULL, &array), EINVAL, "schema is NULL");
		assert_fails(tensor_to_arrow(x, &schema, NULL), EINVAL, "array is NULL");
		assert_fails(tensor_to_arrow(m, &schema, &array), EINVAL, "[2, 3]");
		assert_fails(tensor_to_arrow(ok(tensor_sum(x)), &schema, &array), EINVAL, "[]");
		assert_fails(tensor_to_arrow(gap, &schema, &array), EINVAL, "got 2");
		assert_fails(tensor_to_arrow(ok(tensor_select(ok(tensor_t(m)), 0, 1)), &schema,
					     &array),
			     EINVAL, "got 3");
		for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++)
			if (d == TENSOR_BF16 || d == TENSOR_C64 || d == TENSOR_C128 ||
			    d == TENSOR_F8_E4M3FN || d == TENSOR_F8_E5M2)
				assert_fails(tensor_to_arrow(ok(tensor_to(x, OF(d))), &schema,
							     &array),
					     EOPNOTSUPP, "no type for");
		assert_fails(tensor_to_arrow(ok(tensor_to_sparse(x)), &schema, &array), EOPNOTSUPP,
			     "sparse_coo");
		assert_done(tensor_set_requires_grad(x, true));
		assert_fails(tensor_to_arrow(x, &schema, &array), EINVAL, "gradient");
	}
	assert_string_equal(schema.format, "unchanged");
	assert_int_equal(array.length, 99);
}

/* ---- import ---- */

static void imported_memory_lives_until_its_last_view(void **state)
{
	struct foreign f;
	tensor *t, *part, *saved;

	foreign_init(&f, "i", 6);
	for (int i = 0; i < 8; i++)
		((int32_t *)f.data)[i] = 10 * i;
	f.array.offset = 2;
	t = ok(import(&f));
	assert_ptr_equal(tensor_data(t), f.data + 8);
	assert_shape(t, 6);
	assert_values(t, 0, 20, 30, 40, 50, 60, 70);
	assert_false(tensor_is_writable(t));
	assert_fails(tensor_add_scalar_(t, S(1)), EACCES, "read-only");
	assert_int_equal(f.schemas, 1);
	assert_int_equal(f.arrays, 0);
	assert_null(f.array.release);
	assert_null(f.schema.release);
	/* The structures and the list of buffers are not used any more. */
	memset(&f.array, 0xff, sizeof(f.array));
	memset(f.buffers, 0xff, sizeof(f.buffers));
	part = ok(tensor_slice(t, 0, 1, 3, 1));
	tensor_release(t);
	saved = ok(tensor_detach(part));
	tensor_release(part);
	assert_int_equal(f.arrays, 0);
	assert_values(saved, 0, 30, 40);
	tensor_release(saved);
	assert_int_equal(f.arrays, 1);
	assert_int_equal(f.schemas, 1);
}

static void imported_bools_are_a_copy(void **state)
{
	struct foreign f;

	tensor_scope {
		tensor *t;

		foreign_init(&f, "b", 11);
		f.data[0] = 0xb0;
		f.data[1] = 0xfd;
		f.array.offset = 5; /* 1 0 1, 1 0 1 1 1 1 1 1 */
		t = ok(import(&f));
		assert_int_equal(f.schemas, 1);
		assert_int_equal(f.arrays, 1);
		assert_null(f.array.release);
		assert_values(t, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1);
		ok(tensor_zero_(t));
		assert_int_equal(f.data[1], 0xfd);
	}
	assert_int_equal(f.arrays, 1);
}

static void columns_without_elements_need_no_memory(void **state)
{
	struct foreign f; /* outlives the scope, whose end releases it */

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		tensor_scope {
			foreign_init(&f, types[i].format, 0);
			f.buffers[1] = NULL;
			f.array.offset = 3;
			f.array.null_count = -1;
			assert_shape(ok(import(&f)), 0);
		}
}

static void bits_of_validity_are_counted_if_nulls_are_not(void **state)
{
	struct foreign f;

	tensor_scope {
		foreign_init(&f, "c", 9)->array.null_count = -1;
		ok(import(&f)); /* no bits: no nulls */
		foreign_init(&f, "c", 9)->array.null_count = -1;
		f.buffers[0] = f.valid;
		f.array.offset = 3;
		f.valid[0] = 0xf8;
		f.valid[1] = 0x0f;
		ok(import(&f));
		foreign_init(&f, "c", 9)->array.null_count = -1;
		f.buffers[0] = f.valid;
		f.array.offset = 3;
		f.valid[0] = 0xf8;
		f.valid[1] = 0x07;
		assert_fails(import(&f), EOPNOTSUPP, "1 of 9 elements are null");
		assert_int_equal(f.arrays + f.schemas, 0);
		/* The number of nulls is that of the producer. */
		f.array.null_count = 0;
		ok(import(&f));
	}
}

/* Makes a member invalid; a refused column stays with the caller. */
#define LIE(errno_, words, format, change)                                           \
	do {                                                                         \
		struct foreign f;                                                    \
		struct ArrowSchema *s = &foreign_init(&f, format, 4)->schema;        \
		struct ArrowArray *a = &f.array;                                     \
                                                                                     \
		(void)s, (void)a;                                                    \
		change;                                                              \
		assert_fails(tensor_from_arrow(&f.schema, &f.array), errno_, words); \
		assert_int_equal(f.schemas, 0);                                      \
		assert_int_equal(f.arrays, 0);                                       \
	} while (0)

static void other_types_are_refused(void **state)
{
	static const char *const others[] = { "",    "n",   "u",       "U",  "z",   "Z",   "ff",
					      "w:4", "d:9", "+w:2",    "+l", "+s",  "tdD", "B",
					      "h",   "F",   "tsn:UTC", "vu", "\x80" };
	static char endless[4096];

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		LIE(EOPNOTSUPP, "format '", others[i], (void)0);
	memset(endless, 'f', sizeof(endless) - 1);
	LIE(EOPNOTSUPP, "...'", endless, (void)0);
	LIE(EINVAL, "format is NULL", NULL, (void)0);
	LIE(EOPNOTSUPP, "dictionary", "i", s->dictionary = s);
	LIE(EOPNOTSUPP, "dictionary", "i", a->dictionary = a);
	LIE(EOPNOTSUPP, "1 children", "f", s->n_children = 1);
	LIE(EINVAL, "-1 children", "f", a->n_children = -1);
}

static void invalid_structures_are_refused(void **state)
{
	LIE(EINVAL, "schema is already released", "f", s->release = NULL);
	LIE(EINVAL, "array is already released", "f", a->release = NULL);
	LIE(EINVAL, "length -1", "f", a->length = -1);
	LIE(EINVAL, "length", "f", a->length = INT64_MIN);
	LIE(EINVAL, "offset -1", "f", a->offset = -1);
	LIE(EINVAL, "-2 nulls", "f", a->null_count = -2);
	LIE(EOPNOTSUPP, "1 of 4 elements are null", "f", a->null_count = 1);
	LIE(EOPNOTSUPP, "null", "f", a->null_count = INT64_MAX);
	LIE(EINVAL, "2 buffers, got 1", "f", a->n_buffers = 1);
	LIE(EINVAL, "2 buffers, got 3", "f", a->n_buffers = 3);
	LIE(EINVAL, "2 buffers, got -1", "f", a->n_buffers = -1);
	LIE(EINVAL, "buffers", "f", a->buffers = NULL);
	LIE(EINVAL, "without data", "f", f.buffers[1] = NULL);
	LIE(EINVAL, "without data", "b", f.buffers[1] = NULL);
	LIE(EINVAL, "aligned to f32", "f", f.buffers[1] = f.data + 2);
	LIE(EINVAL, "aligned to i64", "l", f.buffers[1] = f.data + 4);
	LIE(EOVERFLOW, "", "f", a->length = INT64_MAX);
	LIE(EOVERFLOW, "", "f", (a->length = INT64_MAX, a->offset = 1));
	LIE(EOVERFLOW, "", "b", (a->length = INT64_MAX, a->offset = INT64_MAX));
	LIE(EOVERFLOW, "end of memory", "f", a->length = INT64_MAX / 4);
	LIE(EOVERFLOW, "", "f", a->offset = INT64_MAX - 4);
	LIE(EOVERFLOW, "", "g", a->offset = INT64_MAX / 4);
	LIE(EOVERFLOW, "end of memory", "b",
	    (f.buffers[1] = (void *)(UINTPTR_MAX - 7), a->offset = 100));
	LIE(ENOMEM, "", "b", a->length = INT64_MAX - 100);
	assert_fails(tensor_from_arrow(NULL, &(struct ArrowArray){ 0 }), EINVAL, "schema is NULL");
	struct foreign f;

	tensor_scope {
		assert_fails(tensor_from_arrow(&foreign_init(&f, "f", 4)->schema, NULL), EINVAL,
			     "array is NULL");
		assert_int_equal(f.schemas, 0);
	}
}

static void a_column_is_imported_once(void **state)
{
	struct foreign f;

	foreign_init(&f, "f", 4);
	tensor_scope {
		struct ArrowSchema schema = f.schema;

		ok(import(&f));
		assert_fails(tensor_from_arrow(&schema, &f.array), EINVAL, "already released");
		assert_int_equal(f.schemas, 1);
	}
	assert_int_equal(f.arrays, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exported_column_is_the_memory_of_the_tensor),
		cmocka_unit_test(every_type_is_exported_and_imported),
		cmocka_unit_test(bools_become_bits_and_back),
		cmocka_unit_test(exported_memory_outlives_its_tensor),
		cmocka_unit_test(tensors_that_are_no_column_are_refused),
		cmocka_unit_test(imported_memory_lives_until_its_last_view),
		cmocka_unit_test(imported_bools_are_a_copy),
		cmocka_unit_test(columns_without_elements_need_no_memory),
		cmocka_unit_test(bits_of_validity_are_counted_if_nulls_are_not),
		cmocka_unit_test(other_types_are_refused),
		cmocka_unit_test(invalid_structures_are_refused),
		cmocka_unit_test(a_column_is_imported_once),
	};

	return cmocka_run_group_tests_name("arrow", tests, NULL, NULL);
}
