// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The arguments of tensor_function_call(): tensors among them, and a copy of the others. */
#include "autograd/function/function.h"

#include <stdlib.h>

/* Stores the elements of a list, their number and size; false if v is none. */
static bool list_of(const tensor_value *v, const void **data, int64_t *len, size_t *size)
{
	*data = NULL;
	*len = 0;
	*size = 1;
	switch (v->kind) {
	case TENSOR_VALUE_INTS:
		*data = v->ints.data;
		*len = v->ints.len;
		*size = sizeof(*v->ints.data);
		return true;
	case TENSOR_VALUE_FLOATS:
		*data = v->floats.data;
		*len = v->floats.len;
		*size = sizeof(*v->floats.data);
		return true;
	case TENSOR_VALUE_SCALARS:
		*data = v->scalars.data;
		*len = v->scalars.len;
		*size = sizeof(*v->scalars.data);
		return true;
	case TENSOR_VALUE_STRING:
		*data = v->s;
		*len = v->s ? (int64_t)strlen(v->s) + 1 : 0;
		return true;
	default:
		return false;
	}
}

static int check(const char *name, const tensor_value *v, int i)
{
	const void *data;
	int64_t len;
	size_t size;

	if (v->kind > TENSOR_VALUE_SCALARS)
		return tensor_fail(EINVAL, "%s: argument %d has the unknown kind %u", name, i,
				   v->kind);
	if (v->kind == TENSOR_VALUE_TENSOR_LIST) {
		data = v->list.data;
		len = v->list.len;
	} else if (!list_of(v, &data, &len, &size)) {
		return 0;
	}
	if (len < 0 || len > INT32_MAX || (len && !data))
		return tensor_fail(EINVAL, "%s: argument %d is a list of %lld elements%s", name, i,
				   (long long)len, data ? "" : " at NULL");
	return 0;
}

int64_t function_args_tensors(const char *name, const tensor_value *args, int n, tensor **to)
{
	int64_t count = 0;

	for (int i = 0; i < n; i++) {
		const tensor_value *v = &args[i];
		bool list = v->kind == TENSOR_VALUE_TENSOR_LIST;
		int err = to ? 0 : check(name, v, i);

		if (err)
			return err;
		if (!list && v->kind != TENSOR_VALUE_TENSOR)
			continue;
		for (int64_t k = 0; k < (list ? v->list.len : 1); k++, count++)
			if (to)
				to[count] = list ? v->list.data[k] : v->t;
	}
	return count;
}

/* Sizes are rounded up, so that each list is aligned. */
static size_t size_of(const tensor_value *v)
{
	const void *data;
	int64_t len;
	size_t size;

	if (!list_of(v, &data, &len, &size))
		return 0;
	return ((size_t)len * size + 15) & ~(size_t)15;
}

/* Copies v to *to, with its list at p. */
static void copy_value(tensor_value *to, const tensor_value *v, char *p)
{
	const void *data;
	int64_t len;
	size_t size;

	*to = *v;
	if (v->kind == TENSOR_VALUE_TENSOR)
		to->t = NULL;
	else if (v->kind == TENSOR_VALUE_TENSOR_LIST)
		to->list.data = NULL;
	if (!list_of(v, &data, &len, &size) || !data)
		return;
	memcpy(p, data, (size_t)len * size);
	if (v->kind == TENSOR_VALUE_INTS)
		to->ints.data = (const int64_t *)p;
	else if (v->kind == TENSOR_VALUE_FLOATS)
		to->floats.data = (const double *)p;
	else if (v->kind == TENSOR_VALUE_SCALARS)
		to->scalars.data = (const tensor_scalar *)p;
	else
		to->s = p;
}

struct function_args *function_args_copy(const char *name, const tensor_value *args, int n)
{
	size_t head = (sizeof(struct function_args) + n * sizeof(*args) + 15) & ~(size_t)15;
	size_t size = head;
	struct function_args *copy;

	for (int i = 0; i < n; i++)
		size += size_of(&args[i]);
	copy = malloc(size);
	if (!copy) {
		tensor_fail(ENOMEM, "%s: no memory for its arguments", name);
		return NULL;
	}
	copy->n = n;
	size = head;
	for (int i = 0; i < n; i++) {
		copy_value(&copy->value[i], &args[i], (char *)copy + size);
		size += size_of(&args[i]);
	}
	return copy;
}
