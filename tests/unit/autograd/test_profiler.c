// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The profiler: rows, times, bytes, the trace, threads, forks. */
#include "threads.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <tensor/function.h>
#include <tensor/profiler.h>
#include <unistd.h>

static tensor_profiler *start_of(unsigned flags)
{
	tensor_profiler *p = tensor_profiler_start(flags);

	if (!p)
		fprintf(stderr, "%s\n", tensor_last_error()->text);
	assert_non_null(p);
	return p;
}

/* The row of a name and, unless NULL, inputs; count 0 if there is none. */
static struct tensor_profile_row row_of(tensor_profiler *p, const char *name, const char *inputs)
{
	struct tensor_profile_row rows[200], found = { 0 };
	int64_t n = tensor_profiler_rows(p, rows, 200);

	assert_in_range(n, 0, 200);
	for (int64_t i = 0; i < n; i++) {
		if (i)
			assert_true(rows[i].self_ns <= rows[i - 1].self_ns);
		if (!strcmp(rows[i].name, name) && (!inputs || !strcmp(rows[i].inputs, inputs)))
			found = rows[i];
	}
	return found;
}

static void step(tensor *w)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_INTS(8, 16), F32));
		tensor *loss = ok(tensor_sum(tensor_tanh(tensor_mm(x, w))));

		assert_done(tensor_backward(loss));
		tensor_set_grad(w, NULL);
	}
}

static tensor *weights(void)
{
	tensor *w = ok(tensor_ones(TENSOR_INTS(16, 32), F32));

	assert_done(tensor_set_requires_grad(w, true));
	return w;
}

static void rows_count_operators_and_nodes(void **state)
{
	tensor_scope {
		tensor *w = weights();
		tensor_profiler *p = start_of(0);
		struct tensor_profile_row r;

		for (int i = 0; i < 5; i++)
			step(w);
		assert_done(tensor_profiler_stop(p));
		step(w);
		r = row_of(p, "tanh", NULL);
		assert_int_equal(r.count, 5);
		assert_string_equal(r.category, "operator");
		assert_string_equal(r.inputs, "");
		assert_int_equal(r.bytes, 5 * 8 * 32 * 4);
		assert_true(r.self_ns > 0 && r.self_ns <= r.total_ns && r.max_ns <= r.total_ns &&
			    r.max_ns * 5 >= r.total_ns);
		r = row_of(p, "TanhBackward", NULL);
		assert_int_equal(r.count, 5);
		assert_string_equal(r.category, "backward");
		r = row_of(p, "MmBackward", NULL);
		assert_int_equal(r.count, 5);
		/* Its time of its own does not have that of its product. */
		assert_true(r.self_ns < r.total_ns);
		assert_int_equal(row_of(p, "AccumulateGrad", NULL).count, 5);
		tensor_profiler_free(p);
	}
}

static void times_of_their_own_add_up_to_the_outermost_calls(void **state)
{
	tensor_scope {
		tensor *w = weights();
		tensor_profiler *p = start_of(0);
		struct tensor_profile_row rows[200];
		int64_t n, self = 0, longest = 0;

		for (int i = 0; i < 5; i++)
			step(w);
		tensor_profiler_stop(p);
		n = tensor_profiler_rows(p, rows, 200);
		for (int64_t i = 0; i < n; i++) {
			self += rows[i].self_ns;
			longest = rows[i].total_ns > longest ? rows[i].total_ns : longest;
			assert_true(rows[i].self_ns >= 0);
		}
		assert_true(self >= longest);
		tensor_profiler_free(p);
	}
}

static void views_and_in_place_results_have_no_bytes(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_INTS(64, 64), F32));
		tensor_profiler *p = start_of(0);

		ok(tensor_add_(tensor_transpose(x, 0, 1), x));
		tensor_profiler_stop(p);
		assert_int_equal(row_of(p, "transpose.int", NULL).count, 1);
		assert_int_equal(row_of(p, "transpose.int", NULL).bytes, 0);
		assert_int_equal(row_of(p, "add_.Tensor", NULL).bytes, 0);
		tensor_profiler_free(p);
	}
}

static void shapes_give_rows_of_their_own(void **state)
{
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_INTS(2, 3), F32));
		tensor *y = ok(tensor_ones(TENSOR_INTS(4), F64));
		tensor_profiler *p = start_of(TENSOR_PROFILE_SHAPES);

		ok(tensor_tanh(x));
		ok(tensor_tanh(x));
		ok(tensor_tanh(y));
		tensor_mm(x, y); /* fails */
		tensor_profiler_stop(p);
		assert_int_equal(row_of(p, "tanh", "[\"f32[2, 3]\"]").count, 2);
		assert_int_equal(row_of(p, "tanh", "[\"f64[4]\"]").count, 1);
		assert_int_equal(row_of(p, "mm", "[\"f32[2, 3]\",\"f64[4]\"]").count, 1);
		tensor_profiler_free(p);
	}
	tensor_clear_error();
}

static void table_has_a_line_for_each_row(void **state)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	tensor_scope {
		tensor_profiler *p = start_of(0);
		int lines = 0;

		step(weights());
		tensor_profiler_stop(p);
		assert_done(tensor_profiler_print(p, f, 3));
		fclose(f);
		for (const char *c = text; *c; c++)
			lines += *c == '\n';
		assert_int_equal(lines, 5);
		assert_contains(text, "NAME");
		assert_contains(text, "peak memory");
		free(text);
		tensor_profiler_free(p);
	}
}

/* The number of times that a text is in another one. */
static int occurrences(const char *text, const char *words)
{
	int n = 0;

	for (const char *at = strstr(text, words); at; at = strstr(at + 1, words))
		n++;
	return n;
}

static void trace_links_operators_with_their_backward(void **state)
{
	char path[] = "/tmp/profiler-XXXXXX", command[200];
	int fd = mkstemp(path);
	static char text[1 << 16];
	FILE *f;

	tensor_scope {
		tensor_profiler *p = start_of(TENSOR_PROFILE_EVENTS | TENSOR_PROFILE_SHAPES);

		assert_fails(tensor_profiler_save_trace(p, path), EBUSY, "stop it first");
		step(weights());
		tensor_profiler_stop(p);
		assert_done(tensor_profiler_save_trace(p, path));
		tensor_profiler_free(p);
	}
	f = fopen(path, "r");
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	assert_int_equal(occurrences(text, "\"ph\":\"s\""), 3);
	assert_int_equal(occurrences(text, "\"ph\":\"f\""), 3);
	assert_contains(text, "\"name\":\"TanhBackward\"");
	assert_contains(text, "\"args\":{\"inputs\":[\"f32[8, 16]\",\"f32[16, 32]\"]}");
	snprintf(command, sizeof(command), "/usr/bin/python3 -m json.tool %s >/dev/null", path);
	assert_int_equal(system(command), 0);
	close(fd);
	unlink(path);
}

static int square(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	(void)ctx, (void)nin, (void)nout;
	out[0] = tensor_square(in[0]);
	return out[0] ? 0 : -1;
}

static int square_backward(tensor_function_ctx *ctx, tensor *const *grads, int n, tensor **in,
			   int nin)
{
	(void)ctx, (void)n, (void)nin;
	in[0] = grads[0];
	return 0;
}

static void calls_of_a_function_of_the_program_are_one_row(void **state)
{
	static const struct tensor_function function = { "Square", square, square_backward, 0 };
	tensor_profiler *p = start_of(0);

	for (int i = 0; i < 10; i++)
		tensor_scope {
			tensor *w = weights(), *y;
			tensor *list[2] = { 0 };

			for (int k = 0; k < 2; k++, w = y) {
				assert_done(tensor_function_apply(&function, NULL, NULL,
								  TENSOR_LIST(w), &y, 1));
				list[k] = y;
			}
			assert_done(tensor_backward(tensor_sum(list[1])));
		}
	/* The nodes, which have the name, are freed. */
	assert_int_equal(row_of(p, "SquareBackward", NULL).count, 20);
	tensor_profiler_free(p);
}

static void one_profile_at_a_time_is_recorded(void **state)
{
	tensor_profiler *p = start_of(0), *q;

	assert_fails(tensor_profiler_start(0), EBUSY, "recorded already");
	tensor_profiler_free(p);
	q = start_of(0);
	tensor_profiler_stop(q);
	assert_done(tensor_profiler_stop(q));
	tensor_profiler_free(q);
	assert_fails(tensor_profiler_start(8), EINVAL, "flags");
	assert_fails(tensor_profiler_stop(NULL), EINVAL, "NULL");
	assert_fails(tensor_profiler_rows(NULL, NULL, 0), EINVAL, "NULL");
	assert_fails(tensor_profiler_print(NULL, NULL, 0), EINVAL, "NULL");
	assert_fails(tensor_profiler_save_trace(NULL, "x"), EINVAL, "NULL");
	p = start_of(0);
	assert_fails(tensor_profiler_rows(p, NULL, 1), EINVAL, "space");
	assert_fails(tensor_profiler_rows(p, NULL, -1), EINVAL, "space");
	assert_fails(tensor_profiler_print(p, NULL, -1), EINVAL, "rows");
	assert_fails(tensor_profiler_save_trace(p, "/tmp/x"), EINVAL,
		     "without TENSOR_PROFILE_EVENTS");
	tensor_profiler_free(p);
	tensor_profiler_free(NULL);
}

static void child_of_a_fork_records_nothing(void **state)
{
	tensor_profiler *p = start_of(0);
	pid_t pid = fork();
	int status = 1;

	if (!pid) {
		tensor *t = tensor_ones(TENSOR_INTS(3), F32);

		_exit(t && tensor_profiler_rows(p, NULL, 0) == 0 ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	tensor_scope
		ok(tensor_ones(TENSOR_INTS(3), F32));
	assert_int_equal(row_of(p, "ones", NULL).count, 1);
	tensor_profiler_free(p);
}

/* ---- threads ---- */

static atomic_bool stop;

static void *compute(struct worker *w)
{
	while (!atomic_load(&stop)) {
		tensor_scope {
			tensor *x = tensor_ones(TENSOR_INTS(4, 4), F32);

			expect(w, x && tensor_set_requires_grad(x, true) == 0);
			expect(w, tensor_backward(tensor_sum(tensor_tanh(x))) == 0);
			expect(w, tensor_grad(x) != NULL);
		}
	}
	return NULL;
}

static void start_and_stop(void)
{
	for (int i = 0; i < 200; i++) {
		tensor_profiler *p = start_of(i % 4);
		struct tensor_profile_row tanh, back;
		bool last = i == 199;

		for (int k = 0; last && k < 5000 && row_of(p, "tanh", NULL).count < 8; k++)
			usleep(1000);
		usleep(100);
		tensor_profiler_stop(p);
		tanh = row_of(p, "tanh", i % 2 ? "[\"f32[4, 4]\"]" : NULL);
		back = row_of(p, "TanhBackward", NULL);
		assert_in_range(back.count - tanh.count + 2 * THREADS, 0, 4 * THREADS);
		if (last)
			assert_true(tanh.count >= 8);
		tensor_profiler_free(p);
	}
	atomic_store(&stop, true);
}

static void profiles_begin_and_end_while_threads_compute(void **state)
{
	atomic_store(&stop, false);
	with_threads(compute, start_and_stop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_count_operators_and_nodes),
		cmocka_unit_test(times_of_their_own_add_up_to_the_outermost_calls),
		cmocka_unit_test(views_and_in_place_results_have_no_bytes),
		cmocka_unit_test(shapes_give_rows_of_their_own),
		cmocka_unit_test(table_has_a_line_for_each_row),
		cmocka_unit_test(trace_links_operators_with_their_backward),
		cmocka_unit_test(calls_of_a_function_of_the_program_are_one_row),
		cmocka_unit_test(one_profile_at_a_time_is_recorded),
		cmocka_unit_test(child_of_a_fork_records_nothing),
		cmocka_unit_test(profiles_begin_and_end_while_threads_compute),
	};

	return cmocka_run_group_tests_name("profiler", tests, NULL, NULL);
}
