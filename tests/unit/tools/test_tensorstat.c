// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tensorstat on the buffers of this process. */
#include "peer.h"
#include "tensorstat.h"

#include "lib/storage/descriptor.h"

#include <sys/stat.h>

static void labelled_buffer_is_listed(void **state)
{
	tensor *t = ok(tensor_zeros(TENSOR_INTS(64, 128), SHAREABLE(TENSOR_F32)));
	char text[128];

	assert_done(tensor_set_label(t, "weights"));
	assert_int_equal(tensorstat_run("buffer show owner %d"), 0);
	snprintf(text, sizeof(text), "backend: %s", tensor_provider_name());
	assert_says(text);
	assert_says("NAME");
	assert_says("weights");
	assert_says("[64,128]");
	assert_says("32KiB");
	assert_int_equal(tensorstat_run("-r -n -H b sh owner %d"), 0);
	assert_says(" 32768 ");
	assert_silent_about("NAME");
	assert_silent_about("/test");

	assert_int_equal(tensorstat_run("-j buffer show owner %d dtype f32"), 0);
	assert_says("\"name\":\"weights\",\"dtype\":\"f32\",\"shape\":[64,128],\"strides\":[128,1],"
		    "\"offset\":0,\"bytes\":32768,");
	snprintf(text, sizeof(text), "\"pid\":%d,\"uid\":%u,", getpid(), getuid());
	assert_says(text);
	tensor_release(t);
}

static void view_is_described_as_it_is(void **state)
{
	tensor_scope {
		tensor *t = ok(tensor_zeros(TENSOR_INTS(8, 8), SHAREABLE(TENSOR_I64)));

		assert_done(tensor_set_label(tensor_slice(tensor_t(t), 0, 2, 8, 2), "slice"));
		assert_int_equal(tensorstat_run("-j b sh owner %d"), 0);
		assert_says(
			"\"name\":\"slice\",\"dtype\":\"i64\",\"shape\":[3,8],\"strides\":[2,8],"
			"\"offset\":16,");
		assert_done(
			tensor_set_label(tensor_select(tensor_select(t, 0, 0), 0, 0), "scalar"));
		assert_int_equal(tensorstat_run("-j b sh owner %d"), 0);
		assert_says("\"name\":\"scalar\",\"dtype\":\"i64\",\"shape\":[],\"strides\":[],");
	}
}

static void cached_buffer_has_no_label(void **state)
{
	tensor *t = ok(tensor_zeros(TENSOR_INTS(64), SHAREABLE(TENSOR_F32)));

	assert_done(tensor_set_label(t, "passing"));
	tensor_release(t);
	assert_int_equal(tensorstat_run("-j b sh owner %d"), 0);
	assert_silent_about("passing");
}

static void sent_buffer_has_a_description(void **state)
{
	tensor *t = ok(tensor_zeros(TENSOR_INTS(77, 3), SHAREABLE(TENSOR_F64)));
	int ends[2];
	tensor_channel *ch;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ch = tensor_channel_open(ends[0]);
	assert_int_equal(tensorstat_run("-j b sh owner %d dtype f64"), 0);
	assert_silent_about("[77,3]");
	assert_done(tensor_send(ch, t, TENSOR_SEND_READONLY));
	assert_int_equal(tensorstat_run("-j b sh owner %d dtype f64"), 0);
	assert_says("\"shape\":[77,3]");
	tensor_channel_close(ch);
	close(ends[0]);
	close(ends[1]);
	tensor_release(t);
}

static void json_output_is_valid(void **state)
{
	tensor *t = ok(tensor_zeros(TENSOR_INTS(2), SHAREABLE(TENSOR_F32)));

	if (system("python3 -c 'import json' 2>/dev/null"))
		skip();
	assert_done(tensor_set_label(t, "a \"b\" \\ \xc3\xa9"));
	assert_int_equal(
		tensorstat_run(
			"-j b sh owner %d | python3 -c 'import json, sys; r = json.load(sys.stdin);"
			"print([x[\"name\"] for x in r if x[\"name\"]])'"),
		0);
	assert_says("['a \"b\" \\\\ \xc3\xa9']");
	assert_int_equal(tensorstat_run("-p b sh owner %d | python3 -m json.tool"), 0);
	assert_int_equal(tensorstat_run("-j b sh dtype c128 | python3 -m json.tool"), 0);
	assert_int_equal(tensorstat_run("-j client show | python3 -m json.tool"), 0);
	tensor_release(t);
}

static void filters_select_rows(void **state)
{
	tensor *small = ok(tensor_zeros(TENSOR_INTS(2), SHAREABLE(TENSOR_I32)));
	tensor *large = ok(tensor_zeros(TENSOR_INTS(1 << 19), SHAREABLE(TENSOR_F32)));

	assert_done(tensor_set_label(small, "small"));
	assert_done(tensor_set_label(large, "large"));
	assert_int_equal(tensorstat_run("b sh dtype i32 owner %d"), 0);
	assert_says("small");
	assert_silent_about("large");
	assert_int_equal(tensorstat_run("b sh minsize 1.5MiB owner %d"), 0);
	assert_says("large");
	assert_silent_about("small");
	assert_int_equal(tensorstat_run("b sh owner 1"), 0);
	assert_silent_about("large");
	assert_int_equal(tensorstat_run("b sh shared owner %d"), 0);
	assert_silent_about("large");
	tensor_release(small);
	tensor_release(large);
}

static void buffer_is_found_by_its_id(void **state)
{
	tensor *t = ok(tensor_zeros(TENSOR_INTS(2), SHAREABLE(TENSOR_F32)));
	unsigned long long id;
	char args[64];

	assert_done(tensor_set_label(t, "that one"));
	assert_int_equal(tensorstat_run("-j b sh dtype f32 owner %d"), 0);
	assert_int_equal(count("\"id\":"), 1);
	assert_int_equal(sscanf(strstr(out, "\"id\":"), "\"id\":%llu", &id), 1);
	snprintf(args, sizeof(args), "b sh %llu", id);
	assert_int_equal(tensorstat_run(args), 0);
	assert_says("that one");
	assert_int_equal(count("\n"), 3);
	tensor_release(t);
}

static void buffer_with_two_holders_is_one_row(void **state)
{
	tensor *t = ok(tensor_zeros(TENSOR_INTS(2), SHAREABLE(TENSOR_F32)));
	struct peer p = peer_start("hold", SOCK_STREAM);
	tensor *there;
	char pid[32];

	assert_done(tensor_set_label(t, "two"));
	assert_done(tensor_send(p.ch, t, 0));
	there = ok(tensor_recv(p.ch));
	assert_int_equal(tensorstat_run("-j b sh shared dtype f32 owner %d"), 0);
	assert_int_equal(count("\"name\":\"two\""), 1);
	if (!strcmp(tensor_provider_name(), "memfd")) {
		snprintf(pid, sizeof(pid), "\"pid\":%d,", p.pid);
		assert_says(pid);
	}
	tensor_release(there);
	assert_int_equal(peer_end(&p), 0);
	tensor_release(t);
}

static int hold_until_closed(tensor_channel *ch)
{
	tensor *t = tensor_recv(ch), *word = tensor_ones(TENSOR_SCALAR_SHAPE, I64);

	tensor_send(ch, word, 0);
	tensor_release(word);
	tensor_release(tensor_recv(ch)); /* returns when the other end is closed */
	tensor_release(t);
	return 0;
}

static void clients_are_listed(void **state)
{
	tensor *t = ok(tensor_zeros(TENSOR_INTS(1 << 19), F32));
	char text[64];

	assert_int_equal(tensorstat_run("client show pid %d"), 0);
	assert_says("HANDLES");
	snprintf(text, sizeof(text), "%d/test_tensorstat", getpid());
	assert_says(text);
	assert_int_equal(tensorstat_run("-j client show pid %d"), 0);
	assert_int_equal(count("\"comm\":"), 1);
	tensor_release(t);
}

static void exit_status_depends_on_the_error(void **state)
{
	bool module = access("/dev/tensor", F_OK) == 0;

	assert_int_equal(tensorstat_run("help"), 0);
	assert_says("Usage");
	assert_int_equal(tensorstat_run("version"), 0);
	assert_says("tensorstat 0.");
	assert_int_equal(tensorstat_run("buffer help"), 0);
	assert_int_equal(tensorstat_run(""), 2);
	assert_int_equal(tensorstat_run("nothing"), 2);
	assert_says("nothing");
	assert_int_equal(tensorstat_run("buffer destroy"), 2);
	assert_int_equal(tensorstat_run("buffer show dtype f33"), 2);
	assert_says("f33");
	assert_int_equal(tensorstat_run("buffer show minsize"), 2);
	assert_int_equal(tensorstat_run("buffer show minsize -3"), 2);
	assert_int_equal(tensorstat_run("buffer show minsize 3X"), 2);
	assert_int_equal(tensorstat_run("buffer show owner 0"), 2);
	assert_int_equal(tensorstat_run("--nothing"), 2);
	assert_int_equal(tensorstat_run("-b floppy buffer show"), 2);
	assert_int_equal(tensorstat_run("buffer show 18446744073709551615"), 6);
	assert_int_equal(tensorstat_run("client show pid 2147483647"), 6);
	assert_int_equal(tensorstat_run("-b device buffer show"), module ? 0 : 9);
	assert_int_equal(tensorstat_run("buffer show >/dev/full"), 1);
}

/* ---- labels and descriptors of other processes ---- */

/* A memfd with the name of the library's and this last page. */
static int imitation(const void *page, size_t size)
{
	int fd = memfd_create("tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(pwrite(fd, page, size, 4096), size);
	return fd;
}

static void every_command_reports_output_that_was_not_written(void **state)
{
	static const char *const commands[] = { "help",	       "version",     "--help",
						"-V",	       "buffer show", "buffer help",
						"client -j",   "export show", "user show -j",
						"device show", "stat 0.1 1",  "metrics",
						"top 1",       "doctor" };
	char command[64];

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		snprintf(command, sizeof(command), "%s 2>&1 >/dev/full; exit $?", commands[i]);
		assert_int_not_equal(tensorstat_run(command), 0);
		if (i < 4) {
			assert_int_equal(tensorstat_run(command), 1);
			assert_says("standard output: No space left on device");
		}
	}
}

static void descriptor_of_another_process_is_validated(void **state)
{
	struct descriptor_page page = { .d = { .dtype = TENSOR_F32, .ndim = 1, .sizes = { -7 } } };
	int fd;

	memcpy(page.magic, DESCRIPTOR_MAGIC, 8);
	memcpy(page.d.label, "\x1b[31mred\xff", 9);
	fd = imitation(&page, sizeof(page));
	assert_int_equal(tensorstat_run("-b memfd b sh owner %d"), 0);
	assert_says("?[31mred?");
	assert_silent_about("\x1b");
	close(fd);

	page.d.ndim = UINT32_MAX;
	page.d.dtype = UINT32_MAX;
	memset(page.d.label, 'x', sizeof(page.d.label)); /* without a terminating zero */
	fd = imitation(&page, sizeof(page));
	assert_int_equal(tensorstat_run("-b memfd -j b sh owner %d"), 0);
	assert_says("\"name\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\",\"dtype\":null");
	close(fd);
}

static void memfd_of_another_program_is_not_listed(void **state)
{
	int fds[] = { imitation("something", 9), memfd_create("tensor", MFD_CLOEXEC) };
	struct stat st;
	char id[48];

	assert_int_equal(tensorstat_run("-b memfd -j b sh owner %d"), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fstat(fds[i], &st), 0);
		snprintf(id, sizeof(id), "\"id\":%llu,", (unsigned long long)st.st_ino);
		assert_silent_about(id);
		close(fds[i]);
	}
}

int main(int argc, char **argv)
{
	static const struct peer_role roles[] = { { "hold", hold_until_closed }, { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labelled_buffer_is_listed),
		cmocka_unit_test(view_is_described_as_it_is),
		cmocka_unit_test(cached_buffer_has_no_label),
		cmocka_unit_test(sent_buffer_has_a_description),
		cmocka_unit_test(json_output_is_valid),
		cmocka_unit_test(filters_select_rows),
		cmocka_unit_test(buffer_is_found_by_its_id),
		cmocka_unit_test(buffer_with_two_holders_is_one_row),
		cmocka_unit_test(clients_are_listed),
		cmocka_unit_test(exit_status_depends_on_the_error),
		cmocka_unit_test(every_command_reports_output_that_was_not_written),
		cmocka_unit_test(descriptor_of_another_process_is_validated),
		cmocka_unit_test(memfd_of_another_program_is_not_listed),
	};

	peer_main(argc, argv, roles);
	tool_find();
	return cmocka_run_group_tests_name("tensorstat", tests, NULL, NULL);
}
