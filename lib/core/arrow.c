// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The Arrow C data interface. An exported array owns a tensor on the same storage. An imported array is
 * moved into memory of the library and owns a new storage.
 */
#include "core/external.h"

#include <stdlib.h>
#include <tensor/arrow.h>

/* 0: Arrow has no such type. */
static const char formats[][2] = {
	[TENSOR_BOOL] = "b",   [TENSOR_U8] = "C",  [TENSOR_I8] = "c",  [TENSOR_I16] = "s",
	[TENSOR_I32] = "i",    [TENSOR_I64] = "l", [TENSOR_F16] = "e", [TENSOR_F32] = "f",
	[TENSOR_F64] = "g",    [TENSOR_U16] = "S", [TENSOR_U32] = "I", [TENSOR_U64] = "L",
	[TENSOR_F8_E5M2] = "",
};
_Static_assert(ARRAY_SIZE(formats) == TENSOR_DTYPE_COUNT, "a dtype without a decision");

/* ---- export ---- */

struct exported {
	const void *buffers[2]; /* validity, elements */
	tensor *t;		/* owned */
};

static void exported_release(struct ArrowArray *a)
{
	struct exported *e = a->private_data;

	tensor_put(e->t);
	free(e);
	a->release = NULL;
}

/* Its texts are constants. */
static void schema_release(struct ArrowSchema *s)
{
	s->release = NULL;
}

static int check_export(const tensor *t, const struct ArrowSchema *schema,
			const struct ArrowArray *array)
{
	int err = external_check_export("to_arrow", t, false);

	if (err < 0)
		return err;
	if (!schema || !array)
		return tensor_fail(EINVAL, "to_arrow: %s is NULL", schema ? "array" : "schema");
	if (!formats[t->dtype][0])
		return tensor_fail(EOPNOTSUPP, "to_arrow: Arrow has no type for %s",
				   tensor_dtype_name(t->dtype));
	if (t->ndim != 1)
		return tensor_fail(EINVAL, "to_arrow: a column has one dimension, got %s",
				   SHAPE_STR(t));
	if (!t->contiguous)
		return tensor_fail(EINVAL,
				   "to_arrow: a column has stride 1, got %lld: make the tensor "
				   "contiguous first",
				   (long long)t->strides[0]);
	return 0;
}

/* A u8 tensor with the elements of a bool tensor as bits, the first one in the lowest bit. */
static tensor *bits_of(const tensor *t)
{
	int64_t nbytes = t->numel / 8 + (t->numel % 8 != 0);
	tensor *packed = tensor_new(TENSOR_DEVICE_CPU, TENSOR_U8, &nbytes, 1);
	const uint8_t *elements = t->data;
	uint8_t *bits;

	if (!packed)
		return NULL;
	bits = packed->data;
	for (int64_t i = 0; i < t->numel; i += 8) {
		uint8_t byte = 0;

		for (int k = 0; k < 8 && i + k < t->numel; k++)
			byte |= (uint8_t)((elements[i + k] != 0) << k);
		bits[i / 8] = byte;
	}
	return packed;
}

TENSOR_EXPORT int tensor_to_arrow(tensor *t, struct ArrowSchema *schema, struct ArrowArray *array)
{
	int err = check_export(t, schema, array);
	struct exported *e;

	if (err < 0)
		return err;
	e = malloc(sizeof(*e));
	if (!e)
		return tensor_fail(ENOMEM, "to_arrow: no memory");
	e->t = t->dtype == TENSOR_BOOL ? bits_of(t) : tensor_new_detached(t);
	if (!e->t) {
		free(e);
		return -thread()->error.code;
	}
	e->buffers[0] = NULL;
	e->buffers[1] = e->t->data;
	*schema = (struct ArrowSchema){
		.format = formats[t->dtype],
		.name = "",
		.release = schema_release,
	};
	*array = (struct ArrowArray){
		.length = t->numel,
		.n_buffers = 2,
		.buffers = e->buffers,
		.release = exported_release,
		.private_data = e,
	};
	return 0;
}

/* ---- import ---- */

static void array_free(struct tensor_storage *s)
{
	struct ArrowArray *a = s->owner;

	a->release(a);
	free(a);
}

/* The library that made it may write to it. */
static const struct storage_ops array_ops = { .free = array_free, .shared = true };

/* The dtype, or -EOPNOTSUPP. */
static int find_dtype(const char *format)
{
	for (int d = TENSOR_BOOL; d < TENSOR_DTYPE_COUNT; d++)
		if (format[0] && !format[1] && format[0] == formats[d][0])
			return d;
	return tensor_fail(EOPNOTSUPP, "from_arrow: format %s, only primitive types are supported",
			   QUOTED(format));
}

/* The dtype, or -errno. */
static int check_schema(const struct ArrowSchema *s)
{
	if (!s || !s->release)
		return tensor_fail(EINVAL, "from_arrow: the schema is %s",
				   s ? "already released" : "NULL");
	if (!s->format)
		return tensor_fail(EINVAL, "from_arrow: the format is NULL");
	if (s->dictionary)
		return tensor_fail(EOPNOTSUPP, "from_arrow: a dictionary is not supported");
	if (s->n_children)
		return tensor_fail(EOPNOTSUPP, "from_arrow: format %s with %lld children",
				   QUOTED(s->format), (long long)s->n_children);
	return find_dtype(s->format);
}

static int check_array(const struct ArrowArray *a)
{
	int64_t end;

	if (a->length < 0 || a->offset < 0 || a->null_count < -1)
		return tensor_fail(EINVAL, "from_arrow: length %lld, offset %lld, %lld nulls",
				   (long long)a->length, (long long)a->offset,
				   (long long)a->null_count);
	if (__builtin_add_overflow(a->length, a->offset, &end))
		return tensor_fail(EOVERFLOW, "from_arrow: length %lld behind offset %lld",
				   (long long)a->length, (long long)a->offset);
	if (a->n_buffers != 2 || !a->buffers)
		return tensor_fail(EINVAL, "from_arrow: a primitive type has 2 buffers, got %lld%s",
				   (long long)a->n_buffers, a->buffers ? "" : " at NULL");
	if (a->n_children)
		return tensor_fail(EINVAL, "from_arrow: %lld children of a primitive type",
				   (long long)a->n_children);
	if (a->dictionary)
		return tensor_fail(EOPNOTSUPP, "from_arrow: a dictionary is not supported");
	return 0;
}

static bool bit_at(const uint8_t *bits, int64_t i)
{
	return bits[i / 8] >> (i % 8) & 1;
}

static int check_nulls(const struct ArrowArray *a, const uint8_t *valid)
{
	int64_t nulls = a->null_count;

	if (nulls < 0) {
		nulls = 0;
		for (int64_t i = 0; valid && i < a->length; i++)
			nulls += !bit_at(valid, a->offset + i);
	}
	if (nulls)
		return tensor_fail(EOPNOTSUPP, "from_arrow: %lld of %lld elements are null",
				   (long long)nulls, (long long)a->length);
	return 0;
}

/* Releases the array, if it succeeds. */
static tensor *import_bits(struct ArrowArray *a, const uint8_t *bits)
{
	uintptr_t end;
	bool *elements;
	tensor *t;

	if (a->length && !bits)
		return tensor_fail_null(EINVAL, "from_arrow: %lld elements without data",
					(long long)a->length);
	if (__builtin_add_overflow((uintptr_t)bits, (uintptr_t)(a->offset + a->length) / 8, &end) ||
	    end > INTPTR_MAX)
		return tensor_fail_null(EOVERFLOW,
					"from_arrow: the data is beyond the end of memory");
	t = tensor_new(TENSOR_DEVICE_CPU, TENSOR_BOOL, &a->length, 1);
	if (!t)
		return NULL;
	elements = t->data;
	for (int64_t i = 0; i < a->length; i++)
		elements[i] = bit_at(bits, a->offset + i);
	t = scope_own(thread(), t);
	if (t)
		a->release(a);
	return t;
}

static tensor *import_elements(enum tensor_dtype dtype, const struct ArrowArray *a,
			       const void *elements)
{
	struct external x = { .op = "from_arrow", .dtype = dtype, .readonly = true };
	struct ArrowArray *moved;
	uint64_t offset;
	tensor *t;

	if (__builtin_mul_overflow((uint64_t)a->offset, (uint64_t)dtype_sizes[dtype], &offset))
		return tensor_fail_null(EOVERFLOW, "from_arrow: offset %lld is beyond 64 bits",
					(long long)a->offset);
	if (external_set_geometry(&x, 1, &a->length, NULL) < 0 ||
	    external_set_data(&x, elements, offset) < 0)
		return NULL;
	moved = malloc(sizeof(*moved));
	if (!moved)
		return tensor_fail_null(ENOMEM, "from_arrow: no memory");
	*moved = *a;
	t = external_tensor(&x, &array_ops, moved);
	if (!t)
		free(moved);
	return t;
}

TENSOR_EXPORT tensor *tensor_from_arrow(struct ArrowSchema *schema, struct ArrowArray *array)
{
	int dtype = check_schema(schema);
	const void *buffers[2];
	struct ArrowArray a;
	tensor *t;

	if (dtype < 0)
		return NULL;
	if (!array || !array->release)
		return tensor_fail_null(EINVAL, "from_arrow: the array is %s",
					array ? "already released" : "NULL");
	a = *array; /* read once */
	if (check_array(&a) < 0)
		return NULL;
	memcpy(buffers, a.buffers, sizeof(buffers));
	if (check_nulls(&a, buffers[0]) < 0)
		return NULL;
	t = dtype == TENSOR_BOOL ? import_bits(&a, buffers[1]) :
				   import_elements(dtype, &a, buffers[1]);
	if (t) {
		array->release = NULL;
		schema->release(schema);
	}
	return t;
}
