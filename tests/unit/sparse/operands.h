/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Operands of the tests of sparse tensors. */
#ifndef TEST_SPARSE_OPERANDS_H
#define TEST_SPARSE_OPERANDS_H

#include "formulas.h"

static tensor *ints(tensor_ints values, tensor_ints shape)
{
	return ok(tensor_from_data(values.data, shape, I64));
}

static tensor *floats(const float *values, tensor_ints shape)
{
	return ok(tensor_from_data(values, shape, F32));
}

#define FLOATS(shape, ...) floats((const float[]){ __VA_ARGS__ }, shape)

/* Small whole numbers at pseudo-random places: about one in `each` of m * n, twice as many with values that add up. */
static tensor *random_sparse(int64_t m, int64_t n, int64_t each, uint64_t seed)
{
	int64_t count = m * n / each, *at = malloc((2 * count + 1) * sizeof(*at));
	float *v = malloc((count + 1) * sizeof(*v));
	tensor *t;

	for (int64_t i = 0; i < count; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		at[i] = (int64_t)((seed >> 33) % m);
		at[count + i] = (int64_t)((seed >> 13) % n);
		v[i] = (float)(seed >> 60) - 7;
	}
	t = ok(tensor_sparse_coo_tensor(ints((tensor_ints){ at, 2 * count }, TENSOR_INTS(2, count)),
					floats(v, TENSOR_INTS(count)), TENSOR_INTS(m, n)));
	free(at);
	free(v);
	return t;
}

#endif
