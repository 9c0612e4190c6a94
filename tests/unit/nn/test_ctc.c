// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Connectionist temporal classification against the sum over all alignments. */
#include "formulas.h"

#define STEPS	4
#define CLASSES 3

/* Whether the steps without repetitions and then without blanks (0) equal the target. */
static bool spells(const int *step, const int64_t *target, int64_t n)
{
	int64_t at = 0;

	for (int t = 0; t < STEPS; t++) {
		if (!step[t] || (t && step[t] == step[t - 1]))
			continue;
		if (at == n || step[t] != target[at++])
			return false;
	}
	return at == n;
}

static double loss_by_hand(const double *log_probs, const int64_t *target, int64_t n)
{
	double sum = 0;

	for (int code = 0; code < 81; code++) {
		int step[STEPS], rest = code;
		double p = 0;

		for (int t = 0; t < STEPS; t++, rest /= CLASSES) {
			step[t] = rest % CLASSES;
			p += log_probs[t * CLASSES + step[t]];
		}
		sum += spells(step, target, n) ? exp(p) : 0;
	}
	return -log(sum);
}

static tensor *some_log_probs(void)
{
	tensor *t = ok(tensor_zeros(TENSOR_SHAPE(STEPS, 1, CLASSES), F64));
	double *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < STEPS * CLASSES; i++)
		p[i] = (double)(i * 2654435761u % 8009) / 4000;
	return ok(tensor_log_softmax(t, -1));
}

static void loss_sums_over_all_alignments(void **state)
{
	static const int64_t targets[][3] = { { 1, 2, 1 }, { 1, 1, 0 }, { 2, 0, 0 }, { 0, 0, 0 } };
	static const int64_t lengths[] = { 3, 2, 1, 0 };

	tensor_scope {
		tensor *probs = some_log_probs();

		for (int i = 0; i < 4; i++) {
			tensor *target = ok(tensor_from_data(targets[i], TENSOR_SHAPE(1, 3), I64));
			double want = loss_by_hand(tensor_data(probs), targets[i], lengths[i]);

			assert_values(tensor_ctc_loss(probs, target, TENSOR_INTS(STEPS),
						      TENSOR_INTS(lengths[i]), 0, 2, false),
				      1e-12, want);
		}
	}
}

static void gradient_agrees_with_central_differences(void **state)
{
	static const int64_t labels[] = { 1, 1 };

	tensor_scope {
		tensor *probs = some_log_probs(),
		       *target = ok(tensor_from_data(labels, TENSOR_SHAPE(1, 2), I64));
		double *p = tensor_mutable_data(probs), *g, h = 1e-6;

		assert_done(tensor_set_requires_grad(probs, true));
		assert_done(tensor_backward(ok(tensor_ctc_loss(probs, target, TENSOR_INTS(STEPS),
							       TENSOR_INTS(2), 0, 2, false))));
		g = tensor_mutable_data(tensor_grad(probs));
		for (int i = 0; i < STEPS * CLASSES; i++) {
			double at = p[i], up, down, own;

			p[i] = at + h;
			up = loss_by_hand(p, labels, 2);
			p[i] = at - h;
			down = loss_by_hand(p, labels, 2);
			p[i] = at;
			/*
			 * The gradient assumes that the inputs are logarithms of probabilities with
			 * sum 1.
			 */
			own = (up - down) / (2 * h) + exp(at);
			assert_true(fabs(own - g[i]) < 1e-8);
		}
	}
}

/* Two batches of other lengths. The gradient assumes logarithms of probabilities with sum 1. */
static int two_losses(tensor *log_probs, tensor **loss, tensor **alpha, tensor *targets)
{
	return tensor__ctc_loss(log_probs, targets, TENSOR_INTS(3, 4), TENSOR_INTS(1, 2), 0, false,
				loss, alpha);
}

static tensor *two_targets(void)
{
	return tensor_from_data((const int64_t[]){ 1, 0, 2, 1 }, TENSOR_INTS(2, 2), I64);
}

static tensor *ctc_loss(tensor *a)
{
	tensor *loss, *alpha;

	return two_losses(tensor_log_softmax(a, -1), &loss, &alpha, two_targets()) < 0 ? NULL :
											 loss;
}

/* The backward as a function of the gradient of the losses. */
static tensor *ctc_loss_backward(tensor *a)
{
	tensor *x = tensor_cos(tensor_view(tensor_arange(S(24), F64), TENSOR_INTS(4, 2, 3)));
	tensor *targets = two_targets(), *loss, *alpha;

	x = tensor_log_softmax(x, -1);
	return two_losses(x, &loss, &alpha, targets) < 0 ?
		       NULL :
		       tensor__ctc_loss_backward(a, x, targets, TENSOR_INTS(3, 4),
						 TENSOR_INTS(1, 2), loss, alpha, 0, false);
}

CASE(fn_loss, ctc_loss(a))
CASE(fn_loss_backward, ctc_loss_backward(tensor_mul(a, a)))

static const struct formula formulas[] = {
	ROW(loss, 1, IN(1, 0, 4, 2, 3)),
	ROW(loss, 1, IN_T(1, 0, 4, 2, 3)),
	ROW(loss_backward, 1, IN(1, 0, 2)),
};

/* The second derivative with respect to the logarithms is refused. */
static void formulas_agree_with_differences(void **state)
{
	check_all(formulas, ARRAY_SIZE(formulas), gradcheck);
	check_all(formulas + 2, 1, gradgradcheck);
}

static void labels_and_lengths_out_of_range_are_refused(void **state)
{
	tensor_scope {
		tensor *probs = some_log_probs();
		tensor *target =
			ok(tensor_from_data((const int64_t[]){ 1, 3 }, TENSOR_SHAPE(1, 2), I64));

#define CTC(steps, labels, blank) \
	tensor_ctc_loss(probs, target, TENSOR_INTS(steps), TENSOR_INTS(labels), blank, 2, false)
		assert_fails(CTC(4, 2, 0), EINVAL, "label 3");
		assert_fails(CTC(5, 1, 0), EINVAL, "input lengths");
		assert_fails(CTC(-1, 1, 0), EINVAL, "input lengths");
		assert_fails(CTC(4, 3, 0), EINVAL, "labels");
		assert_fails(CTC(4, -1, 0), EINVAL, "target lengths");
		assert_fails(CTC(4, 1, 3), EINVAL, "blank");
		ok(CTC(4, 1, 0));
	}
}

static void zero_infinity_zeroes_impossible_targets(void **state)
{
	tensor_scope {
		tensor *probs = some_log_probs();
		tensor *target =
			ok(tensor_from_data((const int64_t[]){ 1, 1 }, TENSOR_SHAPE(1, 2), I64));

		assert_done(tensor_set_requires_grad(probs, true));
		assert_values(tensor_ctc_loss(probs, target, TENSOR_INTS(2), TENSOR_INTS(2), 0, 2,
					      false),
			      0, INFINITY);
		assert_done(tensor_backward(ok(tensor_ctc_loss(probs, target, TENSOR_INTS(2),
							       TENSOR_INTS(2), 0, 2, true))));
		assert_values(tensor_sum(tensor_abs(tensor_grad(probs))), 0, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loss_sums_over_all_alignments),
		cmocka_unit_test(gradient_agrees_with_central_differences),
		cmocka_unit_test(formulas_agree_with_differences),
		cmocka_unit_test(labels_and_lengths_out_of_range_are_refused),
		cmocka_unit_test(zero_infinity_zeroes_impossible_targets),
	};

	return cmocka_run_group_tests_name("ctc", tests, NULL, NULL);
}
