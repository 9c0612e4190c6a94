// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Random tensors from sizes and options. */
#include "ops/random/random.h"

#include "family/factory.h"
#include "family/random.h"

static tensor_options with_dtype(tensor_options options, enum tensor_dtype dtype)
{
	if (!options.dtype)
		options.dtype = dtype;
	return options;
}

tensor *factory_rand_generator(tensor_ints size, tensor_generator *generator,
			       tensor_options options)
{
	tensor_options o = with_dtype(options, TENSOR_F32);
	struct random_params p;

	if (random_uniform("rand", o.dtype, 0, 1, &p) < 0)
		return NULL;
	return random_filled(&entry_rand, &kernels_uniform, factory_empty(size, o), &p, generator);
}

tensor *factory_rand(tensor_ints size, tensor_options options)
{
	return factory_rand_generator(size, NULL, options);
}

static tensor *normals(const struct tensor_op *op, double mean, double std, tensor_ints size,
		       tensor_generator *generator, tensor_options options)
{
	tensor_options o = with_dtype(options, TENSOR_F32);
	struct random_params p;

	if (random_normal(op->name, o.dtype, mean, std, &p) < 0)
		return NULL;
	return random_filled(op, &kernels_normal, factory_empty(size, o), &p, generator);
}

tensor *factory_randn_generator(tensor_ints size, tensor_generator *generator,
				tensor_options options)
{
	return normals(&entry_randn, 0, 1, size, generator, options);
}

tensor *factory_randn(tensor_ints size, tensor_options options)
{
	return factory_randn_generator(size, NULL, options);
}

tensor *factory_normal_float_float(double mean, double std, tensor_ints size,
				   tensor_generator *generator, tensor_options options)
{
	return normals(&entry_normal_float_float, mean, std, size, generator, options);
}

tensor *factory_randint_low_generator(int64_t low, int64_t high, tensor_ints size,
				      tensor_generator *generator, tensor_options options)
{
	tensor_options o = with_dtype(options, TENSOR_I64);
	struct random_params p;

	if (random_integers("randint", o.dtype, low, high, &p) < 0)
		return NULL;
	return random_filled(&entry_randint, &kernels_randint, factory_empty(size, o), &p,
			     generator);
}

tensor *factory_randint_low(int64_t low, int64_t high, tensor_ints size, tensor_options options)
{
	return factory_randint_low_generator(low, high, size, NULL, options);
}

tensor *factory_randint_generator(int64_t high, tensor_ints size, tensor_generator *generator,
				  tensor_options options)
{
	return factory_randint_low_generator(0, high, size, generator, options);
}

tensor *factory_randint(int64_t high, tensor_ints size, tensor_options options)
{
	return factory_randint_low_generator(0, high, size, NULL, options);
}

/* Convert n positions from i64 to another dtype that represents them all. Consumes t. */
static tensor *converted(tensor *t, tensor_ints size, tensor_options o)
{
	tensor *result = factory_empty(size, o);

	if (result && t && operand_copy(result, t) < 0) {
		tensor_put(result);
		result = NULL;
	}
	tensor_put(t);
	return result;
}

tensor *factory_randperm_generator(int64_t n, tensor_generator *generator, tensor_options options)
{
	tensor_options o = with_dtype(options, TENSOR_I64), whole = o;
	tensor_ints size = { &n, 1 };
	struct random_params p;
	tensor *t;

	if (n < 0)
		return tensor_fail_null(EINVAL, "randperm: n must not be negative, got %lld",
					(long long)n);
	if (random_integers("randperm", o.dtype, 0, n ? n : 1, &p) < 0)
		return NULL;
	/* All numbers up to n must be exactly representable, so that they differ. */
	if (dtype_is_float(o.dtype) && n > (int64_t)1 << random_digits(o.dtype))
		return tensor_fail_null(EINVAL,
					"randperm: %s does not represent all integers up to %lld",
					tensor_dtype_name(o.dtype), (long long)n);
	whole.dtype = TENSOR_I64;
	t = random_filled(&entry_randperm, &kernels_randperm, factory_empty(size, whole), &p,
			  generator);
	return !t || o.dtype == TENSOR_I64 ? t : converted(t, size, o);
}

tensor *factory_randperm(int64_t n, tensor_options options)
{
	return factory_randperm_generator(n, NULL, options);
}
