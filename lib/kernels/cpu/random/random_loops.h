/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The functions that fill groups of uniform, normal and exponential numbers of type T (no include
 * guard; see each_float.h).
 */
#define F(name) CPU_PASTE(name, SUFFIX)

#define COUNT (D == TENSOR_F64 ? WIDE : NARROW)

static void F(uniform_groups)(int64_t begin, int64_t end, void *ctx)
{
	F(random_groups)(ctx, begin, end, F(uniform), COUNT);
}

static void F(normal_groups)(int64_t begin, int64_t end, void *ctx)
{
	F(random_groups)(ctx, begin, end, F(normal), COUNT);
}

static void F(exponential_groups)(int64_t begin, int64_t end, void *ctx)
{
	F(random_groups)(ctx, begin, end, F(exponential), COUNT);
}

#undef F
#undef COUNT
