// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Invalid files, one of each kind: loading fails with an error text. test_io_mutations.c has random
 * changes of valid files.
 */
#include "files.h"

/* ---- .npy ---- */

/* Loads a file of version 1 with this dictionary and `data` bytes of data. */
static tensor *load_header(const char *dictionary, size_t data)
{
	unsigned char *file = calloc(1, strlen(dictionary) + data + 16);
	size_t n = strlen(dictionary);
	tensor *t;

	memcpy(file, "\x93NUMPY\x01", 8);
	file[8] = (unsigned char)n;
	file[9] = (unsigned char)(n >> 8);
	memcpy(file + 10, dictionary, n);
	write_file("hostile", file, 10 + n + data);
	free(file);
	t = tensor_load_npy("hostile", NULL);
	tensor_release(t);
	return t;
}

#define NPY(descr, order, shape) \
	"{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static void invalid_headers_are_refused(void **state)
{
	static const struct {
		const char *dictionary;
		size_t data;
		int code;
		const char *words;
	} lies[] = {
		{ NPY("'<f4'", "False", "(2, 3)"), 23, EBADMSG, "truncated" },
		{ NPY("'<f4'", "False", "(4611686018427387904, 4)"), 8, EBADMSG, "too many" },
		{ NPY("'<f4'", "False", "(9223372036854775807,)"), 8, EBADMSG, "too many" },
		{ NPY("'<f4'", "False", "(9223372036854775808,)"), 8, EBADMSG, "shape" },
		{ NPY("'<f4'", "False", "(99999999999999999999999999,)"), 8, EBADMSG, "shape" },
		{ NPY("'<c16'", "False", "(1152921504606846975,)"), 8, EBADMSG, "truncated" },
		{ NPY("'<f4'", "False", "(-1,)"), 8, EBADMSG, "shape" },
		{ NPY("'<f4'", "False", "(1 2)"), 8, EBADMSG, "shape" },
		{ NPY("'<f4'", "False", "(1,,2)"), 8, EBADMSG, "shape" },
		{ NPY("'<f4'", "False", "(2)"), 8, EBADMSG, "tuple" },
		{ NPY("'<f4'", "False", "2"), 8, EBADMSG, "tuple" },
		{ NPY("'<f4'", "False", "(1.5,)"), 8, EBADMSG, "shape" },
		{ NPY("'<f4'", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), 8, EOPNOTSUPP,
		  "more than 16" },
		{ NPY("'<f4'", "maybe", "(1,)"), 8, EBADMSG, "fortran_order" },
		{ NPY("'<f3'", "False", "(1,)"), 8, EOPNOTSUPP, "<f3" },
		{ NPY("'|O'", "False", "(1,)"), 8, EOPNOTSUPP, "|O" },
		{ NPY("'|f4'", "False", "(1,)"), 8, EOPNOTSUPP, "|f4" },
		{ NPY("''", "False", "(1,)"), 8, EOPNOTSUPP, "''" },
		{ NPY("'<U2'", "False", "(1,)"), 8, EOPNOTSUPP, "<U2" },
		{ NPY("[('a', '<f4')]", "False", "(1,)"), 8, EOPNOTSUPP, "structured dtypes" },
		{ NPY("'\\x3cf4'", "False", "(1,)"), 8, EBADMSG, "descr" },
		{ NPY("'<f4", "False", "(1,)"), 8, EOPNOTSUPP, "'<f4, '" },
		{ NPY("'<f4'", "False", "(1,)") "}", 8, EBADMSG, "goes on" },
		{ "{'descr': '<f4', 'shape': (1,), }", 8, EBADMSG, "lacks" },
		{ "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 8,
		  EBADMSG, "twice" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 8, EBADMSG,
		  "unknown key 'x'" },
		{ "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", 8, EBADMSG, "header" },
		{ "{", 8, EBADMSG, "header" },
		{ "", 8, EBADMSG, "dictionary" },
		{ "[]", 8, EBADMSG, "dictionary" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		assert_fails(load_header(lies[i].dictionary, lies[i].data), lies[i].code,
			     lies[i].words);
	}
	assert_non_null(load_header(NPY("'<f4'", "False", "(2, 3)"), 24));
	assert_non_null(load_header(NPY("'<f4'", "True", "(0, 9223372036854775807)"), 0));
}

static void magic_and_header_length_are_checked(void **state)
{
	unsigned char long_header[64] = "\x93NUMPY\x02\x00\xff\xff\xff\xff";

	write_file("hostile", "", 0);
	assert_fails(tensor_load_npy("hostile", NULL), EBADMSG, "truncated");
	write_file("hostile", "\x93NUMPZ\x01\x00\x10\x00 and so on", 20);
	assert_fails(tensor_load_npy("hostile", NULL), EBADMSG, "not a .npy");
	write_file("hostile", "\x93NUMPY\x04\x00\x10\x00 and so on", 20);
	assert_fails(tensor_load_npy("hostile", NULL), EOPNOTSUPP, "version 4.0");
	write_file("hostile", long_header, sizeof(long_header));
	assert_fails(tensor_load_npy("hostile", NULL), EBADMSG, "a header of 4294967307 bytes");
}

/* A byte other than 0 and 1 would be counted as such by a sum of bools. */
static void bools_are_normalized(void **state)
{
	const struct tensor_load_options map = { .map = TENSOR_MAP_READONLY };
	const char head[] = "\x93NUMPY\x01\x00\x36\x00" NPY("'|b1'", "False", "(4,)") "\n";
	unsigned char file[128];
	size_t n = join(file, head, sizeof(head) - 1, "\x00\x01\x02\xff", 4);

	file[8] = (unsigned char)(sizeof(head) - 1 - 10);
	write_file("hostile", file, n);
	tensor_scope {
		tensor *t = ok(tensor_load_npy("hostile", NULL));

		assert_memory_equal(tensor_data(t), "\x00\x01\x01\x01", 4);
	}
	assert_fails(tensor_load_npy("hostile", &map), EBADMSG, "neither 0 nor 1");
}

/* ---- safetensors ---- */

static tensor_archive *open_json(const char *json, size_t data)
{
	unsigned char *file = calloc(1, strlen(json) + data + 8);
	tensor_archive *a;

	file[0] = (unsigned char)strlen(json);
	file[1] = (unsigned char)(strlen(json) >> 8);
	memcpy(file + 8, json, strlen(json));
	write_file("hostile", file, strlen(json) + data + 8);
	free(file);
	a = tensor_open_safetensors("hostile", NULL);
	tensor_archive_close(a);
	return a;
}

#define T(name, type, shape, begin, end)                                                    \
	"\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" begin \
	"," end "]}"

static void invalid_json_is_refused(void **state)
{
	static const struct {
		const char *json;
		size_t data;
		const char *words;
	} lies[] = {
		{ "{" T("a", "F32", "[2]", "0", "8") "}", 7, "truncated" },
		{ "{" T("a", "F32", "[2]", "0", "8") "}", 9, "too long" },
		{ "{}", 1, "too long" },
		{ "{" T("a", "F32", "[2]", "0", "9") "}", 9, "does not match" },
		{ "{" T("a", "F32", "[2]", "8", "0") "}", 8, "end before" },
		{ "{" T("a", "F32", "[2]", "4", "12") "}", 12, "hole" },
		{ "{" T("a", "F32", "[2]", "0", "8") "," T("b", "F32", "[2]", "4", "12") "}", 12,
		  "overlaps" },
		{ "{" T("a", "F32", "[2]", "0", "8") "," T("b", "F32", "[2]", "0", "8") "}", 8,
		  "overlaps" },
		{ "{" T("a", "F32", "[2]", "0", "8") "," T("a", "F32", "[2]", "8", "16") "}", 16,
		  "twice" },
		{ "{" T("a", "U8", "[9223372036854775807,9223372036854775807]", "0", "8") "}", 8,
		  "too many" },
		{ "{" T("a", "F64", "[2305843009213693953]", "0", "8") "}", 8, "does not match" },
		{ "{" T("a", "F32", "[18446744073709551616]", "0", "8") "}", 8, "shape" },
		{ "{" T("a", "F32", "[-2]", "0", "8") "}", 8, "shape" },
		{ "{" T("a", "F32", "[02]", "0", "8") "}", 8, "shape" },
		{ "{" T("a", "F32", "[2.0]", "0", "8") "}", 8, "shape" },
		{ "{" T("a", "F32", "[2", "0", "8") "}", 8, "shape" },
		{ "{" T("a", "F32", "[2,]", "0", "8") "}", 8, "shape" },
		{ "{" T("a", "F32", "2", "0", "8") "}", 8, "shape" },
		{ "{" T("a", "F32", "[2]", "", "8") "}", 8, "offsets" },
		{ "{" T("a", "F32", "[2]", "0", "8,9") "}", 8, "offsets" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "lacks" },
		{ "{\"a\":{}}", 8, "entry" },
		{ "{\"a\":[]}", 8, "entry" },
		{ "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[]}}", 8, "twice" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"x\":1}}", 8, "unknown field 'x'" },
		{ "{\"__metadata__\":{\"a\":1}}", 0, "metadata" },
		{ "{\"__metadata__\":{\"a\":\"1\",}}", 0, "metadata" },
		{ "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "twice" },
		{ "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice" },
		{ "{\"a", 0, "names" },
		{ "{\"\\u0000\":{}}", 0, "names" },
		{ "{\"\\ud800\":{}}", 0, "names" },
		{ "{\"\\ud800\\u0041\":{}}", 0, "names" },
		{ "{\"\\udc00\":{}}", 0, "names" },
		{ "{\"\\x41\":{}}", 0, "names" },
		{ "{\"\n\":{}}", 0, "names" },
		{ "{\"\xff\":{}}", 0, "names" },
		{ "{} x", 0, "end" },
		{ " {}", 0, "not a safetensors file" },
		{ "[]", 0, "not a safetensors file" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++)
		assert_fails(open_json(lies[i].json, lies[i].data), EBADMSG, lies[i].words);
	assert_non_null(open_json("{" T("a", "F32", "[2]", "0", "8") "}", 8));
	assert_non_null(open_json("{" T("a", "F32", "[ 2 , 0 ]", "0", "0") "}  ", 0));
	assert_fails(
		open_json("{" T("a", "F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "0", "4") "}",
			  4),
		EOPNOTSUPP, "more than 16");
	write_file("hostile", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
	assert_fails(tensor_open_safetensors("hostile", NULL), EBADMSG, "a header of");
}

/* Only the tensor of an unknown dtype is refused; the others can be loaded. */
static void unknown_dtypes_do_not_affect_other_tensors(void **state)
{
	const char json[] = "{" T("a", "F8_E8M0", "[8]", "0", "8") "," T(
		"b", "Q7", "[3]", "8", "10") "," T("c", "U8", "[1]", "10", "11") "}";
	unsigned char file[512] = { sizeof(json) - 1 };
	tensor_archive *a;

	memcpy(file + 8, json, sizeof(json) - 1);
	file[8 + sizeof(json) - 1 + 10] = 9;
	write_file("hostile", file, 8 + sizeof(json) - 1 + 11);
	a = tensor_open_safetensors("hostile", NULL);
	assert_non_null(a);
	tensor_scope {
		assert_fails(tensor_archive_get(a, "a"), EOPNOTSUPP, "F8_E8M0");
		assert_fails(tensor_archive_get(a, "b"), EOPNOTSUPP, "Q7");
		assert_values(tensor_archive_get(a, "c"), 0, 9);
	}
	tensor_archive_close(a);
}

/* ---- .npz ---- */

/* A valid archive of two members in memory, and the offsets of its parts. */
static unsigned char *zip;
static size_t zip_size, central[2], end_record;

static void make_zip(unsigned flags)
{
	int rows = 0;

	tensor_scope {
		struct tensor_named named[] = { { "first", iota(0, TENSOR_INTS(100)) },
						{ "second", iota(1, TENSOR_INTS(3, 5)) } };

		assert_done(tensor_save_npz("hostile", named, 2, flags));
	}
	free(zip);
	zip = read_file("hostile", &zip_size);
	for (size_t i = 0; i + 4 <= zip_size; i++)
		if (!memcmp(zip + i, "PK\1\2", 4))
			central[rows++] = i;
	assert_int_equal(rows, 2);
	end_record = zip_size - 22;
	assert_memory_equal(zip + end_record, "PK\5\6", 4);
}

/* Opens the archive and loads all members; returns the error of the first failure. */
static int load_zip(void)
{
	tensor_archive *a;

	write_file("hostile", zip, zip_size);
	a = tensor_open_npz("hostile", NULL);
	if (!a)
		return -tensor_last_error()->code;
	for (int64_t i = 0; i < tensor_archive_count(a); i++) {
		tensor *t = tensor_archive_at(a, i);

		tensor_release(t);
		if (!t) {
			tensor_archive_close(a);
			return -tensor_last_error()->code;
		}
	}
	tensor_archive_close(a);
	return 0;
}

static void write_u32(size_t at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		zip[at + i] = (unsigned char)(v >> 8 * i);
}

static uint32_t read_u32(size_t at)
{
	return zip[at] | zip[at + 1] << 8 | zip[at + 2] << 16 | (uint32_t)zip[at + 3] << 24;
}

#define ZIP_LIE(flags, change, words)                     \
	do {                                              \
		make_zip(flags);                          \
		assert_int_equal(load_zip(), 0);          \
		change;                                   \
		assert_fails(load_zip(), EBADMSG, words); \
	} while (0)

static void invalid_zip_directories_are_refused(void **state)
{
	const unsigned packed = TENSOR_SAVE_COMPRESSED;

	ZIP_LIE(0, zip_size -= 1, "not a zip file");
	ZIP_LIE(0, zip_size = 10, "not a zip file");
	ZIP_LIE(0, write_u32(end_record + 16, read_u32(end_record + 16) + 1), "directory");
	ZIP_LIE(0, write_u32(end_record + 16, 0x7fffffff), "not at the offset");
	ZIP_LIE(0, write_u32(end_record + 12, 0x7fffffff), "not at the offset");
	ZIP_LIE(0, write_u32(end_record + 12, read_u32(end_record + 12) - 1), "directory");
	ZIP_LIE(0, (zip[end_record + 8]--, zip[end_record + 10]--), "more than its 1 members");
	ZIP_LIE(0, (zip[end_record + 9]++, zip[end_record + 11]++), "not at the offset");
	ZIP_LIE(0, zip[end_record + 4]++, "several disks");
	/* sizes */
	ZIP_LIE(0, write_u32(central[0] + 20, read_u32(central[0] + 20) + 1), "two sizes differ");
	ZIP_LIE(0, (write_u32(central[0] + 20, 0x7fffffff), write_u32(central[0] + 24, 0x7fffffff)),
		"not before the directory");
	ZIP_LIE(packed, write_u32(central[0] + 24, read_u32(central[0] + 24) + 1),
		"its header says");
	ZIP_LIE(packed, write_u32(central[0] + 24, read_u32(central[0] + 24) - 1),
		"its header says");
	ZIP_LIE(packed, write_u32(central[0] + 24, 0x7fffffff),
		"cannot inflate to 2147483647 bytes");
	ZIP_LIE(packed, write_u32(central[0] + 20, read_u32(central[0] + 20) - 1), "corrupt");
	/* overlapping members */
	ZIP_LIE(0, write_u32(central[1] + 42, read_u32(central[0] + 42)), "overlaps");
	ZIP_LIE(0, write_u32(central[1] + 42, read_u32(central[1] + 42) - 30), "overlaps");
	ZIP_LIE(0, write_u32(central[1] + 42, read_u32(end_record + 16)),
		"not before the directory");
	/* differences between the directory and the header of the member */
	ZIP_LIE(0, zip[0]++, "disagree");
	ZIP_LIE(0, zip[30] = 'F', "another name");
	ZIP_LIE(0, zip[28] = 0xff, "");
	ZIP_LIE(0, zip[8] = 8, "disagree");
	ZIP_LIE(0, zip[central[0] + 46] = 'F', "another name");
	ZIP_LIE(0, zip[central[0] + 46] = 0, "has a zero in it");
	/* content */
	ZIP_LIE(0, zip[central[0] + 16]++, "checksum");
	ZIP_LIE(0, zip[read_u32(central[1] + 42) - 1] ^= 1, "checksum");
	make_zip(0);
	zip[central[0] + 8] |= 1;
	assert_fails(load_zip(), EOPNOTSUPP, "encrypted");
	make_zip(0);
	zip[central[0] + 10] = zip[8] = 12;
	assert_fails(load_zip(), EOPNOTSUPP, "method 12");
}

static void duplicate_names_are_refused(void **state)
{
	tensor_scope {
		struct tensor_named named[] = { { "a1", iota(0, TENSOR_INTS(4)) },
						{ "a2", iota(1, TENSOR_INTS(4)) } };

		assert_done(tensor_save_npz("hostile", named, 2, 0));
	}
	free(zip);
	zip = read_file("hostile", &zip_size);
	for (size_t i = 0; i + 6 <= zip_size; i++)
		if (!memcmp(zip + i, "a2.npy", 6))
			zip[i + 1] = '1';
	assert_fails(load_zip(), EBADMSG, "'a1' occurs twice");
}

/* 64 MiB of zeros in 64 KiB: loaded by default, refused by a limit. */
static void decompression_is_stopped_by_the_limit(void **state)
{
	const struct tensor_load_options limit = { .max_bytes = 1 << 20 };
	tensor_archive *a;

	tensor_scope {
		struct tensor_named named = { "bomb", tensor_zeros(TENSOR_SHAPE(1 << 24), F32) };

		assert_done(tensor_save_npz("hostile", &named, 1, TENSOR_SAVE_COMPRESSED));
	}
	a = tensor_open_npz("hostile", &limit);
	assert_non_null(a);
	assert_fails(tensor_archive_at(a, 0), EFBIG, "67108864 bytes, the limit is 1048576");
	tensor_archive_close(a);
}

static int clean(void **state)
{
	free(zip);
	return remove_folder(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalid_headers_are_refused),
		cmocka_unit_test(magic_and_header_length_are_checked),
		cmocka_unit_test(bools_are_normalized),
		cmocka_unit_test(invalid_json_is_refused),
		cmocka_unit_test(unknown_dtypes_do_not_affect_other_tensors),
		cmocka_unit_test(invalid_zip_directories_are_refused),
		cmocka_unit_test(duplicate_names_are_refused),
		cmocka_unit_test(decompression_is_stopped_by_the_limit),
	};

	return cmocka_run_group_tests_name("io_hostile", tests, make_folder, clean);
}
