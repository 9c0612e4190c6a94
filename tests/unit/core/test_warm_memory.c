// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Steady state: once a program has repeated its work a few times, further repetitions cause no page
 * fault. All page faults of the process are counted.
 *
 * Other page faults may occur at any time (a page that was swapped out, moved or collapsed into a
 * huge one), but not in every round, while those of the library would repeat. So there are several
 * rounds, and one without a fault is sufficient.
 */
#include "check.h"

#include <sys/resource.h>

#ifdef __SANITIZE_ADDRESS__
/* AddressSanitizer's quarantine would keep freed memory from being reused. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=0:thread_local_quarantine_size_kb=0";
}
#endif

#define ROUNDS 6
#define MANY   25 /* steps of a round, and of the warm-up */
#define FEW    4  /* the same for large tensors */

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt + u.ru_majflt;
}

/* Deep recursion touches the pages of the stack in advance. */
static void __attribute__((noinline)) touch_stack(void)
{
	volatile char page[1 << 19];

	for (size_t i = 0; i < sizeof(page); i += 4096)
		page[i] = 1;
}

typedef void (*step_fn)(void *ctx);

/* The smallest number of page faults of a round. */
static long fewest_faults(step_fn step, void *ctx, int steps)
{
	long fewest = -1;

	touch_stack();
	for (int i = 0; i < steps; i++)
		step(ctx);
	for (int r = 0; r < ROUNDS && fewest; r++) {
		long before = faults(), n;

		for (int i = 0; i < steps; i++)
			step(ctx);
		n = faults() - before;
		if (fewest < 0 || n < fewest)
			fewest = n;
	}
	return fewest;
}

#define assert_warm(step, ctx, steps)                                                            \
	do {                                                                                     \
		for (int threads_ = 1; threads_ <= 2; threads_++) {                              \
			long n_;                                                                 \
                                                                                                 \
			assert_done(tensor_set_num_threads(threads_));                           \
			n_ = fewest_faults(step, ctx, steps);                                    \
			if (n_)                                                                  \
				fprintf(stderr, "%ld page faults in %d steps, %d threads\n", n_, \
					steps, threads_);                                        \
			assert_int_equal(n_, 0);                                                 \
		}                                                                                \
	} while (0)

/* ---- operators ---- */

struct operands {
	tensor *x, *y, *index, *mask; /* [rows, n], index [rows, n] within n */
};

static struct operands operands(int64_t rows, int64_t n)
{
	struct operands o = {
		.x = ok(tensor_randn(TENSOR_INTS(rows, n), F32)),
		.y = ok(tensor_randn(TENSOR_INTS(rows, n), F32)),
		.index = ok(tensor_randint(n, TENSOR_INTS(rows, n), I64)),
	};

	o.mask = ok(tensor_gt(o.x, o.y));
	return o;
}

static void one_of_each(void *ctx)
{
	struct operands *o = ctx;
	tensor *parts[] = { o->x, o->y }, *values, *indices;
	tensor_list both = { parts, 2 };

	tensor_scope {
		tensor *t = ok(tensor_add(o->x, o->y));

		ok(tensor_exp(t));
		ok(tensor_mul_(t, o->y));
		ok(tensor_sum(t));
		ok(tensor_argmax(t, 1, false));
		ok(tensor_var(t, true));
		ok(tensor_softmax(t, 1));
		ok(tensor_softmax(t, 0));
		ok(tensor_cumsum(t, 1));
		ok(tensor_cumsum(t, 0));
		assert_done(tensor_sort(t, 1, false, &values, &indices));
		assert_done(tensor_sort(t, 0, false, &values, &indices));
		assert_done(tensor_topk(t, 5, 1, true, true, &values, &indices));
		ok(tensor_gather(t, 1, o->index));
		ok(tensor_scatter_add(t, 1, o->index, o->x));
		ok(tensor_masked_select(t, o->mask));
		ok(tensor_nonzero(o->mask));
		ok(tensor_cat(both, 0));
		ok(tensor_cat(both, 1));
		ok(tensor_flip(t, TENSOR_INTS(1)));
		ok(tensor_contiguous(ok(tensor_t(t))));
		ok(tensor_to(t, TENSOR_OPTIONS(.dtype = TENSOR_BF16)));
	}
}

static void operators_of(int64_t rows, int64_t n, int steps)
{
	NOT_WATCHED();
	tensor_scope {
		struct operands o = operands(rows, n);

		assert_warm(one_of_each, &o, steps);
	}
}

static void operators_on_4_kib_cause_no_page_fault(void **state)
{
	operators_of(32, 32, MANY);
}

static void operators_on_256_kib_cause_no_page_fault(void **state)
{
	operators_of(256, 256, MANY);
}

static void operators_on_4_mib_cause_no_page_fault(void **state)
{
	operators_of(1024, 1024, FEW);
}

/* The largest results: few operators, to save time. */
static void fill_64_mib(void *ctx)
{
	tensor *x = ctx;

	tensor_scope {
		ok(tensor_neg(x));
		ok(tensor_sum(x));
	}
}

static void operators_on_64_mib_cause_no_page_fault(void **state)
{
	NOT_WATCHED();
	tensor_scope
		assert_warm(fill_64_mib, ok(tensor_zeros(TENSOR_INTS(4096, 4096), F32)), FEW);
}

/* ---- training ---- */

struct model {
	tensor *images, *labels;
	tensor *w[6];
};

static tensor *parameter(tensor *t)
{
	assert_done(tensor_set_requires_grad(t, true));
	return t;
}

static struct model model(int64_t batch)
{
	return (struct model){
		.images = ok(tensor_randn(TENSOR_INTS(batch, 1, 28, 28), F32)),
		.labels = ok(tensor_randint(10, TENSOR_INTS(batch), I64)),
		.w = { parameter(ok(tensor_randn(TENSOR_INTS(8, 1, 5, 5), F32))),
		       parameter(ok(tensor_zeros(TENSOR_INTS(8), F32))),
		       parameter(ok(tensor_randn(TENSOR_INTS(64, 8 * 12 * 12), F32))),
		       parameter(ok(tensor_zeros(TENSOR_INTS(64), F32))),
		       parameter(ok(tensor_randn(TENSOR_INTS(10, 64), F32))),
		       parameter(ok(tensor_zeros(TENSOR_INTS(10), F32))) },
	};
}

/* Convolution, pooling, two linear layers; forward, backward, update. */
static void train(void *ctx)
{
	struct model *m = ctx;

	tensor_scope {
		tensor *x = ok(tensor_conv2d(m->images, m->w[0], m->w[1], TENSOR_INTS(1, 1),
					     TENSOR_INTS(0, 0), TENSOR_INTS(1, 1), 1));

		x = ok(tensor_max_pool2d(ok(tensor_relu(x)), TENSOR_INTS(2, 2), TENSOR_INTS(2, 2),
					 TENSOR_INTS(0, 0), TENSOR_INTS(1, 1), false));
		x = ok(tensor_flatten(x, 1, -1));
		x = ok(tensor_relu(ok(tensor_linear(x, m->w[2], m->w[3]))));
		x = ok(tensor_linear(x, m->w[4], m->w[5]));
		assert_done(tensor_backward(ok(tensor_cross_entropy(x, m->labels))));
		tensor_no_grad {
			for (int i = 0; i < 6; i++) {
				tensor *grad = tensor_grad(m->w[i]);

				ok(tensor_sub_opt_(m->w[i], grad, TENSOR_SCALAR(1e-4)));
				assert_done(tensor_set_grad(m->w[i], NULL));
			}
		}
	}
}

static void training_step_causes_no_page_fault(void **state)
{
	NOT_WATCHED();
	tensor_scope {
		struct model m = model(64);

		assert_warm(train, &m, MANY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_on_4_kib_cause_no_page_fault),
		cmocka_unit_test(operators_on_256_kib_cause_no_page_fault),
		cmocka_unit_test(operators_on_4_mib_cause_no_page_fault),
		cmocka_unit_test(operators_on_64_mib_cause_no_page_fault),
		cmocka_unit_test(training_step_causes_no_page_fault),
	};

	return cmocka_run_group_tests_name("warm_memory", tests, NULL, NULL);
}
