// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Many thousand random descriptions of one piece of memory as a blob, as a structure of DLPack and as
 * a column of Arrow. Each is accepted exactly if its elements are within 64 bits and valid, a
 * tensor has the elements that a plain loop finds, and memory is released once. The seed is fixed.
 */
#include "check.h"

#include <tensor/arrow.h>
#include <tensor/dlpack.h>

enum { BYTES = 4096, ROUNDS = 60000 };

static uint64_t seed = 88172645463325252;
static _Alignas(64) uint8_t memory[BYTES];
static int released;

static uint64_t random_below(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* Mostly small, sometimes at the end of a range. */
static int64_t number(int64_t low, int64_t high)
{
	static const int64_t ends[] = { 0,
					1,
					-1,
					INT64_MIN,
					INT64_MAX,
					INT64_MIN / 2,
					INT64_MAX / 2,
					INT64_MAX / 8,
					1ll << 32,
					1ll << 62,
					-(1ll << 32) };

	if (!random_below(24))
		return ends[random_below(ARRAY_SIZE(ends))];
	return low + (int64_t)random_below((uint64_t)(high - low + 1));
}

static void count_blob(void *data, void *ctx)
{
	released++;
}

static void count_managed(DLManagedTensorVersioned *m)
{
	released++;
}

static void count_schema(struct ArrowSchema *s)
{
	s->release = NULL;
}

static void count_array(struct ArrowArray *a)
{
	released++;
	a->release = NULL;
}

/* ---- descriptions of strided memory ---- */

struct description {
	int ndim;
	bool dense; /* no strides */
	bool bools;
	int64_t sizes[4], strides[4], at; /* at: of the first element, in bytes */
	/* what a tensor on it must be */
	bool valid, inside;
	int64_t numel;
};

/* -1 for a number of elements beyond 64 bits, also of the dimensions in front of one of size 0. */
static __int128 numel_of(const struct description *d)
{
	__int128 n = 1;

	for (int i = 0; i < d->ndim && n; i++) {
		if (d->sizes[i] < 0)
			return -1;
		n *= d->sizes[i];
		if (n > INT64_MAX)
			return -1;
	}
	return n;
}

/* In 128 bits, where these numbers do not overflow. */
static void judge(struct description *d)
{
	const __int128 far = (__int128)1 << 100;
	__int128 low = 0, high = 0, step = 1, size = d->bools ? 1 : 4, n = numel_of(d), first;

	d->valid = n >= 0;
	for (int i = 0; i < d->ndim; i++)
		d->valid &= d->sizes[i] >= 0;
	if (!d->valid)
		return;
	d->numel = (int64_t)n;
	for (int i = d->ndim - 1; i >= 0 && n; i--) {
		__int128 reach;

		if (d->dense)
			d->strides[i] = (int64_t)step;
		step *= d->sizes[i];
		reach = (__int128)d->strides[i] * (d->sizes[i] - 1);
		/* Only that it is beyond 64 bits is of interest. */
		reach = reach > far ? far : reach < -far ? -far : reach;
		*(reach < 0 ? &low : &high) += reach;
	}
	first = (__int128)(uintptr_t)memory + d->at;
	if (!n)
		return;
	d->valid = (high - low + 1) * size <= INT64_MAX && first + low * size >= 0 &&
		   first + (high + 1) * size <= INT64_MAX && d->at % size == 0;
	d->inside = d->at + low * size >= 0 && d->at + (high + 1) * size <= BYTES && n <= BYTES;
}

static struct description describe(void)
{
	struct description d = { .ndim = (int)random_below(5) };

	d.dense = !random_below(4);
	d.bools = !random_below(4);
	d.at = BYTES / 2 + (int64_t)random_below(64) * (random_below(8) ? 4 : 1);
	for (int i = 0; i < d.ndim; i++) {
		d.sizes[i] = number(random_below(8) ? 1 : 0, 5);
		d.strides[i] = number(-8, 8);
	}
	judge(&d);
	return d;
}

static double element(const struct description *d, const int64_t *at)
{
	int64_t offset = 0;
	float value;

	for (int i = 0; i < d->ndim; i++)
		offset += at[i] * (d->sizes[i] > 1 ? d->strides[i] : 0);
	if (d->bools)
		return memory[d->at + offset];
	memcpy(&value, memory + d->at + offset * 4, sizeof(value));
	return value;
}

static void compare(tensor *t, const struct description *d)
{
	int64_t at[4] = { 0 };
	double *got = values_of(t);

	assert_int_equal(tensor_numel(t), d->numel);
	for (int64_t n = 0; n < d->numel; n++) {
		assert_true(got[n] == element(d, at));
		for (int i = d->ndim - 1; i >= 0 && ++at[i] == d->sizes[i]; i--)
			at[i] = 0;
	}
	free(got);
}

static tensor *import_blob(const struct description *d)
{
	tensor_ints strides = { d->strides, d->dense ? -1 : d->ndim };

	return tensor_from_blob(memory + d->at, (tensor_ints){ d->sizes, d->ndim }, strides,
				OF(d->bools ? TENSOR_BOOL : TENSOR_F32), count_blob, NULL);
}

static tensor *import_dlpack(const struct description *d)
{
	static DLManagedTensorVersioned m;
	static struct description kept;
	int64_t before = (int64_t)random_below(BYTES / 2);

	kept = *d;
	m = (DLManagedTensorVersioned){ .version = { 1, 3 }, .deleter = count_managed };
	m.dl_tensor = (DLTensor){
		.data = memory + d->at - before,
		.device = { kDLCPU, 0 },
		.ndim = d->ndim,
		.dtype = { d->bools ? kDLBool : kDLFloat, d->bools ? 8 : 32, 1 },
		.shape = kept.sizes,
		.strides = d->dense ? NULL : kept.strides,
		.byte_offset = (uint64_t)before,
	};
	return tensor_from_dlpack(&m);
}

/* Descriptions that lead outside of the memory are used only where the import reads no element. */
static void strided_memory_is_described_truly_or_refused(void **state)
{
	tensor *(*import)(const struct description *) = *state;
	int used = 0, refused = 0;

	for (int i = 0; i < BYTES; i++)
		memory[i] = (uint8_t)random_below(2);
	for (int round = 0; round < ROUNDS; round++) {
		struct description d = describe();
		bool taken;

		if (d.bools && d.valid && d.numel && !d.inside)
			continue;
		released = 0;
		tensor_scope {
			tensor *t = import(&d);

			taken = t;
			if (taken != d.valid)
				print_message("%s\n", tensor_last_error()->text);
			assert_int_equal(taken, d.valid);
			assert_int_equal(released, 0);
			if (t && d.inside)
				compare(t, &d);
			used += t && d.inside;
		}
		assert_int_equal(released, taken);
		refused += !taken;
	}
	assert_in_range(used, ROUNDS / 4, ROUNDS);
	assert_in_range(refused, ROUNDS / 20, ROUNDS);
}

/* ---- columns ---- */

struct column {
	struct ArrowSchema schema;
	struct ArrowArray array;
	const void *buffers[2];
	bool valid;
};

/* In a column whose elements are in the memory. */
static int64_t nulls_of(const struct column *c)
{
	int64_t nulls = 0;

	for (int64_t i = c->array.offset; i < c->array.offset + c->array.length; i++)
		nulls += !(memory[i / 8] >> (i % 8) & 1);
	return c->buffers[0] ? nulls : 0;
}

/* The format is f or b; each member is valid with a high probability. */
static void column_init(struct column *c)
{
	static const char *const formats[] = { "f", "b", "f", "b", "f", "u", "", "+s" };
	bool nulls = !random_below(8);
	__int128 end;

	*c = (struct column){ .buffers = { nulls ? memory : NULL, memory } };
	c->schema.format = formats[random_below(random_below(8) ? 2 : 8)];
	c->schema.release = random_below(50) ? count_schema : NULL;
	c->schema.n_children = random_below(50) ? 0 : number(0, 1);
	c->array.length = number(0, 200);
	c->array.offset = number(0, 200);
	c->array.null_count = random_below(8) ? 0 : number(-1, 1);
	c->array.n_buffers = random_below(50) ? 2 : number(0, 3);
	c->array.buffers = random_below(50) ? c->buffers : NULL;
	c->array.n_children = random_below(50) ? 0 : number(0, 1);
	c->array.dictionary = random_below(50) ? NULL : &c->array;
	c->array.release = random_below(50) ? count_array : NULL;
	end = (__int128)c->array.length + c->array.offset;
	c->valid = (!strcmp(c->schema.format, "f") || !strcmp(c->schema.format, "b")) &&
		   c->schema.release && !c->schema.n_children && c->array.length >= 0 &&
		   c->array.offset >= 0 && c->array.n_buffers == 2 && c->array.buffers &&
		   !c->array.n_children && !c->array.dictionary && c->array.release &&
		   end * 4 <= BYTES &&
		   (!c->array.null_count || (c->array.null_count == -1 && !nulls_of(c)));
}

/* Whether the library may read elements that are not there: the producer would have to be wrong. */
static bool reads_outside(const struct column *c)
{
	return (__int128)c->array.length + c->array.offset > BYTES / 4 && c->array.length > 0 &&
	       (c->schema.format[0] == 'b' || c->array.null_count == -1);
}

static void columns_are_described_truly_or_refused(void **state)
{
	int used = 0, refused = 0;

	for (int i = 0; i < BYTES; i++)
		memory[i] = (uint8_t)random_below(120);
	for (int round = 0; round < ROUNDS; round++) {
		struct column c;
		struct ArrowArray was;
		bool taken = false;

		column_init(&c);
		if (reads_outside(&c))
			continue;
		was = c.array;
		released = 0;
		tensor_scope {
			tensor *t = tensor_from_arrow(&c.schema, &c.array);

			taken = t;
			if (c.valid)
				ok(t);
			else if (t) /* far away, or without elements */
				assert_true(c.schema.format[0] == 'f' || !was.length);
			if (t) {
				assert_null(c.array.release);
				assert_null(c.schema.release);
				assert_int_equal(tensor_numel(t), was.length);
			} else
				assert_memory_equal(&was, &c.array, sizeof(was));
			for (int64_t i = 0; c.valid && i < was.length; i++) {
				int64_t at = was.offset + i;
				double value, want = memory[at / 8] >> (at % 8) & 1;

				if (c.schema.format[0] == 'f')
					want = ((float *)memory)[at];
				assert_done(tensor_at(t, TENSOR_INTS(i), &value));
				assert_true(value == want);
			}
		}
		assert_int_equal(released, taken);
		used += c.valid;
		refused += !taken;
	}
	assert_in_range(used, ROUNDS / 4, ROUNDS);
	assert_in_range(refused, ROUNDS / 20, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "blobs_are_described_truly_or_refused",
		  strided_memory_is_described_truly_or_refused, NULL, NULL, (void *)import_blob },
		{ "dlpack_is_described_truly_or_refused",
		  strided_memory_is_described_truly_or_refused, NULL, NULL, (void *)import_dlpack },
		cmocka_unit_test(columns_are_described_truly_or_refused),
	};

	return cmocka_run_group_tests_name("interchange_mutations", tests, NULL, NULL);
}
