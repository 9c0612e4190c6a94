// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Graphs used by several threads at once: shared leaves, nodes, saved tensors and views. */
#include "autograd.h"
#include "threads.h"

#include <stdatomic.h>

/* ---- autograd ---- */

static struct {
	tensor *leaf, *other, *shared;
	_Atomic int64_t saved;
} graph;

/* Each thread makes its own graph of shared leaves. */
static void *backward_to_shared_leaves(struct worker *w)
{
	for (int i = 0; i < 100; i++)
		tensor_scope {
			tensor *y = tensor_sum(
				tensor_mul(tensor_add(graph.leaf, graph.other), graph.other));

			expect(w, tensor_backward(y) == 0);
		}
	return NULL;
}

static void gradients_of_all_threads_reach_shared_leaves(void **state)
{
	tensor_scope {
		graph.leaf = leaf_iota(1, TENSOR_INTS(3));
		graph.other = leaf_iota(4, TENSOR_INTS(3));
		with_threads(backward_to_shared_leaves, NULL);
		assert_values(tensor_grad(graph.leaf), 0, 1600, 2000, 2400);
		/* leaf + 2 * other */
		assert_values(tensor_grad(graph.other), 0, 3600, 4800, 6000);
	}
}

static void *backward_repeatedly(struct worker *w)
{
	for (int i = 0; i < 200; i++)
		expect(w, tensor_backward_ex(TENSOR_LIST(graph.shared), NULL, (tensor_list){ 0 },
					     NULL, TENSOR_RETAIN_GRAPH) == 0);
	return NULL;
}

static void threads_share_a_graph(void **state)
{
	tensor_scope {
		tensor *y = graph.leaf = leaf_iota(1, TENSOR_INTS(8));

		for (int i = 0; i < 100; i++)
			y = ok(tensor_mul_scalar(tensor_add(y, graph.leaf), S(0.5)));
		graph.shared = ok(tensor_sum(tensor_mul(y, graph.leaf)));
		with_threads(backward_repeatedly, NULL);
		/* The sum of leaf * leaf. */
		assert_values(tensor_grad(graph.leaf), 1e-2, 1600, 3200, 4800, 6400, 8000, 9600,
			      11200, 12800);
	}
}

/* Second derivatives through one graph: every thread reads saved tensors with their history. */
static void *differentiate_twice(struct worker *w)
{
	for (int i = 0; i < 50; i++)
		tensor_scope {
			tensor *first, *second;

			if (!expect(w, tensor_backward_ex(TENSOR_LIST(graph.shared), NULL,
							  TENSOR_LIST(graph.leaf), &first,
							  TENSOR_CREATE_GRAPH) == 0))
				break;
			expect(w, tensor_backward_ex(TENSOR_LIST(tensor_sum(first)), NULL,
						     TENSOR_LIST(graph.leaf), &second,
						     TENSOR_RETAIN_GRAPH) == 0);
			expect(w, number(tensor_select(second, 0, 0)) == 6);
		}
	return NULL;
}

static void threads_record_second_derivatives_of_one_graph(void **state)
{
	tensor_scope {
		graph.leaf = leaf_iota(1, TENSOR_INTS(8));
		graph.shared =
			ok(tensor_sum(tensor_mul(tensor_mul(graph.leaf, graph.leaf), graph.leaf)));
		with_threads(differentiate_twice, NULL);
	}
}

/* One thread frees the saved tensors; the others read them or fail. */
static void *read_saved(struct worker *w)
{
	tensor_node *fn = tensor_grad_fn(graph.shared);

	if (w->id == 0)
		expect(w, tensor_backward(graph.shared) == 0);
	for (int i = 0; w->id && i < 20; i++)
		tensor_scope {
			tensor *t = tensor_node_saved_get(fn, 0);

			if (t)
				expect(w, tensor_numel(t) == 8);
			else
				expect(w, tensor_last_error()->code == EINVAL);
			graph.saved += tensor_node_saved(fn);
		}
	return NULL;
}

static void saved_tensors_are_read_while_a_backward_frees_them(void **state)
{
	for (int i = 0; i < 50; i++)
		tensor_scope {
			graph.leaf = leaf_iota(1, TENSOR_INTS(8));
			graph.shared = ok(tensor_tanh(graph.leaf));
			graph.shared = ok(tensor_mul(graph.shared, graph.shared));
			graph.shared = ok(tensor_norm(graph.shared, S(2)));
			with_threads(read_saved, NULL);
		}
}

/* The base was changed in place: the first reader of the view regenerates its node. */
static void *use_stale_view(struct worker *w)
{
	tensor_scope {
		tensor *g = NULL;
		char text[256];

		switch (w->id % 4) {
		case 0:
			expect(w, tensor_requires_grad(tensor_neg(graph.shared)));
			break;
		case 1:
			expect(w, !strcmp(tensor_node_name(tensor_grad_fn(graph.shared)),
					  "AsStridedBackward"));
			break;
		case 2:
			expect(w, tensor_backward_ex(TENSOR_LIST(graph.shared), &graph.other,
						     TENSOR_LIST(graph.leaf), &g,
						     TENSOR_RETAIN_GRAPH) == 0);
			expect(w, number(tensor_select(g, 0, 1)) == 2);
			break;
		default:
			tensor_format(graph.shared, text, sizeof(text));
			expect(w,
			       tensor_requires_grad(graph.shared) && !tensor_is_leaf(graph.shared));
		}
	}
	return NULL;
}

static void every_use_of_a_stale_view_finds_its_history(void **state)
{
	for (int i = 0; i < 100; i++)
		tensor_scope {
			tensor *base;

			graph.leaf = leaf_iota(0, TENSOR_INTS(4));
			graph.other = ok(tensor_ones(TENSOR_INTS(2), F32));
			base = ok(tensor_mul_scalar(graph.leaf, S(1)));
			graph.shared = ok(tensor_slice(base, 0, 1, 3, 1));
			ok(tensor_mul_scalar_(base, S(2)));
			with_threads(use_stale_view, NULL);
		}
}

/* Nodes, metadata and saved tensors that one thread made are freed by another. */
static void *release_a_part(struct worker *w)
{
	tensor **part = (tensor **)graph.shared;

	expect(w, tensor_backward(part[w->id]) == 0);
	tensor_release(part[w->id]);
	return NULL;
}

static void graph_of_one_thread_is_freed_by_others(void **state)
{
	for (int i = 0; i < 50; i++) {
		tensor *part[THREADS], *x = NULL;

		graph.leaf = NULL;
		tensor_scope {
			x = tensor_retain(leaf_iota(1, TENSOR_INTS(16)));
			for (int k = 0; k < THREADS; k++)
				part[k] = tensor_keep(
					ok(tensor_sum(tensor_exp(tensor_mul_scalar(x, S(k))))));
		}
		graph.shared = (tensor *)part;
		with_threads(release_a_part, NULL);
		assert_non_null(tensor_grad(x));
		tensor_release(x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_of_all_threads_reach_shared_leaves),
		cmocka_unit_test(threads_share_a_graph),
		cmocka_unit_test(threads_record_second_derivatives_of_one_graph),
		cmocka_unit_test(saved_tensors_are_read_while_a_backward_frees_them),
		cmocka_unit_test(every_use_of_a_stale_view_finds_its_history),
		cmocka_unit_test(graph_of_one_thread_is_freed_by_others),
	};

	return cmocka_run_group_tests_name("autograd_threads", tests, NULL, NULL);
}
