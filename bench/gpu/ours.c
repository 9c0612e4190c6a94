// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Rows of the GPU's table: each operator on cuda:0, a line "NAME SECONDS BYTES FLOPS" for each. The
 * same rows are in peer.py. SECONDS are those of one call with many calls queued; BYTES are read and
 * written once.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tensor/cuda.h>
#include <tensor/tensor.h>
#include <time.h>

#define CUDA(...) TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(0), __VA_ARGS__)
#define F32	  .dtype = TENSOR_F32
#define F64	  .dtype = TENSOR_F64

struct row {
	const char *name;
	double bytes, flops;
	tensor *(*call)(const struct row *r);
	tensor *a, *b, *c, *d;
	int dim;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, tensor_last_error()->text);
	exit(1);
}

/* Seconds of n calls, with the device idle before and after. */
static double run(const struct row *r, int n)
{
	double start;

	tensor_cuda_synchronize(0);
	start = now();
	for (int i = 0; i < n; i++)
		tensor_scope
			if (!r->call(r))
				fail(r->name);
	if (tensor_cuda_synchronize(0))
		fail(r->name);
	return now() - start;
}

/* The fastest of seven samples of about 20 ms each. */
static double measure(const struct row *r)
{
	double once, best = 1e9;
	int n;

	run(r, 3);
	once = run(r, 10) / 10;
	n = once < 2e-7 ? 100000 : (int)(0.02 / once) + 1;
	for (int i = 0; i < 7; i++) {
		double s = run(r, n) / n;

		if (s < best)
			best = s;
	}
	return best;
}

/* ---- the calls ---- */

/* Arguments that do not fit into a row: of layer_norm, and the number of the step. */
static tensor *weight, *bias, *step;

static tensor_list tensor_list_of(tensor *const *data, int64_t n)
{
	return (tensor_list){ .data = data, .len = n };
}

#define CALL(NAME, EXPRESSION)                          \
	static tensor *call_##NAME(const struct row *r) \
	{                                               \
		return EXPRESSION;                      \
	}
CALL(add, tensor_add(r->a, r->b))
CALL(mul_number, tensor_mul_scalar(r->a, TENSOR_SCALAR(1.5)))
CALL(relu, tensor_relu(r->a))
CALL(clone, tensor_clone(r->a))
CALL(contiguous, tensor_contiguous(r->a))
CALL(sum, tensor_sum(r->a))
CALL(sum_dim, tensor_sum_dim(r->a, TENSOR_INTS(r->dim), false))
CALL(softmax, tensor_softmax(r->a, 1))
CALL(log_softmax, tensor_log_softmax(r->a, 1))
CALL(softmax_backward, tensor_softmax_backward(r->a, r->b, 1))
CALL(index_select, tensor_index_select(r->a, 0, r->b))
CALL(gather, tensor_gather(r->a, 1, r->b))
CALL(index_add, tensor_index_add(r->a, 0, r->b, r->c))
CALL(mm, tensor_mm(r->a, r->b))
CALL(bmm, tensor_bmm(r->a, r->b))
CALL(layer_norm, tensor_layer_norm(r->a, TENSOR_INTS(4096), r->b, r->c, 1e-5, true))
CALL(amax, tensor_amax(r->a, TENSOR_INTS(r->dim), false))
CALL(argmax, tensor_argmax(r->a, r->dim, false))
CALL(var, tensor_var_dim(r->a, TENSOR_INTS(r->dim), true, false))
CALL(cross_entropy, tensor_nll_loss(tensor_log_softmax(r->a, 1), r->b))
CALL(embedding, tensor_embedding(r->a, r->b, -1, false, false))
CALL(embedding_backward, tensor_embedding_dense_backward(r->a, r->b, 50257, -1, false))
CALL(to_device, tensor_to(r->a, CUDA(F32)))
CALL(to_host, tensor_to(r->a, TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU)))
#undef CALL

/* b and c: mean and rstd of the forward. */
static tensor *call_layer_norm_backward(const struct row *r)
{
	tensor *dx, *dweight, *dbias;
	int err = tensor_native_layer_norm_backward(r->d, r->a, TENSOR_INTS(4096), r->b, r->c,
						    weight, bias, 7, &dx, &dweight, &dbias);

	return err < 0 ? NULL : dx;
}

/* a is the parameter, b the gradient, c and d the moments. */
static tensor *call_adam(const struct row *r)
{
	tensor *const t[] = { r->a, r->b, r->c, r->d };
	int err = tensor__fused_adam_(tensor_list_of(t, 1), tensor_list_of(t + 1, 1),
				      tensor_list_of(t + 2, 1), tensor_list_of(t + 3, 1),
				      tensor_list_of(NULL, 0), tensor_list_of(&step, 1), 1e-3, 0.9,
				      0.999, 0, 1e-8, false, false);

	return err < 0 ? NULL : r->a;
}

static tensor *must(tensor *t)
{
	if (!t)
		fail("a tensor of a row");
	return t;
}

static tensor *uniform(tensor_ints shape, enum tensor_dtype dtype)
{
	tensor *host = must(tensor_rand(shape, TENSOR_OPTIONS(.dtype = dtype)));

	return must(tensor_to(host, CUDA(.dtype = dtype)));
}

static tensor *as(tensor *t, enum tensor_dtype dtype)
{
	return must(tensor_to(
		must(tensor_to(t, TENSOR_OPTIONS(.dtype = dtype, .device = TENSOR_DEVICE_CPU))),
		CUDA(.dtype = dtype)));
}

static tensor *indices(int64_t limit, tensor_ints shape)
{
	tensor *host = must(tensor_randint(limit, shape, TENSOR_OPTIONS(.dtype = TENSOR_I64)));

	return must(tensor_to(host, CUDA(.dtype = TENSOR_I64)));
}

#define ROW(NAME, CALL, BYTES, FLOPS, ...)                                                     \
	{                                                                                      \
		.name = NAME, .call = call_##CALL, .bytes = BYTES, .flops = FLOPS, __VA_ARGS__ \
	}

int main(void)
{
	const int64_t n = 1 << 26;
	const double rows_size = 4.0 * 8192 * 4096, product = 2.0 * 4096 * 4096 * 4096;

	if (!tensor_cuda_is_available()) {
		tensor_cuda_device_count();
		fail("bench/gpu");
	}
	tensor_scope {
		tensor *large = uniform(TENSOR_SHAPE(n), TENSOR_F32);
		tensor *other = uniform(TENSOR_SHAPE(n), TENSOR_F32);
		tensor *square = tensor_reshape(large, TENSOR_SHAPE(8192, 8192));
		tensor *rows = uniform(TENSOR_SHAPE(8192, 4096), TENSOR_F32);
		tensor *grad = uniform(TENSOR_SHAPE(8192, 4096), TENSOR_F32);
		tensor *offsets = uniform(TENSOR_SHAPE(4096), TENSOR_F32);
		tensor *small = uniform(TENSOR_SHAPE(4, 4), TENSOR_F32);
		tensor *m = uniform(TENSOR_SHAPE(4096, 4096), TENSOR_F32);
		tensor *d = uniform(TENSOR_SHAPE(4096, 4096), TENSOR_F64);
		tensor *pick = indices(8192, TENSOR_SHAPE(8192));
		tensor *each = indices(4096, TENSOR_SHAPE(8192, 1024));
		tensor *host = must(tensor_rand(TENSOR_SHAPE(1 << 24), TENSOR_OPTIONS(F32)));
		tensor *quarter = uniform(TENSOR_SHAPE(1 << 24), TENSOR_F32);
		tensor *half = as(m, TENSOR_BF16);
		tensor *heads = uniform(TENSOR_SHAPE(96, 1024, 64), TENSOR_F32);
		tensor *keys = tensor_transpose(heads, 1, 2);
		tensor *halves = as(heads, TENSOR_BF16);
		tensor *vocabulary = uniform(TENSOR_SHAPE(50257, 768), TENSOR_F32);
		tensor *words = indices(50257, TENSOR_SHAPE(8192));
		tensor *states = uniform(TENSOR_SHAPE(8192, 768), TENSOR_F32);
		tensor *logits = uniform(TENSOR_SHAPE(4096, 50257), TENSOR_F32);
		tensor *targets = indices(50257, TENSOR_SHAPE(4096));
		tensor *normal[3];

		weight = offsets;
		bias = uniform(TENSOR_SHAPE(4096), TENSOR_F32);
		step = must(
			tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(3), TENSOR_OPTIONS(F32)));
		if (tensor_native_layer_norm(rows, TENSOR_INTS(4096), weight, bias, 1e-5,
					     &normal[0], &normal[1], &normal[2]) < 0)
			fail("layer_norm");
		const struct row table[] = {
			ROW("add 4x4", add, 0, 0, .a = small, .b = small),
			ROW("add 2^26", add, 12.0 * n, 0, .a = large, .b = other),
			ROW("mul by a number 2^26", mul_number, 8.0 * n, 0, .a = large),
			ROW("relu 2^26", relu, 8.0 * n, 0, .a = large),
			ROW("clone 2^26", clone, 8.0 * n, 0, .a = large),
			ROW("add 8192x4096 + 4096", add, 2 * rows_size, 0, .a = rows, .b = offsets),
			ROW("transposed copy 8192x8192", contiguous, 8.0 * n, 0,
			    .a = tensor_t(square)),
			ROW("sum 2^26", sum, 4.0 * n, 0, .a = large),
			ROW("sum 8192x4096 rows", sum_dim, rows_size, 0, .a = rows, .dim = 1),
			ROW("sum 8192x4096 columns", sum_dim, rows_size, 0, .a = rows, .dim = 0),
			ROW("softmax 8192x4096", softmax, 2 * rows_size, 0, .a = rows),
			ROW("log_softmax 8192x4096", log_softmax, 2 * rows_size, 0, .a = rows),
			ROW("softmax_backward 8192x4096", softmax_backward, 3 * rows_size, 0,
			    .a = grad, .b = must(tensor_softmax(rows, 1))),
			ROW("index_select 8192x4096", index_select, 2 * rows_size, 0, .a = rows,
			    .b = pick),
			ROW("gather 8192x1024", gather, 16.0 * 8192 * 1024, 0, .a = rows,
			    .b = each),
			ROW("index_add 8192x4096", index_add, 5 * rows_size, 0, .a = rows,
			    .b = pick, .c = grad),
			ROW("mm f32 4096", mm, 0, product, .a = m, .b = m),
			ROW("mm f32 4096, transposed", mm, 0, product, .a = m, .b = tensor_t(m)),
			ROW("mm f64 4096", mm, 0, product, .a = d, .b = d),
			ROW("mm bf16 4096", mm, 0, product, .a = half, .b = half),
			ROW("bmm f32 96x1024x64", bmm, 0, 2.0 * 96 * 1024 * 1024 * 64, .a = heads,
			    .b = keys),
			ROW("bmm bf16 96x1024x64", bmm, 0, 2.0 * 96 * 1024 * 1024 * 64, .a = halves,
			    .b = tensor_transpose(halves, 1, 2)),
			ROW("amax 8192x4096 rows", amax, rows_size, 0, .a = rows, .dim = 1),
			ROW("argmax 8192x4096 rows", argmax, rows_size, 0, .a = rows, .dim = 1),
			ROW("var 8192x4096 rows", var, rows_size, 0, .a = rows, .dim = 1),
			ROW("layer_norm 8192x4096", layer_norm, 2 * rows_size, 0, .a = rows,
			    .b = weight, .c = bias),
			ROW("layer_norm_backward 8192x4096", layer_norm_backward, 3 * rows_size, 0,
			    .a = rows, .b = normal[1], .c = normal[2], .d = grad),
			ROW("cross_entropy 4096x50257", cross_entropy, 2 * 4.0 * 4096 * 50257, 0,
			    .a = logits, .b = targets),
			ROW("embedding 8192 of 50257x768", embedding, 8.0 * 8192 * 768, 0,
			    .a = vocabulary, .b = words),
			ROW("embedding_backward 50257x768", embedding_backward,
			    4.0 * (8192 + 50257) * 768, 0, .a = states, .b = words),
			ROW("adam 2^24", adam, 7 * 4.0 * (1 << 24), 0, .a = quarter,
			    .b = tensor_slice(large, 0, 0, 1 << 24, 1),
			    .c = tensor_slice(other, 0, 0, 1 << 24, 1),
			    .d = tensor_slice(other, 0, 1 << 24, 1 << 25, 1)),
			ROW("to the device 64 MiB", to_device, 4.0 * (1 << 24), 0, .a = host),
			ROW("to the host 64 MiB", to_host, 4.0 * (1 << 24), 0, .a = quarter),
		};

		for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
			printf("%s\t%.4g\t%.4g\t%.4g\n", table[i].name, measure(&table[i]),
			       table[i].bytes, table[i].flops);
			fflush(stdout);
		}
	}
	return 0;
}
