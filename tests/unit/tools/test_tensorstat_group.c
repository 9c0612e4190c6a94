// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tensorstat group: ranks of process groups, from memory that is not trusted. */
#include "ranks.h"
#include "tensorstat.h"

#include "lib/group/local/page.h"

static const char *const address = "tensorstat";

static tensor_group *join(int rank)
{
	char name[64];

	snprintf(name, sizeof(name), "%s-%d", address, rank < 0 ? getppid() : getpid());
	return tensor_group_open("local", TENSOR_GROUP_OPTIONS(.rank = rank < 0 ? 1 : rank,
							       .size = 2, .address = name,
							       .timeout_ns = INT64_C(20000000000)));
}

/* The other rank: ends when the pipe does. */
static pid_t start_other(int *pipe_end)
{
	int ends[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		tensor_group *g = join(-1);
		tensor *t = tensor_zeros(TENSOR_INTS(250000), F32);

		close(ends[1]);
		if (!g || tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL) ||
		    tensor_group_barrier(g, NULL))
			_exit(1);
		while (read(ends[0], &byte, 1) > 0)
			;
		_exit(0);
	}
	close(ends[0]);
	*pipe_end = ends[1];
	return pid;
}

static void ranks_are_listed(void **state)
{
	int end, status;
	pid_t other = start_other(&end);
	tensor_group *g = join(0);
	tensor *t = tensor_zeros(TENSOR_INTS(250000), F32);
	char owner[64];

	assert_non_null(g);
	assert_int_equal(tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL), 0);
	assert_int_equal(tensor_group_barrier(g, NULL), 0);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(tensorstat_run("-H -r group"), 0);
		if (count(" alive ") == 2 &&
		    count(" 2 1000000") + count("2  1000000") + count("2\t1000000") == 2)
			break;
		usleep(10000);
	}
	snprintf(owner, sizeof(owner), "%d/", getpid());
	assert_says(owner);
	snprintf(owner, sizeof(owner), "%d/", other);
	assert_says(owner);
	assert_int_equal(count("1000000"), 2);
	assert_int_equal(tensorstat_run("-j group show owner %d"), 0);
	assert_int_equal(count("\"rank\""), 1);
	assert_says("\"rank\":0");
	assert_says("\"size\":2");
	assert_says("\"operations\":2");
	assert_says("\"bytes\":1000000");
	assert_says("\"state\":\"alive\"");
	/* The other rank has closed the group by its end; this one sees it as it is. */
	close(end);
	waitpid(other, &status, 0);
	assert_int_equal(tensorstat_run("-j group"), 0);
	snprintf(owner, sizeof(owner), "\"pid\":%d", other);
	assert_silent_about(owner);
	assert_true(tensor_group_barrier(g, NULL) < 0);
	assert_int_equal(tensorstat_run("-H group show owner %d"), 0);
	assert_says(" failed ");
	tensor_release(t);
	tensor_group_close(g);
	assert_int_equal(tensorstat_run("-j group show owner %d"), 0);
	assert_silent_about("rank");
}

/* Files of the same name with other content: too short, another number, more ranks than possible. */
static void other_files_are_passed_over(void **state)
{
	static const uint32_t heads[][4] = {
		{ 0 },
		{ LOCAL_MAGIC, 0xffffffff, 4096, 0 },
		{ LOCAL_MAGIC, 2, 4096, 0 },
		{ LOCAL_MAGIC, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		int fd = memfd_create("tensor-group", 0);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, heads[i], i ? sizeof(heads[i]) : 3),
				 i ? (int)sizeof(heads[i]) : 3);
		assert_int_equal(tensorstat_run("-j group show owner %d"), 0);
		assert_silent_about("rank");
		close(fd);
	}
}

/* A process writes what it likes to its own memory. */
static void hostile_numbers_are_only_numbers(void **state)
{
	static char page[sizeof(struct local_page) + 128 * sizeof(struct local_rank)];
	int fd = memfd_create("tensor-group", 0);

	memset(page, 0xff, sizeof(page));
	memcpy(page, (uint32_t[]){ LOCAL_MAGIC, 128 }, 8);
	for (size_t i = 16; i + 4 <= sizeof(page); i += 4)
		memcpy(page + i, (int32_t[]){ getpid() }, 4);
	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	assert_int_equal(tensorstat_run("-j group show owner %d"), 0);
	assert_int_equal(count("\"rank\""), 128);
	assert_int_equal(tensorstat_run("group show owner %d"), 0);
	close(fd);
}

static void wrong_words_are_reported(void **state)
{
	assert_int_equal(tensorstat_run("group show 99999999999"), 6);
	assert_says("no visible group");
	assert_int_equal(tensorstat_run("group show owner"), 2);
	assert_int_equal(tensorstat_run("group show owner x"), 2);
	assert_int_equal(tensorstat_run("group show pid 3"), 2);
	assert_int_equal(tensorstat_run("group show owner 3 4"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_are_listed),
		cmocka_unit_test(other_files_are_passed_over),
		cmocka_unit_test(hostile_numbers_are_only_numbers),
		cmocka_unit_test(wrong_words_are_reported),
	};

	tool_find();
	return cmocka_run_group_tests_name("tensorstat_group", tests, NULL, NULL);
}
