// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Host memory: which memory the cache reuses, forks, limits, labels. */
#include "peer.h"

#include <limits.h>
#include <sys/resource.h>

#define LARGE  TENSOR_INTS(4 << 20) /* 16 MiB of f32 */
#define BUFFER SHAREABLE(TENSOR_F32)

static struct tensor_cache_stats cache_stats(void)
{
	struct tensor_cache_stats s;

	tensor_cache_stats(&s);
	return s;
}

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt + u.ru_majflt;
}

/* ---- reuse ---- */

static void no_fault_when_warm(tensor_options o)
{
	long before = 0;

	for (int i = 0; i < 20; i++) {
		tensor *t = ok(tensor_empty(LARGE, o));

		memset(tensor_mutable_data(t), i, 16 << 20);
		tensor_release(t);
		if (i == 9)
			before = faults();
	}
#if !defined(__SANITIZE_ADDRESS__)
	assert_int_equal(faults(), before);
#else
	(void)before;
#endif
}

static void warm_memory_causes_no_page_fault(void **state)
{
	no_fault_when_warm(F32);
	no_fault_when_warm(BUFFER);
}

static void freed_buffer_is_reused(void **state)
{
	tensor *t = ok(tensor_empty(LARGE, BUFFER));
	void *p = tensor_mutable_data(t);
	struct tensor_cache_stats s;

	tensor_release(t);
	s = cache_stats();
	assert_true(s.cached >= 16 << 20);
	t = ok(tensor_empty(LARGE, BUFFER));
	assert_ptr_equal(tensor_data(t), p);
	assert_int_equal(cache_stats().hits, s.hits + 1);
	assert_int_equal(cache_stats().buffers, s.buffers);
	tensor_release(t);
}

static void trimmed_cache_is_empty(void **state)
{
	int before;

	tensor_release(ok(tensor_empty(LARGE, BUFFER)));
	before = count_buffers();
	tensor_cache_trim();
	assert_int_equal(cache_stats().cached, 0);
	assert_true(count_buffers() < before);
}

static void shared_buffer_is_never_reused(void **state)
{
	int ends[2];
	tensor_channel *ch;
	struct tensor_cache_stats s;
	tensor *t;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ch = tensor_channel_open(ends[0]);
	tensor_cache_trim();
	t = ok(tensor_empty(LARGE, BUFFER));
	assert_done(tensor_send(ch, t, 0));
	tensor_release(t);
	s = cache_stats();
	assert_int_equal(s.cached, 0);
	t = ok(tensor_empty(LARGE, BUFFER));
	assert_int_equal(cache_stats().buffers, s.buffers + 1);
	tensor_release(t);
	tensor_channel_close(ch);
	close(ends[0]);
	close(ends[1]);
}

static void new_buffer_contains_zeros(void **state)
{
	tensor *t;

	tensor_cache_trim();
	t = ok(tensor_empty(LARGE, BUFFER));
	for (int i = 0; i < 4 << 20; i += 1000)
		assert_true(((const float *)tensor_data(t))[i] == 0);
	tensor_release(t);
}

/* ---- forks ---- */

static void small_tensors_are_copied_by_a_fork(void **state)
{
	tensor *t = ok(tensor_full(TENSOR_INTS(8), TENSOR_SCALAR(1), F32));
	int go[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) {
		/* Both processes have overwritten free memory by now. */
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		for (int i = 0; i < 1000; i++)
			tensor_full(TENSOR_INTS(8), TENSOR_SCALAR(3), F32);
		for (int i = 0; i < 8; i++)
			if (((const float *)tensor_data(t))[i] != 1)
				_exit(2);
		_exit(0);
	}
	for (int i = 0; i < 1000; i++)
		tensor_release(tensor_full(TENSOR_INTS(8), TENSOR_SCALAR(2), F32));
	((float *)tensor_mutable_data(t))[0] = 5;
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(((const float *)tensor_data(t))[1] == 1);
	tensor_release(t);
	close(go[0]);
	close(go[1]);
}

static void buffer_from_before_a_fork_is_not_reused(void **state)
{
	struct tensor_cache_stats s;
	tensor *t;

	tensor_cache_trim();
	tensor_release(ok(tensor_empty(LARGE, BUFFER)));
	s = cache_stats();
	assert_int_equal(IN_CHILD({
				 t = tensor_empty(LARGE, BUFFER);
				 if (!t || cache_stats().buffers != s.buffers + 1)
					 _exit(1);
			 }),
			 0);
	t = ok(tensor_empty(LARGE, BUFFER));
	assert_int_equal(cache_stats().buffers, s.buffers + 1);
	tensor_release(t);
}

/* A child opens the device itself and does not close handles of its parent. */
static void child_does_not_free_buffers_of_its_parent(void **state)
{
	tensor *mine = ok(tensor_full(LARGE, TENSOR_SCALAR(1), BUFFER));
	struct peer p;

	assert_int_equal(IN_CHILD({
				 tensor *its[20];

				 for (int i = 0; i < 20; i++) {
					 its[i] = tensor_full(LARGE, TENSOR_SCALAR(2), BUFFER);
					 if (!its[i])
						 _exit(1);
				 }
				 tensor_release(mine);
				 for (int i = 0; i < 20; i++)
					 tensor_release(its[i]);
				 tensor_cache_trim();
			 }),
			 0);
	assert_true(((const float *)tensor_data(mine))[99] == 1);
	assert_done(tensor_set_label(mine, "mine"));
	p = peer_start("first", SOCK_STREAM);
	assert_done(tensor_send(p.ch, mine, 0));
	assert_int_equal(peer_end(&p), 1);
	tensor_release(mine);
}

/* A child sends an inherited tensor to a third process: shared if possible, otherwise copied. */
static void child_sends_inherited(tensor_options o)
{
	tensor *t = ok(tensor_full(LARGE, TENSOR_SCALAR(7), o));

	assert_int_equal(IN_CHILD({
				 struct peer p = peer_start("first", SOCK_STREAM);

				 if (tensor_send(p.ch, t, 0) < 0)
					 _exit(tensor_perror("send") ? 1 : 1);
				 _exit(peer_end(&p) == 7 ? 0 : 2);
			 }),
			 0);
	tensor_release(t);
}

static void child_sends_inherited_tensors(void **state)
{
	child_sends_inherited(F32);
	child_sends_inherited(BUFFER);
}

/* The exit status is the first element of the received tensor. */
static int send_first_element(tensor_channel *ch)
{
	tensor *t = tensor_recv(ch);
	int value = t ? (int)((const float *)tensor_data(t))[0] : 100;

	tensor_release(t);
	return value;
}

/* ---- limits ---- */

static void too_large_allocation_is_a_clear_error(void **state)
{
	char text[32];

	for (int shift = 42; shift < 62; shift += 3) {
		snprintf(text, sizeof(text), "%lld bytes", 1ll << shift);
		assert_fails(tensor_empty(TENSOR_INTS(1ll << shift),
					  TENSOR_OPTIONS(.dtype = TENSOR_U8)),
			     ENOMEM, text);
	}
	assert_fails(tensor_empty(TENSOR_INTS(INT64_MAX), F32), EOVERFLOW, "overflow");
}

#define LIMIT "/sys/module/tensor/parameters/limit_bytes"

static bool set_limit(unsigned long long bytes)
{
	FILE *f = fopen(LIMIT, "w");
	bool done = f && fprintf(f, "%llu", bytes) > 0;

	return f && fclose(f) == 0 && done;
}

/* The cache is emptied before an allocation fails by a limit. */
static void limit_of_the_module_is_a_clear_error(void **state)
{
	unsigned long long before;
	tensor *a, *b;
	FILE *f;

	if (strcmp(tensor_provider_name(), "device") || access(LIMIT, R_OK | W_OK) < 0)
		skip();
	f = fopen(LIMIT, "r");
	assert_int_equal(fscanf(f, "%llu", &before), 1);
	fclose(f);
	tensor_cache_trim();
	/* In a guest only this process has buffers; elsewhere the limit is reached earlier. */
	assert_true(set_limit(40 << 20));
	a = tensor_empty(LARGE, BUFFER);
	b = tensor_empty(LARGE, BUFFER);
	if (a && b) {
		tensor_release(b);
		b = tensor_empty(TENSOR_INTS(5 << 20), BUFFER);
	}
	assert_true(set_limit(before) && a && b);
	assert_true(set_limit(40 << 20));
	assert_null(tensor_empty(LARGE, BUFFER));
	assert_true(set_limit(before));
	assert_int_equal(tensor_last_error()->code, ENOMEM);
	assert_contains(tensor_last_error()->text, "limit of the tensor module");
	tensor_release(a);
	tensor_release(b);
}

/* The number of buffers, up to 64, that can be made within these limits. */
static int buffers_with(rlim_t soft, rlim_t hard)
{
	const struct rlimit few = { soft, hard };
	int n = 0;

	if (setrlimit(RLIMIT_NOFILE, &few) < 0)
		return 100;
	while (n < 64 && tensor_empty(TENSOR_INTS(4), BUFFER))
		n++;
	return n;
}

static void limit_of_descriptors_is_a_clear_error(void **state)
{
	if (strcmp(tensor_provider_name(), "memfd"))
		skip();
	assert_int_equal(IN_CHILD({
				 int n = buffers_with(32, 32);

				 if (n < 1 || n > 32 || tensor_last_error()->code != EMFILE ||
				     !strstr(tensor_last_error()->text,
					     "RLIMIT_NOFILE permits (32)"))
					 _exit(1);
			 }),
			 0);
	/* The library raises the soft limit to the hard one. */
	assert_int_equal(IN_CHILD(_exit(buffers_with(32, 128))), 64);
}

/* RLIMIT_FSIZE applies to memfds; SIGXFSZ is not delivered. */
static void limit_of_a_file_is_a_clear_error(void **state)
{
	const struct rlimit small = { 1 << 20, 1 << 20 };

	if (strcmp(tensor_provider_name(), "memfd"))
		skip();
	assert_int_equal(IN_CHILD({
				 setrlimit(RLIMIT_FSIZE, &small);
				 if (tensor_empty(LARGE, BUFFER) ||
				     tensor_last_error()->code != ENOMEM ||
				     !strstr(tensor_last_error()->text, "RLIMIT_FSIZE") ||
				     !tensor_empty(LARGE, F32))
					 _exit(1);
			 }),
			 0);
}

/* Buffers of the device use no descriptors. */
static void handles_cost_no_file_descriptor(void **state)
{
	enum { N = 200 };
	tensor *t[N];
	int before;

	if (strcmp(tensor_provider_name(), "device"))
		skip();
	tensor_release(ok(tensor_empty(LARGE, BUFFER)));
	before = count_fds();
	for (int i = 0; i < N; i++)
		t[i] = ok(tensor_empty(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));
	assert_int_equal(count_fds(), before);
	for (int i = 0; i < N; i++)
		tensor_release(t[i]);
}

/* ---- providers ---- */

static int run_with_provider(const char *provider)
{
	return IN_CHILD({
		setenv("TENSOR_PROVIDER", provider, 1);
		execl("/proc/self/exe", "test", "--name", provider, (char *)NULL);
		_exit(127);
	});
}

/*
 * Exit status 0: this provider is used, 10: it is used but cannot make a buffer, 20: another one is
 * used.
 */
static int name_role(const char *name)
{
	tensor *t = tensor_empty(LARGE, BUFFER);
	int status = t ? 0 : 10;

	tensor_release(t);
	if (strcmp(tensor_provider_name(), name))
		return 20;
	if (!t && !strstr(tensor_last_error()->text, "device: no buffer of 16777216 bytes"))
		return 30;
	return status;
}

static void environment_chooses_the_provider(void **state)
{
	assert_int_equal(run_with_provider("memfd"), 0);
	assert_int_equal(run_with_provider("device"),
			 access("/dev/tensor", R_OK | W_OK) == 0 ? 0 : 10);
	assert_int_equal(run_with_provider(""), 20);
}

/* ---- labels ---- */

static void labels_are_checked(void **state)
{
	tensor *small = ok(tensor_zeros(TENSOR_INTS(4), F32));
	tensor *t = ok(tensor_zeros(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));

	assert_done(tensor_set_label(t, "w1"));
	assert_done(tensor_set_label(t, ""));
	assert_done(tensor_set_label(t, "gewicht \xc3\xa4\xe2\x82\xac"));
	assert_done(tensor_set_label(t, "0123456789012345678901234567890"));
	assert_fails(tensor_set_label(t, "01234567890123456789012345678901"), EINVAL, "31 bytes");
	assert_fails(tensor_set_label(t, "a\nb"), EINVAL, "byte 1");
	assert_fails(tensor_set_label(t, "\x1b[31m"), EINVAL, "byte 0");
	assert_fails(tensor_set_label(t, "ab\xc3"), EINVAL, "byte 2");
	assert_fails(tensor_set_label(t, "\xc0\xaf"), EINVAL, "byte 0");
	assert_fails(tensor_set_label(t, "\xed\xa0\x80"), EINVAL, "byte 0");
	/* characters that change the direction of the text after them */
	assert_fails(tensor_set_label(t, "a\xe2\x80\xae"
					 "b"),
		     EINVAL, "byte 1");
	assert_fails(tensor_set_label(t, "\xe2\x81\xa6"), EINVAL, "byte 0");
	assert_fails(tensor_set_label(t, "\xd8\x9c"), EINVAL, "byte 0");
	assert_fails(tensor_set_label(t, NULL), EINVAL, "NULL");
	assert_fails(tensor_set_label(NULL, "x"), EINVAL, "NULL");
	assert_fails(tensor_set_label(small, "x"), EINVAL, "no buffer to itself");
	tensor_release(small);
	tensor_release(t);
}

int main(int argc, char **argv)
{
	static const struct peer_role roles[] = { { "first", send_first_element }, { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(warm_memory_causes_no_page_fault),
		cmocka_unit_test(freed_buffer_is_reused),
		cmocka_unit_test(trimmed_cache_is_empty),
		cmocka_unit_test(shared_buffer_is_never_reused),
		cmocka_unit_test(new_buffer_contains_zeros),
		cmocka_unit_test(small_tensors_are_copied_by_a_fork),
		cmocka_unit_test(buffer_from_before_a_fork_is_not_reused),
		cmocka_unit_test(child_does_not_free_buffers_of_its_parent),
		cmocka_unit_test(child_sends_inherited_tensors),
		cmocka_unit_test(too_large_allocation_is_a_clear_error),
		cmocka_unit_test(limit_of_the_module_is_a_clear_error),
		cmocka_unit_test(limit_of_descriptors_is_a_clear_error),
		cmocka_unit_test(limit_of_a_file_is_a_clear_error),
		cmocka_unit_test(handles_cost_no_file_descriptor),
		cmocka_unit_test(environment_chooses_the_provider),
		cmocka_unit_test(labels_are_checked),
	};

	peer_main(argc, argv, roles);
	if (argc == 3 && !strcmp(argv[1], "--name"))
		return name_role(argv[2]);
	return cmocka_run_group_tests_name("storage", tests, NULL, NULL);
}
