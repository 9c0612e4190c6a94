// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Saved tensors in another form. */
#include "autograd.h"

#include <pthread.h>
#include <stdio.h>

/* ---- hooks that keep saved tensors in half precision ---- */

static int packs, discards, ends;

static void *to_half(tensor *t, void *ctx)
{
	(void)ctx;
	packs++;
	return tensor_keep(ok(tensor_to(t, TENSOR_OPTIONS(.dtype = TENSOR_BF16))));
}

static tensor *from_half(void *packed, void *ctx)
{
	(void)ctx;
	return tensor_to(packed, F32);
}

static void drop_tensor(void *packed, void *ctx)
{
	(void)ctx;
	discards++;
	tensor_release(packed);
}

static void count_end(void *ctx)
{
	(void)ctx;
	ends++;
}

static const struct tensor_saved_hooks half = {
	.pack = to_half, .unpack = from_half, .discard = drop_tensor, .destroy = count_end
};

static int setup(void **state)
{
	(void)state;
	packs = discards = ends = 0;
	return 0;
}

static void saved_tensors_in_half_precision(void **state)
{
	tensor_scope {
		tensor *x = leaf(ok(tensor_full(TENSOR_INTS(2), S(1.001), F32))), *y = NULL;

		tensor_with_saved_hooks(&half) y = ok(tensor_sum(tensor_mul(x, x)));
		assert_int_equal(packs, 2);
		assert_int_equal(ends, 0);
		assert_done(tensor_backward(y));
		assert_int_equal(discards, 2);
		assert_int_equal(ends, 1);
		/* 1.001 is rounded to 1. */
		assert_values(tensor_grad(x), 0, 2, 2);
	}
}

/* ---- hooks that keep saved tensors in a file ---- */

struct in_file {
	int64_t sizes[2];
	long at;
};

static void *to_file(tensor *t, void *ctx)
{
	struct in_file *p = malloc(sizeof(*p));

	assert_int_equal(tensor_dim(t), 2);
	memcpy(p->sizes, tensor_sizes(t), sizeof(p->sizes));
	p->at = ftell(ctx);
	t = ok(tensor_contiguous(t));
	assert_int_equal(fwrite(tensor_data(t), sizeof(float), tensor_numel(t), ctx),
			 tensor_numel(t));
	return p;
}

static tensor *from_file(void *packed, void *ctx)
{
	const struct in_file *p = packed;
	tensor *t = tensor_empty((tensor_ints){ p->sizes, 2 }, F32);

	fseek(ctx, p->at, SEEK_SET);
	if (!t || fread(tensor_mutable_data(t), sizeof(float), tensor_numel(t), ctx) !=
			  (size_t)tensor_numel(t))
		return NULL;
	return t;
}

static void drop_place(void *packed, void *ctx)
{
	(void)ctx;
	discards++;
	free(packed);
}

static tensor *network(tensor *x, tensor *w)
{
	for (int i = 0; i < 3; i++)
		x = tensor_tanh(tensor_matmul(x, w));
	return tensor_sum(tensor_mul(x, x));
}

static void saved_tensors_in_a_file(void **state)
{
	FILE *file = tmpfile();
	const struct tensor_saved_hooks hooks = {
		.pack = to_file, .unpack = from_file, .discard = drop_place, .ctx = file
	};

	tensor_scope {
		tensor *x = ok(tensor_randn(TENSOR_INTS(3, 4), F32));
		tensor *w = leaf(ok(tensor_randn(TENSOR_INTS(4, 4), F32))), *want, *y = NULL;

		assert_done(tensor_backward(network(x, w)));
		want = ok(tensor_clone(tensor_grad(w)));
		assert_done(tensor_set_grad(w, NULL));
		tensor_with_saved_hooks(&hooks) y = ok(network(x, w));
		assert_done(tensor_backward(y));
		assert_same(want, tensor_grad(w));
		assert_true(discards > 6);
	}
	fclose(file);
}

/* ---- failures ---- */

static void *no_pack(tensor *t, void *ctx)
{
	(void)t;
	(void)ctx;
	return NULL;
}

static void *identity(tensor *t, void *ctx)
{
	(void)ctx;
	return tensor_retain(t);
}

static tensor *no_unpack(void *packed, void *ctx)
{
	(void)packed;
	(void)ctx;
	return NULL;
}

static tensor *unpack_sum(void *packed, void *ctx)
{
	(void)ctx;
	return tensor_sum(packed);
}

static tensor *unpack_same(void *packed, void *ctx)
{
	(void)ctx;
	return tensor_retain(packed) ? tensor_scope_add(packed) : NULL;
}

static void failing_hooks_are_errors(void **state)
{
	const struct tensor_saved_hooks bad = { .pack = identity },
					fails = { no_pack, no_unpack, NULL, NULL, NULL },
					late = { identity, no_unpack, drop_tensor, NULL, NULL },
					wrong = { identity, unpack_sum, drop_tensor, NULL, NULL };

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = NULL, *z = NULL;
		bool ran = false;

		tensor_with_saved_hooks(&bad) ran = true;
		assert_false(ran);
		assert_string_equal(tensor_last_error()->text,
				    "saved_hooks: pack and unpack must be given");
		tensor_with_saved_hooks(&fails)
			assert_fails(tensor_mul(x, x), ECANCELED, "pack failed");
		tensor_with_saved_hooks(&late) y = ok(tensor_sum(tensor_mul(x, x)));
		assert_fails(tensor_backward(y), ECANCELED, "unpack failed");
		tensor_with_saved_hooks(&wrong) z = ok(tensor_sum(tensor_mul(x, x)));
		assert_fails(tensor_backward(z), EINVAL, "must return [2]");
		assert_null(tensor_grad(x));
	}
}

static void change_of_packed_memory_is_found(void **state)
{
	const struct tensor_saved_hooks same = { identity, unpack_same, drop_tensor, NULL, NULL };

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *h = ok(tensor_exp(x)), *y = NULL;

		tensor_with_saved_hooks(&same) y = ok(tensor_sum(tensor_mul(h, h)));
		ok(tensor_add_scalar_(h, S(1)));
		assert_fails(tensor_backward(y), EINVAL, "changed in place");
	}
}

static void *keep_alias(tensor *t, void *ctx)
{
	(void)ctx;
	return tensor_retain(t);
}

static int change_what_is_saved(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)nin;
	(void)nout;
	(void)ctx;
	out[0] = tensor_exp(tensor_mul_scalar(in[0], S(2)));
	out[0] = tensor_mul_scalar_(out[0], S(3));
	return out[0] ? 0 : -1;
}

static void change_of_a_kept_alias_is_found(void **state)
{
	const struct tensor_saved_hooks alias = { keep_alias, unpack_same, drop_tensor, NULL,
						  NULL };

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *h = NULL, *y;

		tensor_with_saved_hooks(&alias) h = ok(tensor_exp(x));
		ok(tensor_mul_scalar_(h, S(3)));
		assert_fails(tensor_backward(tensor_sum(h)), EINVAL, "changed in place");
		assert_done(
			tensor_checkpoint(change_what_is_saved, NULL, NULL, TENSOR_LIST(x), &y, 1));
		assert_fails(tensor_backward(tensor_sum(y)), EINVAL, "changed in place");
	}
}

static void *get_saved(void *node)
{
	tensor_scope
		assert_non_null(tensor_node_saved_get(node, 0));
	return NULL;
}

static void packed_tensor_is_read_by_another_thread(void **state)
{
	pthread_t thread;

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *y = NULL;

		tensor_with_saved_hooks(&half) y = ok(tensor_mul(x, x));
		assert_int_equal(pthread_create(&thread, NULL, get_saved, tensor_grad_fn(y)), 0);
		pthread_join(thread, NULL);
	}
}

static void packed_tensors_have_their_history(void **state)
{
	const struct tensor_saved_hooks same = { identity, unpack_same, drop_tensor, NULL, NULL };

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *g[1], *y = NULL;

		tensor_with_saved_hooks(&same)
		{
			y = ok(tensor_mul(tensor_exp(x), x));
			y = ok(tensor_sum(y));
		}
		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), g,
					       TENSOR_CREATE_GRAPH));
		assert_done(tensor_backward(tensor_sum(g[0])));
		/* (x e^x)'' = (x + 2) e^x */
		assert_values(tensor_grad(x), 1e-5, 3 * exp(1), 4 * exp(2));
		tensor_with_saved_hooks(&half) tensor_with_saved_hooks(NULL) ok(tensor_mul(x, x));
		assert_int_equal(packs, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(saved_tensors_in_half_precision, setup),
		cmocka_unit_test_setup(saved_tensors_in_a_file, setup),
		cmocka_unit_test_setup(failing_hooks_are_errors, setup),
		cmocka_unit_test_setup(change_of_packed_memory_is_found, setup),
		cmocka_unit_test_setup(change_of_a_kept_alias_is_found, setup),
		cmocka_unit_test_setup(packed_tensor_is_read_by_another_thread, setup),
		cmocka_unit_test_setup(packed_tensors_have_their_history, setup),
	};

	return cmocka_run_group_tests_name("autograd_saved", tests, NULL, NULL);
}
