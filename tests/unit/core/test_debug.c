// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * TENSOR_DEBUG=1: a memory error of the caller ends the program with a message that names the
 * operator which made the tensor. Each role is an execution of this program with TENSOR_DEBUG in
 * its environment.
 */
#include "peer.h"

#include <malloc.h>
#include <tensor/dispatch.h>

#define BYTES 100

static tensor *new_tensor(void)
{
	return tensor_full(TENSOR_INTS(BYTES), TENSOR_SCALAR(1),
			   TENSOR_OPTIONS(.dtype = TENSOR_U8));
}

/* ---- roles of the child ---- */

static void release_twice(void)
{
	tensor *t = new_tensor();

	tensor_release(t);
	tensor_release(t);
}

static void use_after_release(void)
{
	tensor *t = new_tensor();

	tensor_release(t);
	tensor_neg(t);
}

static void use_boxed_after_release(void)
{
	tensor_value v = { .kind = TENSOR_VALUE_TENSOR, .t = new_tensor() }, r;

	tensor_release(v.t);
	tensor_call("neg", &v, 1, &r, 1);
}

static void keep_after_release(void)
{
	tensor *t = new_tensor();

	tensor_release(t);
	tensor_retain(t);
}

/* The error of the caller: the result is released with the scope. */
static tensor *returned_without_keep(void)
{
	tensor *t;

	tensor_scope {
		t = new_tensor();
	}
	return t;
}

static void use_after_scope(void)
{
	tensor_neg(returned_without_keep());
}

/* As use_after_scope(), after other tensors were made and released. */
static tensor *returned_before_others(void)
{
	tensor *t = returned_without_keep(), *kept[20];

	for (int i = 0; i < 20; i++)
		tensor_scope {
			tensor *u = new_tensor();

			kept[i] = tensor_keep(tensor_add(u, u));
		}
	for (int i = 0; i < 20; i++)
		tensor_release(kept[i]);
	return t;
}

static void use_after_scope_and_others(void)
{
	tensor_neg(returned_before_others());
}

static void size_after_scope_and_others(void)
{
	tensor_size(returned_before_others(), 0);
}

static void release_after_scope_and_others(void)
{
	tensor_release(returned_before_others());
}

static void write_behind(void)
{
	tensor *t = new_tensor();

	((volatile char *)tensor_mutable_data(t))[BYTES + 3] = 1;
	tensor_release(t);
}

static void write_before(void)
{
	tensor *t = new_tensor();

	((volatile char *)tensor_mutable_data(t))[-2] = 1;
	tensor_release(t);
}

static void write_after_release(void)
{
	tensor *t = new_tensor();
	volatile char *p = tensor_mutable_data(t);

	tensor_release(t);
	p[50] = 1;
	exit(0); /* the check is at the end of the program */
}

/* Functions that do not use the dispatcher check the handle as well. */
#define AFTER_RELEASE(name, call)                 \
	static void name##_after_release(void)    \
	{                                         \
		char bytes[BYTES];                \
		double *number = (double *)bytes; \
		tensor *t = new_tensor();         \
                                                  \
		(void)number;                     \
		tensor_release(t);                \
		call;                             \
		exit(0);                          \
	}

AFTER_RELEASE(share_memory, tensor_share_memory(t))
AFTER_RELEASE(data, tensor_data(t))
AFTER_RELEASE(size, tensor_size(t, 0))
AFTER_RELEASE(numel, tensor_numel(t))
AFTER_RELEASE(is_contiguous, tensor_is_contiguous(t))
AFTER_RELEASE(save_npy, tensor_save_npy("/dev/null", t))
AFTER_RELEASE(save_npz, tensor_save_npz("/dev/null", &(struct tensor_named){ "x", t }, 1, 0))
AFTER_RELEASE(set_label, tensor_set_label(t, "x"))
AFTER_RELEASE(print, tensor_print(t, NULL))
AFTER_RELEASE(set_requires_grad, tensor_set_requires_grad(t, true))
AFTER_RELEASE(requires_grad, tensor_requires_grad(t))
AFTER_RELEASE(backward, tensor_backward(t))
AFTER_RELEASE(copy_to, tensor_copy_to(t, bytes, BYTES))
AFTER_RELEASE(at, tensor_at(t, TENSOR_INTS(1), number))
AFTER_RELEASE(item, tensor_item(t, number))
AFTER_RELEASE(buffer_seal, tensor_buffer_seal(t))
AFTER_RELEASE(scope_add, tensor_scope tensor_scope_add(t))

/* A freed block is kept in quarantine before it is reused. */
static void nothing_is_wrong(void)
{
	for (int i = 0; i < 100; i++) {
		tensor *t = new_tensor(), *u = tensor_add(t, t);
		void *p = tensor_mutable_data(t);

		tensor_release(t);
		t = new_tensor();
		if (tensor_data(t) == p)
			_exit(1);
		if (i % 10 == 0 && tensor_share_memory(u) < 0)
			_exit(2);
		tensor_release(u);
		tensor_release(t);
	}
	tensor_cache_trim();
	exit(0);
}

static long resident_mib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all, resident;

	if (!f || fscanf(f, "%ld %ld", &all, &resident) != 2)
		_exit(3);
	fclose(f);
	return resident / (1024 * 1024 / 4096);
}

/*
 * Blocks from malloc()'s heap, as past the limit of mappings; the last one keeps the heap from
 * being trimmed.
 */
static void released_memory_comes_back(void)
{
	enum { MANY = 700 };
	static tensor *t[MANY];

	mallopt(M_MMAP_MAX, 0);
	for (int i = 0; i < MANY; i++)
		t[i] = tensor_empty(TENSOR_INTS(1 << 20), TENSOR_OPTIONS(.dtype = TENSOR_U8));
	for (int i = 0; i < MANY - 1; i++)
		tensor_release(t[i]);
	exit(resident_mib() < 400 ? 0 : 4);
}

#define ROLE(name)                                                             \
	{                                                                      \
#name, name##_after_release, "tensor_" #name ": the tensor at" \
	}

static const struct {
	const char *name;
	void (*run)(void);
	const char *says;
} roles[] = {
	{ "release_twice", release_twice, "release: the tensor at" },
	{ "use_after_release", use_after_release, "neg: the tensor at" },
	{ "use_boxed_after_release", use_boxed_after_release, "neg: the tensor at" },
	{ "keep_after_release", keep_after_release, "retain: the tensor at" },
	{ "use_after_scope", use_after_scope, "released by the scope that ended at test_debug.c:" },
	{ "use_after_scope_and_others", use_after_scope_and_others, "neg: the tensor at" },
	{ "size_after_scope_and_others", size_after_scope_and_others,
	  "tensor_size: the tensor at" },
	{ "release_after_scope_and_others", release_after_scope_and_others,
	  "release: the tensor at" },
	ROLE(share_memory),
	ROLE(data),
	ROLE(size),
	ROLE(numel),
	ROLE(is_contiguous),
	ROLE(save_npy),
	ROLE(save_npz),
	ROLE(set_label),
	ROLE(print),
	ROLE(set_requires_grad),
	ROLE(requires_grad),
	ROLE(backward),
	ROLE(copy_to),
	ROLE(at),
	ROLE(item),
	ROLE(buffer_seal),
	ROLE(scope_add),
	{ "write_behind", write_behind, "3 bytes behind a tensor of 100 bytes" },
	{ "write_before", write_before, "2 bytes before a tensor of 100 bytes" },
	{ "write_after_release", write_after_release, "byte 50 of a tensor of 100 bytes" },
	{ "nothing_is_wrong", nothing_is_wrong, NULL },
	{ "released_memory_comes_back", released_memory_comes_back, NULL },
};

/* ---- tests ---- */

/* Returns the exit status of a role or -signal; text: its output to stderr. */
static int run_role(const char *name, const char *debug, char *text, size_t size)
{
	int out[2], status;
	ssize_t n, have = 0;
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(out[1], 2);
		setenv("TENSOR_DEBUG", debug, 1);
		execl("/proc/self/exe", "test", "--role", name, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	while ((n = read(out[0], text + have, size - 1 - (size_t)have)) > 0)
		have += n;
	text[have] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void misuse_ends_the_program_with_a_message(void **state)
{
	char text[4096];

#if defined(__SANITIZE_ADDRESS__)
	skip(); /* the sanitizer reports the error with its own text */
#endif
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
		int status = run_role(roles[i].name, "1", text, sizeof(text));

		if (!roles[i].says) {
			assert_int_equal(status, 0);
			continue;
		}
		print_message("%s: %s", roles[i].name, text);
		assert_int_equal(status, -SIGABRT);
		assert_contains(text, roles[i].says);
		assert_contains(text, "tensor_full");
	}
}

/* Without the debug mode these are reported only if no other tensor was made since. */
static void double_release_is_reported_without_debug_mode(void **state)
{
	char text[4096];

	assert_int_equal(run_role("release_twice", "0", text, sizeof(text)), -SIGABRT);
	assert_contains(text, "TENSOR_DEBUG=1 tells");
	assert_int_equal(run_role("use_after_release", "0", text, sizeof(text)), -SIGABRT);
}

static void message_names_the_location_of_each_call(void **state)
{
	static const char *const lines[] = { "used by tensor_neg, called at test_debug.c:",
					     "made by tensor_full, called at test_debug.c:",
					     "tensor_keep() takes a result out of its scope" };
	char text[4096];

#if defined(__SANITIZE_ADDRESS__)
	skip();
#endif
	assert_int_equal(run_role("use_after_scope", "1", text, sizeof(text)), -SIGABRT);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_contains(text, lines[i]);
}

/* Also without the debug mode: a released struct is not reused immediately. */
static void result_of_an_ended_scope_is_not_reused_soon(void **state)
{
	static const char *const names[] = { "use_after_scope", "use_after_scope_and_others",
					     "size_after_scope_and_others",
					     "release_after_scope_and_others" };
	char text[4096];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(run_role(names[i], "0", text, sizeof(text)), -SIGABRT);
		assert_contains(text, "tensor_keep()");
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misuse_ends_the_program_with_a_message),
		cmocka_unit_test(double_release_is_reported_without_debug_mode),
		cmocka_unit_test(message_names_the_location_of_each_call),
		cmocka_unit_test(result_of_an_ended_scope_is_not_reused_soon),
	};

	if (argc == 3 && !strcmp(argv[1], "--role")) {
		for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
			if (!strcmp(roles[i].name, argv[2]))
				roles[i].run();
		return 99;
	}
	return cmocka_run_group_tests_name("debug", tests, NULL, NULL);
}
