// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Many thousand random mutations of valid files. A load gives a tensor whose elements can all be
 * read, or an error; no memory and no descriptor leaks. The seed is fixed.
 */
#include "files.h"

static uint64_t seed = 88172645463325252;

static uint64_t random_below(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

struct victim {
	const char *name;
	unsigned char *data;
	size_t n;
	tensor_archive *(*open)(const char *path, const struct tensor_load_options *options);
};

/* One mutation; *n grows to at most 4 times its size. */
static void mutate(unsigned char *p, size_t *n)
{
	static const uint32_t numbers[] = { 0,	    1,		0x7f,	    0xff,
					    0xffff, 0x7fffffff, 0x80000000, 0xffffffff };
	static const char characters[] = "0123456789{}[](),:'\"\\ -.<>|FTeu";
	size_t at = *n ? random_below(*n) : 0, more = random_below(16) + 1;

	switch (*n > 8 ? random_below(8) : 6) {
	case 0:
		p[at] ^= (unsigned char)(1 << random_below(8));
		break;
	case 1:
		p[at] = (unsigned char)random_below(256);
		break;
	case 2:
		p[at] = (unsigned char)characters[random_below(sizeof(characters) - 1)];
		break;
	case 3: /* a size or an offset */
		at = random_below(*n - 4);
		memcpy(p + at, &numbers[random_below(8)], random_below(2) ? 4 : 2);
		break;
	case 4: /* truncation */
		*n -= random_below(random_below(4) ? 40 < *n ? 40 : *n : *n);
		break;
	case 5: /* removal of a range */
		more = more < *n - at ? more : *n - at;
		memmove(p + at, p + at + more, *n - at - more);
		*n -= more;
		break;
	case 6: /* insertion */
		memmove(p + at + more, p + at, *n - at);
		memset(p + at, (int)random_below(256), more);
		*n += more;
		break;
	default: /* duplication of a range */
		more = more < *n - at ? more : *n - at;
		memmove(p + random_below(*n - more + 1), p + at, more);
	}
}

/* Reads all elements. */
static double sum_elements(tensor *t)
{
	double sum = 0;

	tensor_scope {
		assert_true(tensor_numel(t) <= 1 << 20);
		assert_done(tensor_item(ok(tensor_sum(tensor_to(t, F64))), &sum));
	}
	return sum;
}

static int load_all(const struct victim *v, const struct tensor_load_options *options)
{
	tensor_archive *a;
	int loaded = 0;

	if (!v->open) {
		tensor *t = tensor_load_npy("hostile", options);

		if (t)
			sum_elements(t);
		tensor_release(t);
		return t != NULL;
	}
	a = v->open("hostile", options);
	for (int64_t i = 0; a && i < tensor_archive_count(a) && i < 100; i++) {
		tensor *t = tensor_archive_at(a, i);

		if (t)
			sum_elements(t);
		tensor_release(t);
		loaded += t != NULL;
	}
	tensor_archive_close(a);
	return loaded > 0;
}

/* The number of descriptors without those of cached buffers. */
static int descriptors(void)
{
	DIR *d;
	int n = 0;

	tensor_cache_trim();
	d = opendir("/proc/self/fd");

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void load_mutations(struct victim *v, int rounds)
{
	unsigned char *p = malloc(v->n * 4 + 4096);
	int before = descriptors(), loaded = 0, refused = 0;
	struct tensor_cache_stats at_first, at_last;
	int fd = open("hostile", O_RDWR | O_CREAT | O_TRUNC, 0644);

	tensor_cache_stats(&at_first);
	assert_true(fd >= 0);
	for (int i = 0; i < rounds; i++) {
		/*
		 * A mapped file must not be truncated. Mapped bools are normalized when they are
		 * read once.
		 */
		const struct tensor_load_options options = { .map = random_below(3),
							     .shareable = random_below(2),
							     .max_bytes = random_below(2) << 20 };
		size_t n = v->n;

		memcpy(p, v->data, n);
		for (uint64_t k = random_below(4) + 1; k > 0; k--)
			mutate(p, &n);
		assert_int_equal(pwrite(fd, p, n, 0), n);
		assert_int_equal(ftruncate(fd, (off_t)n), 0);
		tensor_clear_error();
		if (load_all(v, &options))
			loaded++;
		else
			refused++;
	}
	close(fd);
	free(p);
	free(v->data);
	tensor_cache_stats(&at_last);
	assert_int_equal(descriptors(), before);
	assert_int_equal(at_last.used, at_first.used);
	assert_int_equal(files_here(), 1);
	/*
	 * Some mutated files load and some are refused: otherwise the mutations would test nothing.
	 */
	assert_true(loaded > rounds / 100);
	assert_true(refused > rounds / 100);
}

#define ROUNDS 12000

static void mutated_npy_files_load_or_fail(void **state)
{
	struct victim v = { .name = "npy" };

	tensor_scope {
		assert_done(tensor_save_npy("hostile", tensor_t(iota(0, TENSOR_INTS(3, 7)))));
	}
	v.data = read_file("hostile", &v.n);
	load_mutations(&v, ROUNDS);
}

static void archive_of(struct tensor_named *named)
{
	named[0] = (struct tensor_named){ "a", iota(0, TENSOR_INTS(4, 5)) };
	named[1] = (struct tensor_named){ "mask", tensor_ones(TENSOR_INTS(9), OF(TENSOR_BOOL)) };
	named[2] = (struct tensor_named){ "none", tensor_zeros(TENSOR_INTS(3, 0), I64) };
}

static void mutated_npz_files_load_or_fail(void **state)
{
	for (unsigned flags = 0; flags <= TENSOR_SAVE_COMPRESSED; flags++) {
		struct victim v = { .name = "npz", .open = tensor_open_npz };

		tensor_scope {
			struct tensor_named named[3];

			archive_of(named);
			assert_done(tensor_save_npz("hostile", named, 3, flags));
		}
		v.data = read_file("hostile", &v.n);
		load_mutations(&v, ROUNDS);
	}
}

static void mutated_safetensors_files_load_or_fail(void **state)
{
	struct victim v = { .name = "safetensors", .open = tensor_open_safetensors };

	tensor_scope {
		const struct tensor_metadata text = { "format", "\u00e9\n" };
		struct tensor_named named[3];

		archive_of(named);
		assert_done(tensor_save_safetensors("hostile", named, 3, &text, 1));
	}
	v.data = read_file("hostile", &v.n);
	load_mutations(&v, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutated_npy_files_load_or_fail),
		cmocka_unit_test(mutated_npz_files_load_or_fail),
		cmocka_unit_test(mutated_safetensors_files_load_or_fail),
	};

	return cmocka_run_group_tests_name("io_mutations", tests, make_folder, remove_folder);
}
