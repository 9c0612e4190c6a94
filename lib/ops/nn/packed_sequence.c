// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sequences of different lengths: padded in a batch, or packed step by step (step 0 of all
 * sequences, then step 1, ...). Both conversions index the rows of the padded batch. */
#include "ops/nn/rnn.h"

#include "family/factory.h"
#include "family/index.h"
#include "family/rnn.h"
#include "family/scatter.h"
#include "family/shape.h"
#include "family/view.h"

/* Private copy of an i64 vector on the CPU, in the open scope: another process could change the
 * original during the call. */
static const int64_t *copy_vector(const char *op, const char *what, tensor *t)
{
	tensor *copy;

	if (t->ndim != 1 || !t->numel || t->dtype != TENSOR_I64 || t->device.type != TENSOR_CPU) {
		tensor_fail(
			EINVAL,
			"%s: %s must be a vector of i64 on the cpu, not empty, got %s of shape %s",
			op, what, tensor_dtype_name(t->dtype), SHAPE_STR(t));
		return NULL;
	}
	copy = tensor_empty(TENSOR_INTS(t->numel), TENSOR_OPTIONS(.dtype = TENSOR_I64));
	if (!copy || operand_copy(copy, t) < 0)
		return NULL;
	return copy->data;
}

/* Positions of the packed rows in a padded batch [steps, batch]; the rows of a step are adjacent.
 */
static tensor *positions(const int64_t *rows, int64_t steps, int64_t batch)
{
	int64_t n = 0, k = 0, *to;
	tensor *t;

	for (int64_t i = 0; i < steps; i++)
		n += rows[i];
	t = tensor_empty(TENSOR_INTS(n), TENSOR_OPTIONS(.dtype = TENSOR_I64));
	to = t ? t->data : NULL;
	for (int64_t i = 0; t && i < steps; i++)
		for (int64_t j = 0; j < rows[i]; j++)
			to[k++] = i * batch + j;
	return t;
}

/* Number of sequences longer than each step, as a tensor. The n lengths are in decreasing order. */
static tensor *rows_of_lengths(const int64_t *lengths, int64_t n)
{
	tensor *t = tensor_empty(TENSOR_INTS(lengths[0]), TENSOR_OPTIONS(.dtype = TENSOR_I64));
	int64_t *rows = t ? t->data : NULL;

	for (int64_t i = 0, j = n; t && i < lengths[0]; i++) {
		while (lengths[j - 1] <= i)
			j--;
		rows[i] = j;
	}
	return t;
}

static int check_lengths(const int64_t *lengths, int64_t n, int64_t steps)
{
	for (int64_t i = 0; i < n; i++)
		if (lengths[i] < 1 || lengths[i] > (i ? lengths[i - 1] : steps))
			return tensor_fail(EINVAL,
					   "_pack_padded_sequence: lengths must be positive, "
					   "decrease and be at "
					   "most %lld, got %lld in position %lld",
					   (long long)steps, (long long)lengths[i], (long long)i);
	return 0;
}

static int pack(tensor *input, tensor *lengths, bool batch_first, tensor **data,
		tensor **batch_sizes)
{
	const int64_t *list = copy_vector("_pack_padded_sequence", "lengths", lengths);
	tensor *at;

	if (!list)
		return error_code();
	if (input->ndim < 2 || input->sizes[!batch_first] != lengths->numel)
		return tensor_fail(EINVAL,
				   "_pack_padded_sequence: a length for each sequence and 2 "
				   "dimensions are needed, "
				   "got shape %s and %lld lengths",
				   SHAPE_STR(input), (long long)lengths->numel);
	if (check_lengths(list, lengths->numel, input->sizes[!!batch_first]) < 0)
		return error_code();
	input = batch_first ? tensor_transpose(input, 0, 1) : input;
	*batch_sizes = rows_of_lengths(list, lengths->numel);
	at = *batch_sizes ? positions((*batch_sizes)->data, list[0], lengths->numel) : NULL;
	*data = at ? tensor_index_select(tensor_flatten(input, 0, 1), 0, at) : NULL;
	return *data ? 0 : error_code();
}

int composite_pack_padded_sequence(tensor *input, tensor *lengths, bool batch_first, tensor **data,
				   tensor **batch_sizes)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *rows = NULL, *sizes = NULL;
	int err = pack(input, lengths, batch_first, &rows, &sizes);

	return results_leave(&guard, (struct op_result[]){ { data, rows }, { batch_sizes, sizes } },
			     2, err);
}

/* ---- unpacking ---- */

int rnn_check_rows(const char *op, const tensor *data, const int64_t *rows, int64_t steps,
		   int64_t least)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < steps; i++) {
		if (rows[i] < least || (i && rows[i] > rows[i - 1]) ||
		    rows[i] > data->sizes[0] - sum)
			return tensor_fail(
				EINVAL,
				"%s: batch_sizes must be at least %lld, not grow and add up to "
				"%lld, got %lld in step %lld",
				op, (long long)least, (long long)data->sizes[0], (long long)rows[i],
				(long long)i);
		sum += rows[i];
	}
	if (sum == data->sizes[0])
		return 0;
	return tensor_fail(EINVAL, "%s: batch_sizes add up to %lld, data has %lld rows", op,
			   (long long)sum, (long long)data->sizes[0]);
}

static int check_packed(const tensor *data, const int64_t *rows, int64_t steps,
			int64_t total_length)
{
	if (rnn_check_rows("_pad_packed_sequence", data, rows, steps, 0) < 0)
		return error_code();
	if (total_length > 0 && total_length < steps)
		return tensor_fail(
			EINVAL,
			"_pad_packed_sequence: total_length is %lld, the longest sequence has %lld",
			(long long)total_length, (long long)steps);
	return 0;
}

static tensor *lengths_of_rows(const int64_t *rows, int64_t steps)
{
	tensor *t = tensor_empty(TENSOR_INTS(rows[0]), TENSOR_OPTIONS(.dtype = TENSOR_I64));
	int64_t *lengths = t ? t->data : NULL;

	for (int64_t i = 0; t && i < steps; i++)
		for (int64_t j = i + 1 < steps ? rows[i + 1] : 0; j < rows[i]; j++)
			lengths[j] = i + 1;
	return t;
}

/* Scatter data's rows to positions `at` of [length * batch, ...]; the rest is padding. */
static tensor *spread(tensor *data, tensor *at, tensor_scalar padding, int64_t length,
		      int64_t batch)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor *t;

	if (__builtin_mul_overflow(length, batch, &sizes[0]))
		return tensor_fail_null(EOVERFLOW,
					"_pad_packed_sequence: total_length is too large");
	memcpy(sizes + 1, data->sizes + 1, (data->ndim - 1) * sizeof(*sizes));
	t = tensor_full((tensor_ints){ sizes, data->ndim }, padding,
			TENSOR_OPTIONS(.dtype = data->dtype, .device = data->device));
	t = tensor_index_copy(t, 0, at, data);
	if (!t || data->ndim == TENSOR_MAX_DIMS)
		return t ? tensor_fail_null(EINVAL,
					    "_pad_packed_sequence: data has too many dimensions") :
			   NULL;
	memmove(sizes + 2, sizes + 1, (data->ndim - 1) * sizeof(*sizes));
	sizes[0] = length;
	sizes[1] = batch;
	return tensor_view(t, (tensor_ints){ sizes, data->ndim + 1 });
}

static int pad(tensor *data, tensor *batch_sizes, bool batch_first, tensor_scalar padding,
	       int64_t total_length, tensor **output, tensor **lengths)
{
	const int64_t *rows = copy_vector("_pad_packed_sequence", "batch_sizes", batch_sizes);
	int64_t steps = batch_sizes->numel;
	tensor *at;

	if (!rows)
		return error_code();
	if (!data->ndim)
		return tensor_fail(EINVAL, "_pad_packed_sequence: data has no dimensions");
	if (check_packed(data, rows, steps, total_length) < 0)
		return error_code();
	*lengths = lengths_of_rows(rows, steps);
	at = positions(rows, steps, rows[0]);
	*output = at ? spread(data, at, padding, total_length > 0 ? total_length : steps, rows[0]) :
		       NULL;
	if (batch_first)
		*output = tensor_transpose(*output, 0, 1);
	return *output && *lengths ? 0 : error_code();
}

int composite_pad_packed_sequence(tensor *data, tensor *batch_sizes, bool batch_first,
				  tensor_scalar padding_value, int64_t total_length,
				  tensor **output, tensor **lengths)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *padded = NULL, *n = NULL;
	int err = pad(data, batch_sizes, batch_first, padding_value, total_length, &padded, &n);

	return results_leave(&guard, (struct op_result[]){ { output, padded }, { lengths, n } }, 2,
			     err);
}
