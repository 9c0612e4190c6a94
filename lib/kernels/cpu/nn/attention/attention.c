// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Attention without a matrix of scores in memory: blocks of queries in parallel forward, heads or ranges of the queries of a
 * head backward (T. Dao, FlashAttention-2, arXiv:2307.08691). Ranges and their order in sums depend on the shape alone.
 */
#include "kernels/cpu/nn/attention/attention.h"

#include "iter/parallel.h"

#define WORK  (1 << 18) /* multiplications in a chunk */
#define TASKS 16	/* heads from which one task computes the gradients of one */

struct job {
	struct attention_shape s;
	const struct attention_functions *fn;
	const tensor *operand[ATTENTION_OPERANDS]; /* NULL: not given */
	int64_t heads, ranges, range; /* ranges of queries in a head, and queries in one */
	size_t bytes;		      /* temporary memory of fn */
	bool converted;		      /* gradients have another dtype than their sums */
	struct tensor_storage *parts; /* sums of all ranges, or NULL: one in a head */
	_Atomic bool failed;	      /* out of memory */
};

static const tensor *shape_of(const struct job *j)
{
	return j->operand[QUERY];
}

/* The operands of head number i. */
static void head_at(const struct job *j, int64_t i, struct attention_matrix *m)
{
	const tensor *q = shape_of(j);
	int64_t offset[ATTENTION_OPERANDS] = { 0 };

	for (int d = q->ndim - 3; d >= 0; d--) {
		int64_t at = i % q->sizes[d];

		i /= q->sizes[d];
		for (int o = 0; o < ATTENTION_OPERANDS; o++)
			if (j->operand[o])
				offset[o] += at * j->operand[o]->strides[d];
	}
	for (int o = 0; o < ATTENTION_OPERANDS; o++) {
		const tensor *t = j->operand[o];
		int64_t size = t ? (int64_t)itemsize(t) : 0;

		m[o] = (struct attention_matrix){ 0 };
		if (!t)
			continue;
		m[o].data = (char *)t->data + offset[o] * size;
		m[o].row = t->strides[q->ndim - 2] * size;
		m[o].column = o == SUMS ? 0 : t->strides[q->ndim - 1] * size;
		m[o].dtype = t->dtype;
	}
}

/* Whether all operands that are multiplied are bf16, and the processor multiplies pairs of them faster than f32. */
static bool has_pairs(const struct job *j, const struct attention_inputs *in)
{
	const tensor *grad = j->operand[GRAD], *q = in->query;
	enum cpu_pairs pairs = cpu_pairs();

	return q->dtype == TENSOR_BF16 && in->key->dtype == TENSOR_BF16 &&
	       in->value->dtype == TENSOR_BF16 && (!grad || grad->dtype == TENSOR_BF16) &&
	       (pairs == PAIRS_ALL ||
		(pairs == PAIRS_SMALL && q->sizes[q->ndim - 2] < ATTENTION_FEW_QUERIES));
}

static int begin(struct job *j, const struct attention_inputs *in)
{
	const tensor *q = in->query;
	enum tensor_dtype dtype = dtype_wide(q->dtype);

	if (dtype != TENSOR_F32 && dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("attention", q->dtype, "cpu");
	j->s = (struct attention_shape){ .queries = q->sizes[q->ndim - 2],
					 .keys = in->key->sizes[q->ndim - 2],
					 .features = q->sizes[q->ndim - 1],
					 .values = in->value->sizes[q->ndim - 1],
					 .dtype = q->dtype,
					 .masked = in->mask,
					 .causal = in->causal,
					 .scale = in->scale };
	j->fn = dtype == TENSOR_F64 ? &CPU_NAME(attention_f64) :
		has_pairs(j, in)    ? &CPU_NAME(attention_pairs) :
				      &CPU_NAME(attention_f32);
	j->operand[QUERY] = q;
	j->operand[KEY] = in->key;
	j->operand[VALUE] = in->value;
	j->operand[SCORE_MASK] = in->mask;
	j->heads = 1;
	for (int d = 0; d < q->ndim - 2; d++)
		j->heads *= q->sizes[d];
	return 0;
}

/* Divides the queries of a head into about n ranges of whole blocks. */
static void divide(struct job *j, int64_t n)
{
	int64_t block = j->fn->block(&j->s), blocks = (j->s.queries + block - 1) / block;

	n = n < 1 ? 1 : n > blocks ? blocks : n;
	j->range = blocks ? (blocks + n - 1) / n * block : block;
	j->ranges = (j->s.queries + j->range - 1) / j->range;
}

/* Ranges in a chunk of parallel work. */
static int64_t grain_of(const struct job *j)
{
	int64_t queries = j->range < j->s.queries ? j->range : j->s.queries;
	double work =
		(double)queries * (double)j->s.keys * (double)(j->s.features + j->s.values + 1);

	return work >= WORK ? 1 : (int64_t)(WORK / (work + 1)) + 1;
}

static struct tensor_storage *memory_of(struct job *j, size_t bytes)
{
	struct tensor_storage *memory = storage_alloc(TENSOR_DEVICE_CPU, bytes, false);

	if (!memory)
		j->failed = true;
	return memory;
}

/* The queries of range i of a head; their number. */
static int64_t queries_of(const struct job *j, int64_t i, int64_t *from)
{
	*from = i * j->range;
	return j->s.queries - *from < j->range ? j->s.queries - *from : j->range;
}

static int outcome(const struct job *j)
{
	return j->failed ? tensor_fail(ENOMEM, "attention: no memory for a block") : 0;
}

/* ---- forward ---- */

/* The last ranges come first: with `causal` they have the most keys. */
static void forward_ranges(int64_t begin, int64_t end, void *ctx)
{
	struct job *j = ctx;
	struct tensor_storage *memory = memory_of(j, j->bytes);
	struct attention_matrix head[ATTENTION_OPERANDS];

	for (int64_t i = begin; memory && i < end; i++) {
		int64_t from, n = queries_of(j, j->ranges - 1 - i / j->heads, &from);

		head_at(j, i % j->heads, head);
		j->fn->forward(&j->s, head, from, n, memory->data);
	}
	if (memory)
		storage_put(memory);
}

static int cpu_attention(tensor *output, tensor *logsumexp, const struct attention_inputs *in)
{
	struct job j = { .operand = { [OUTPUT] = output, [SUMS] = logsumexp } };

	if (begin(&j, in) < 0)
		return -thread()->error.code;
	if (!logsumexp->numel)
		return 0;
	divide(&j, INT64_MAX);
	j.bytes = j.fn->forward_bytes(&j.s);
	parallel_for(0, j.heads * j.ranges, grain_of(&j), forward_ranges, &j);
	return outcome(&j);
}

/* ---- backward ---- */

static size_t sum_size(const struct job *j)
{
	return dtype_sizes[dtype_wide(j->s.dtype)];
}

/* Bytes of the gradients of one head's keys and values. */
static size_t gradient_bytes(const struct job *j)
{
	return j->s.keys * (j->s.features + j->s.values) * sum_size(j);
}

static struct attention_gradients gradients_at(const struct job *j, char *memory)
{
	return (struct attention_gradients){ .key = memory,
					     .value = memory +
						      j->s.keys * j->s.features * sum_size(j),
					     .key_row = j->s.features,
					     .value_row = j->s.values };
}

static void store_rows(const struct job *j, const struct attention_matrix *m, const char *from,
		       int64_t columns)
{
	const int64_t size = (int64_t)sum_size(j);

	for (int64_t i = 0; i < j->s.keys; i++)
		CPU_NAME(convert)
	(m->data + i * m->row, m->dtype, m->column, from + i * columns * size,
	 dtype_wide(j->s.dtype), size, columns);
}

static void store_gradients(const struct job *j, const struct attention_matrix *head,
			    const struct attention_gradients *g)
{
	store_rows(j, &head[GRAD_KEY], g->key, j->s.features);
	store_rows(j, &head[GRAD_VALUE], g->value, j->s.values);
}

/*
 * Where a range of a head is summed. Without a conversion the first one is summed in the gradients themselves; the others,
 * to which it is added, in memory of all heads. With a conversion all of several ranges are there, a single one is not.
 */
static struct attention_gradients sums_of(const struct job *j, int64_t h, int64_t range,
					  const struct attention_matrix *head, char *own)
{
	const int64_t size = (int64_t)sum_size(j), stored = j->ranges - !j->converted;

	if (!j->converted && !range)
		return (struct attention_gradients){ .key = head[GRAD_KEY].data,
						     .value = head[GRAD_VALUE].data,
						     .key_row = head[GRAD_KEY].row / size,
						     .value_row = head[GRAD_VALUE].row / size };
	if (!j->parts)
		return gradients_at(j, own);
	range -= !j->converted;
	return gradients_at(j, (char *)j->parts->data + (h * stored + range) * gradient_bytes(j));
}

static void backward_ranges(int64_t begin, int64_t end, void *ctx)
{
	struct job *j = ctx;
	size_t own = j->converted && !j->parts ? gradient_bytes(j) : 0;
	struct tensor_storage *memory = memory_of(j, j->bytes + own);
	struct attention_matrix head[ATTENTION_OPERANDS];

	for (int64_t i = begin; memory && i < end; i++) {
		int64_t from, n = queries_of(j, i % j->ranges, &from);
		struct attention_gradients g;

		head_at(j, i / j->ranges, head);
		g = sums_of(j, i / j->ranges, i % j->ranges, head, (char *)memory->data + j->bytes);
		j->fn->backward(&j->s, head, from, n, memory->data, &g);
		if (own)
			store_gradients(j, head, &g);
	}
	if (memory)
		storage_put(memory);
}

/* to += from, row by row unless the rows of both are adjacent. */
static void add_rows(const struct job *j, char *to, int64_t row, const char *from, int64_t columns)
{
	const int64_t size = (int64_t)sum_size(j);

	if (row == columns) {
		j->fn->add(to, from, j->s.keys * columns);
		return;
	}
	for (int64_t i = 0; i < j->s.keys; i++)
		j->fn->add(to + i * row * size, from + i * columns * size, columns);
}

/* Adds the sums of the ranges of each head in their order. */
static void add_ranges(int64_t begin, int64_t end, void *ctx)
{
	struct job *j = ctx;
	struct attention_matrix head[ATTENTION_OPERANDS];

	for (int64_t i = begin; i < end; i++) {
		struct attention_gradients first;

		head_at(j, i, head);
		first = sums_of(j, i, 0, head, NULL);
		for (int64_t r = 1; r < j->ranges; r++) {
			struct attention_gradients g = sums_of(j, i, r, head, NULL);

			add_rows(j, first.key, first.key_row, g.key, j->s.features);
			add_rows(j, first.value, first.value_row, g.value, j->s.values);
		}
		if (j->converted)
			store_gradients(j, head, &first);
	}
}

static int run_backward(struct job *j)
{
	if (j->ranges > 1) {
		j->parts = memory_of(j, j->heads * (j->ranges - !j->converted) * gradient_bytes(j));
		if (!j->parts)
			return outcome(j);
	}
	parallel_for(0, j->heads * j->ranges, grain_of(j), backward_ranges, j);
	if (j->parts && !j->failed)
		parallel_for(0, j->heads, 1, add_ranges, j);
	if (j->parts)
		storage_put(j->parts);
	return outcome(j);
}

static int cpu_attention_backward(tensor *grad_query, tensor *grad_key, tensor *grad_value,
				  const tensor *grad, const tensor *output, const tensor *logsumexp,
				  const struct attention_inputs *in)
{
	struct job j = { .operand = { [OUTPUT] = output,
				      [SUMS] = logsumexp,
				      [GRAD] = grad,
				      [GRAD_QUERY] = grad_query,
				      [GRAD_KEY] = grad_key,
				      [GRAD_VALUE] = grad_value } };

	if (begin(&j, in) < 0)
		return -thread()->error.code;
	if (!j.heads)
		return 0;
	divide(&j, TASKS / j.heads);
	if (!j.s.queries)
		j.ranges = 1; /* writes zeros */
	j.converted = dtype_wide(j.s.dtype) != j.s.dtype;
	j.bytes = j.fn->backward_bytes(&j.s);
	return run_backward(&j);
}

static bool cpu_attention_takes_bf16(void)
{
	return cpu_pairs() != PAIRS_NONE;
}

CPU_KERNELS(KERNEL(attention), KERNEL(attention_backward), KERNEL(attention_takes_bf16))
