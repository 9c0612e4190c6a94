// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Collectives beside a plain computation: every operation for all dtypes, for shapes and strides, among 1 to 7 ranks. Each
 * rank can compute the tensors of all others.
 */
#include "ranks.h"

static const enum tensor_dtype dtypes[] = {
	TENSOR_BOOL, TENSOR_U8,	  TENSOR_I8,  TENSOR_I16, TENSOR_I32, TENSOR_I64,
	TENSOR_F16,  TENSOR_BF16, TENSOR_F32, TENSOR_F64, TENSOR_C64, TENSOR_C128,
};

static bool is_bool(enum tensor_dtype d)
{
	return d == TENSOR_BOOL;
}

/* The tensor of a rank: small integers, so that sums and products of all ranks are exact in every dtype. */
static tensor *made(tensor_ints size, enum tensor_dtype d, int rank, int seed)
{
	int64_t n = 1;
	tensor *t;

	for (int i = 0; i < size.len; i++)
		n *= size.data[i];
	t = tensor_arange(TENSOR_SCALAR(n), TENSOR_OPTIONS(.dtype = TENSOR_I64));
	t = tensor_add_scalar(tensor_mul_scalar(t, TENSOR_SCALAR(7)),
			      TENSOR_SCALAR(3 * rank + seed));
	t = tensor_remainder_scalar(t, TENSOR_SCALAR(is_bool(d) ? 2 : 3));
	return tensor_reshape(tensor_to(t, TENSOR_OPTIONS(.dtype = d)), size);
}

/* ---- layouts: the same elements with other strides ---- */

enum { PLAIN, TRANSPOSED, EVERY_OTHER, LAYOUTS };

/* An uninitialised tensor of this shape. */
static tensor *space(tensor_ints size, enum tensor_dtype d, int layout)
{
	const tensor_options options = { .dtype = d, .device = ranks_device };
	int64_t wide[TENSOR_MAX_DIMS];
	tensor *t;

	for (int i = 0; i < size.len; i++)
		wide[i] = size.data[i];
	if (layout == TRANSPOSED && size.len > 1) {
		int64_t first = wide[0];

		wide[0] = wide[size.len - 1];
		wide[size.len - 1] = first;
		t = tensor_zeros((tensor_ints){ wide, size.len }, options);
		return tensor_transpose(t, 0, (int)size.len - 1);
	}
	if (layout == EVERY_OTHER && size.len) {
		wide[size.len - 1] *= 2;
		t = tensor_zeros((tensor_ints){ wide, size.len }, options);
		return tensor_slice(t, (int)size.len - 1, 0, wide[size.len - 1], 2);
	}
	return tensor_zeros(size, options);
}

static tensor *laid_out(tensor *t, int layout)
{
	int64_t size[TENSOR_MAX_DIMS];
	int n = tensor_dim(t);

	for (int i = 0; i < n; i++)
		size[i] = tensor_size(t, i);
	return tensor_copy_(space((tensor_ints){ size, n }, tensor_dtype(t), layout), t);
}

/* ---- the plain computation ---- */

static tensor *stacked(tensor_ints size, enum tensor_dtype d, int ranks, int seed)
{
	tensor *all[RANKS_MAX];

	for (int i = 0; i < ranks; i++)
		all[i] = made(size, d, i, seed);
	return tensor_stack((tensor_list){ all, ranks }, 0);
}

static tensor *expected(tensor *all, enum tensor_dtype d, enum tensor_group_op op)
{
	const int64_t zero = 0;
	tensor_ints dim = { &zero, 1 };

	switch (op) {
	case TENSOR_GROUP_SUM:
		return is_bool(d) ? tensor_any_dim(all, 0, false) :
				    tensor_sum_dim_opt(all, dim, false, d);
	case TENSOR_GROUP_MEAN:
		return tensor_mean_dim(all, dim, false);
	case TENSOR_GROUP_PRODUCT:
		return is_bool(d) ? tensor_all_dim(all, 0, false) :
				    tensor_prod_dim_opt(all, 0, false, d);
	case TENSOR_GROUP_MIN:
		return tensor_amin(all, dim, false);
	default:
		return tensor_amax(all, dim, false);
	}
}

static bool is_possible(enum tensor_dtype d, enum tensor_group_op op)
{
	bool is_complex = d == TENSOR_C64 || d == TENSOR_C128;
	bool is_float = d == TENSOR_F16 || d == TENSOR_BF16 || d == TENSOR_F32 || d == TENSOR_F64;

	if (op == TENSOR_GROUP_MEAN)
		return is_float || is_complex;
	return !is_complex || op == TENSOR_GROUP_SUM || op == TENSOR_GROUP_PRODUCT;
}

/* ---- all operations on one shape ---- */

struct shape {
	int ndim;
	int64_t sizes[4];
};

static tensor_ints whole_size(const struct shape *s, int ranks, int64_t *sizes)
{
	memcpy(sizes, s->sizes, sizeof(s->sizes));
	sizes[0] *= ranks;
	return (tensor_ints){ sizes, s->ndim };
}

static tensor *on_cpu(tensor *t)
{
	return t ? tensor_to(t, TENSOR_OPTIONS(.dtype = tensor_dtype(t),
					       .device = TENSOR_DEVICE_CPU)) :
		   NULL;
}

static bool same(tensor *a, tensor *b)
{
	a = on_cpu(a);
	b = on_cpu(b);
	tensor *all = a && b && tensor_dim(a) == tensor_dim(b) ? tensor_all(tensor_eq(a, b)) : NULL;
	double value = 0;

	return all && tensor_numel(a) == tensor_numel(b) && tensor_dtype(a) == tensor_dtype(b) &&
	       !tensor_item(all, &value) && value == 1;
}

static void reduction(tensor_group *g, const struct shape *s, enum tensor_dtype d, int layout,
		      int op)
{
	int rank = tensor_group_rank(g), ranks = tensor_group_size(g),
	    root = (s->ndim + layout) % ranks;
	tensor_ints size = { s->sizes, s->ndim }, whole;
	tensor *in = laid_out(made(size, d, rank, op), layout), *out, *want;
	int64_t sizes[4];

	if (!is_possible(d, op)) {
		NEED(tensor_group_all_reduce(g, in, in, op, NULL) == -EINVAL);
		return;
	}
	want = expected(stacked(size, d, ranks, op), d, op);
	out = space(size, d, (layout + 1) % LAYOUTS);
	NEED(!tensor_group_all_reduce(g, out, in, op, NULL));
	NEED(same(out, want));
	NEED(same(in, made(size, d, rank, op)));
	out = space(size, d, layout);
	NEED(!tensor_group_reduce(g, rank == root ? out : NULL, in, op, root, NULL));
	NEED(same(out, rank == root ? want : space(size, d, layout)));
	NEED(!tensor_group_all_reduce(g, in, in, op, NULL));
	NEED(same(in, want));
	if (!s->ndim)
		return;
	whole = whole_size(s, ranks, sizes);
	in = laid_out(made(whole, d, rank, op), layout);
	want = expected(stacked(whole, d, ranks, op), d, op);
	out = space(size, d, layout);
	NEED(!tensor_group_reduce_scatter(g, out, in, op, NULL));
	NEED(same(out, tensor_narrow(want, 0, rank * s->sizes[0], s->sizes[0])));
}

static void reductions(tensor_group *g, const struct shape *s, enum tensor_dtype d, int layout)
{
	for (int op = 0; op <= TENSOR_GROUP_MAX; op++)
		tensor_scope
			reduction(g, s, d, layout, op);
}

static void copies(tensor_group *g, const struct shape *s, enum tensor_dtype d, int layout)
{
	int rank = tensor_group_rank(g), ranks = tensor_group_size(g),
	    root = (s->ndim + layout) % ranks;
	tensor_ints size = { s->sizes, s->ndim }, whole;
	tensor *in = laid_out(made(size, d, rank, 1), layout), *out, *want, *all[RANKS_MAX];
	int64_t sizes[4];

	out = rank == root ? in : space(size, d, layout);
	NEED(!tensor_group_broadcast(g, out, root, NULL));
	NEED(same(out, made(size, d, root, 1)));
	if (!s->ndim)
		return;
	in = laid_out(made(size, d, rank, 1), layout);
	whole = whole_size(s, ranks, sizes);
	for (int i = 0; i < ranks; i++)
		all[i] = made(size, d, i, 1);
	want = tensor_cat((tensor_list){ all, ranks }, 0);
	out = space(whole, d, layout);
	NEED(!tensor_group_all_gather(g, out, in, NULL));
	NEED(same(out, want));
	out = space(whole, d, layout);
	NEED(!tensor_group_gather(g, out, in, root, NULL));
	NEED(same(out, rank == root ? want : space(whole, d, layout)));
	out = space(size, d, layout);
	NEED(!tensor_group_scatter(g, out, rank == root ? laid_out(want, layout) : NULL, root,
				   NULL));
	NEED(same(out, in));
	for (int i = 0; i < ranks; i++)
		all[i] = tensor_narrow(made(whole, d, i, 2), 0, rank * s->sizes[0], s->sizes[0]);
	out = space(whole, d, layout);
	NEED(!tensor_group_all_to_all(g, out, laid_out(made(whole, d, rank, 2), layout), NULL));
	NEED(same(out, tensor_cat((tensor_list){ all, ranks }, 0)));
}

static void all_operations(tensor_group *g, void *arg)
{
	static const struct shape shapes[] = {
		{ 0, { 1 } }, { 1, { 1 } }, { 1, { 0 } }, { 2, { 3, 5 } }, { 3, { 2, 1, 700 } },
	};
	/* The layouts do not depend on the engine; runs with more ranks than processors are slow. */
	const int step = ranks_are_mpi() || ranks_are_nccl() ? 2 : 1;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
			for (int layout = 0; layout < LAYOUTS; layout += step)
				tensor_scope {
					/* Some of them with each number of ranks. */
					if (ranks_are_nccl() &&
					    (12 * i + d + 5 * (size_t)tensor_group_size(g)) % 15)
						continue;
					reductions(g, &shapes[i], dtypes[d], layout);
					copies(g, &shapes[i], dtypes[d], layout);
				}
	NEED(!tensor_group_barrier(g, NULL));
}

static void operations_match_a_plain_computation(void **state)
{
	/* A sanitizer needs ten times as long. */
#ifdef __SANITIZE_ADDRESS__
	const int step = 3;
#else
	const int step = 1;
#endif

	for (int ranks = 1; ranks <= (ranks_are_nccl() ? RANKS_NCCL : 7); ranks += step)
		run_ranks(ranks, all_operations, NULL);
}

/* ---- tensors larger than the shared memory ---- */

static void large_tensors(tensor_group *g, void *arg)
{
	const struct shape s = { 2, { 3, ranks_most(50001) } };

	for (int d = TENSOR_U8; d <= TENSOR_F64; d += 4)
		tensor_scope {
			reductions(g, &s, d, PLAIN);
			copies(g, &s, d, PLAIN);
		}
}

static void large_tensors_go_in_pieces(void **state)
{
	run_ranks(2, large_tensors, NULL);
	run_ranks(5, large_tensors, NULL);
}

/* ---- bits ---- */

/* Random numbers of different magnitudes: sums depend on the order, and all ranks must have the same one. */
static void random_sums(tensor_group *g, void *arg)
{
	static const enum tensor_dtype floats[] = { TENSOR_F16, TENSOR_BF16, TENSOR_F32,
						    TENSOR_F64 };
	int rank = tensor_group_rank(g), ranks = tensor_group_size(g);

	tensor_manual_seed(rank + 1);
	for (int i = 0; i < 4; i++)
		for (int64_t n = 1; n < ranks_most(1000000); n = n * 7 + 3)
			tensor_scope {
				tensor *t = tensor_randn(TENSOR_INTS(n), TENSOR_OPTIONS(0)), *all;
				int64_t sizes[] = { ranks * n };

				t = tensor_to(tensor_exp(tensor_mul_scalar(t, TENSOR_SCALAR(2))),
					      TENSOR_OPTIONS(.dtype = floats[i],
							     .device = ranks_device));
				NEED(!tensor_group_all_reduce(
					g, t, t, i & 1 ? TENSOR_GROUP_MEAN : TENSOR_GROUP_SUM,
					NULL));
				all = tensor_empty((tensor_ints){ sizes, 1 },
						   TENSOR_OPTIONS(.dtype = floats[i],
								  .device = ranks_device));
				NEED(!tensor_group_all_gather(g, all, t, NULL));
				for (int k = 0; k < ranks; k++)
					NEED(same(tensor_narrow(all, 0, k * n, n), t));
			}
}

static void sums_have_the_same_bits_on_all_ranks(void **state)
{
	run_ranks(4, random_sums, NULL);
	run_ranks(7, random_sums, NULL);
}

/* A sum of bf16 is rounded once: 256 + 1 + 1 + ... in bf16 alone stays 256. */
static void sum_bf16(tensor_group *g, void *arg)
{
	tensor_scope {
		tensor *t = tensor_full(TENSOR_INTS(3),
					TENSOR_SCALAR(tensor_group_rank(g) ? 1 : 256),
					TENSOR_OPTIONS(.dtype = TENSOR_BF16));

		NEED(!tensor_group_all_reduce(g, t, t, TENSOR_GROUP_SUM, NULL));
		NEED(same(t, tensor_full(TENSOR_INTS(3), TENSOR_SCALAR(255 + tensor_group_size(g)),
					 TENSOR_OPTIONS(.dtype = TENSOR_BF16))));
	}
}

static void sums_of_bf16_are_rounded_once(void **state)
{
	run_ranks(5, sum_bf16, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_match_a_plain_computation),
		cmocka_unit_test(large_tensors_go_in_pieces),
		cmocka_unit_test(sums_have_the_same_bits_on_all_ranks),
		cmocka_unit_test(sums_of_bf16_are_rounded_once),
	};

	return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
