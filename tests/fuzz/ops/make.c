// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Random tensors: any dtype, shape and order of dimensions, with gaps, overlaps and negative
 * strides.
 */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#define ELEMENTS_MAX 1500

enum tensor_dtype any_dtype(void)
{
	static const uint8_t usual[] = { TENSOR_F32, TENSOR_F64, TENSOR_I64, TENSOR_BOOL };

	/* test_unsigned and test_dtypes cover u64 and the 8-bit floats. */
	return one_in(3) ? usual[below(4)] : 1 + (int)below(TENSOR_U32);
}

static double any_float(void)
{
	static const double odd[] = {
		INFINITY, -INFINITY, NAN, -0.0, 0.0, 1e30, -1e-30, 65504, 3e4
	};

	if (one_in(40))
		return odd[below(9)];
	return (double)(below(65) - 32) / 4;
}

static int64_t any_integer(void)
{
	static const int64_t odd[] = { INT64_MAX, INT64_MIN, INT32_MIN, 255,
				       128,	  -128,	     65535,	1 << 24 };

	return one_in(60) ? odd[below(8)] : below(13) - 6;
}

static void random_element(void *p, enum tensor_dtype d)
{
	int64_t i = any_integer();
	double v = any_float();
	_Float16 h = (_Float16)v;
	float f = (float)v;

	switch (d) {
	case TENSOR_BOOL:
		*(uint8_t *)p = i > 0;
		break;
	case TENSOR_F16:
		memcpy(p, &h, 2);
		break;
	case TENSOR_BF16:
		memcpy(p, (char *)&f + 2, 2);
		break;
	case TENSOR_F32:
		*(float *)p = f;
		break;
	case TENSOR_F64:
		*(double *)p = v;
		break;
	case TENSOR_C64:
		((float *)p)[0] = (float)(below(33) - 16) / 4;
		((float *)p)[1] = (float)(below(33) - 16) / 4;
		break;
	case TENSOR_C128:
		((double *)p)[0] = (double)(below(33) - 16) / 4;
		((double *)p)[1] = (double)(below(33) - 16) / 4;
		break;
	default:
		memcpy(p, &i, tensor_itemsize(d));
	}
}

static int any_shape(int64_t *sizes)
{
	int ndim = one_in(60) ? (int)below(TENSOR_MAX_DIMS + 1) : (int)below(5);
	int64_t n = 1;

	for (int d = 0; d < ndim; d++) {
		sizes[d] = one_in(30) ? 0 :
			   one_in(40) ? 1 + below(300) :
					1 + below(ndim > 4 ? 2 : 6);
		if (n * sizes[d] > ELEMENTS_MAX)
			sizes[d] = 1;
		n *= sizes[d] ? sizes[d] : 1;
	}
	return ndim;
}

static void any_order(int *order, int n)
{
	for (int d = 0; d < n; d++)
		order[d] = n - 1 - d;
	for (int d = n - 1; d > 0 && one_in(2); d--) {
		int k = (int)below(d + 1), t = order[d];

		order[d] = order[k];
		order[k] = t;
	}
}

tensor *tensor_like(enum tensor_dtype dtype, int ndim, const int64_t *sizes)
{
	int64_t own[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], run = 1,
								offset = one_in(4) ? below(5) : 0;
	int order[TENSOR_MAX_DIMS];
	bool simple = one_in(2);
	tensor *flat;
	char *p;

	if (ndim < 0) {
		ndim = any_shape(own);
		sizes = own;
	}
	dtype = dtype ? dtype : any_dtype();
	any_order(order, simple ? 0 : ndim);
	for (int k = 0; k < ndim; k++) {
		int d = simple ? ndim - 1 - k : order[k];
		int64_t step = !simple && one_in(6) ? 1 + below(3) : 1;

		strides[d] = run * step;
		if (!simple && one_in(12))
			strides[d] = 0;
		else
			run *= (sizes[d] ? sizes[d] : 1) * step;
		if (!simple && one_in(10) && sizes[d]) {
			offset += (sizes[d] - 1) * strides[d];
			strides[d] = -strides[d];
		}
	}
	flat = tensor_empty(TENSOR_SHAPE(run + offset + 1), TENSOR_OPTIONS(.dtype = dtype));
	if (!flat)
		return NULL;
	p = tensor_mutable_data(flat);
	for (int64_t i = 0; i < tensor_numel(flat); i++)
		random_element(p + i * (int64_t)tensor_itemsize(dtype), dtype);
	return tensor_as_strided(flat, (tensor_ints){ sizes, ndim }, (tensor_ints){ strides, ndim },
				 offset);
}

tensor *any_tensor(enum tensor_dtype dtype)
{
	return tensor_like(dtype, -1, NULL);
}

int broadcasting(const int64_t *sizes, int ndim, int64_t *to)
{
	int n = one_in(3) ? (int)below(ndim + 1) : ndim;

	for (int d = 0; d < n; d++) {
		to[d] = sizes[ndim - n + d];
		if (one_in(6))
			to[d] = 1;
		else if (one_in(200))
			to[d]++;
	}
	return n;
}
