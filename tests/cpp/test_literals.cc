// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The macros of the C interface in C++: a list lives until the call that it is an argument of has returned. */
#include <tensor/tensor.h>

#include "check.hpp"

#include <cerrno>

static int64_t __attribute__((noinline)) dirty_stack()
{
	volatile int64_t words[256];

	for (int i = 0; i < 256; i++)
		words[i] = -1;
	return words[17];
}

static bool has_shape(const tensor *t, int64_t rows, int64_t columns)
{
	return t && tensor_dim(t) == 2 && tensor_size(t, 0) == rows && tensor_size(t, 1) == columns;
}

TEST(shape_of_constants_reaches_the_call)
{
	tensor_scope {
		dirty_stack();
		CHECK(has_shape(tensor_zeros(TENSOR_SHAPE(2, 3), TENSOR_OPTIONS(0)), 2, 3));
	}
}

TEST(shape_of_variables_reaches_the_call)
{
	size_t rows = 4;
	int columns = 5;

	tensor_scope {
		dirty_stack();
		CHECK(has_shape(tensor_zeros(TENSOR_SHAPE(rows, columns), TENSOR_OPTIONS(0)), 4,
				5));
	}
}

TEST(stored_shape_stays)
{
	auto size = TENSOR_SHAPE(2, 3);

	dirty_stack();
	tensor_scope {
		CHECK(has_shape(tensor_zeros(size, TENSOR_OPTIONS(0)), 2, 3));
		CHECK(tensor_dim(tensor_zeros(TENSOR_SHAPE(), TENSOR_OPTIONS(0))) == 0);
	}
}

TEST(options_have_the_fields_given)
{
	tensor_scope {
		tensor *t = tensor_zeros(TENSOR_SHAPE(1),
					 TENSOR_OPTIONS(.dtype = TENSOR_F64, .shareable = true));

		CHECK(t && tensor_dtype(t) == TENSOR_F64);
		CHECK(tensor_set_label(t, "options") == 0);
	}
}

TEST(scalars_have_the_kind_of_their_type)
{
	CHECK(TENSOR_SCALAR(true).kind == TENSOR_SCALAR_BOOL);
	CHECK(TENSOR_SCALAR(3u).kind == TENSOR_SCALAR_INT && TENSOR_SCALAR(3u).i == 3);
	CHECK(TENSOR_SCALAR(UINT64_MAX).kind == TENSOR_SCALAR_UINT &&
	      TENSOR_SCALAR(UINT64_MAX).u == UINT64_MAX);
	CHECK(TENSOR_SCALAR(0.5f).kind == TENSOR_SCALAR_FLOAT && TENSOR_SCALAR(0.5f).d == 0.5);
	CHECK(TENSOR_SCALAR(tensor_scalar_complex(1, 2)).imag == 2);
}

TEST(lists_of_tensors_and_numbers)
{
	tensor_scope {
		tensor *a = tensor_ones(TENSOR_SHAPE(2, 2), TENSOR_OPTIONS(0));
		tensor *both = tensor_cat(TENSOR_LIST(a, a), 0);
		double value = 0;

		CHECK(has_shape(both, 4, 2));
		CHECK(tensor_item(tensor_sum_dim(both, TENSOR_INTS(0, 1), false), &value) == 0 &&
		      value == 8);
		CHECK(tensor_at(both, TENSOR_INTS(3, 1), &value) == 0 && value == 1);
	}
}

TEST(subscripts)
{
	tensor_scope {
		tensor *x = tensor_reshape(tensor_arange(TENSOR_SCALAR(12),
							 TENSOR_OPTIONS(.dtype = TENSOR_I64)),
					   TENSOR_SHAPE(3, 4));
		tensor *column = tensor_index(x, TENSOR_ALL, TENSOR_I(-1));
		int64_t value = 0;

		CHECK(tensor_numel(column) == 3);
		CHECK(tensor_item_int(tensor_index(x, TENSOR_I(1), TENSOR_I(2)), &value) == 0 &&
		      value == 6);
		CHECK(tensor_index_put(x, tensor_zeros_like(column, TENSOR_OPTIONS(0)),
				       TENSOR_ELLIPSIS, TENSOR_I(0)));
		CHECK(tensor_item_int(tensor_index(x, TENSOR_I(2), TENSOR_I(0)), &value) == 0 &&
		      value == 0);
		CHECK(tensor_dim(tensor_index(x, TENSOR_NEWAXIS, TENSOR_SLICE(0, 2, 1))) == 3);
	}
}

TEST(devices)
{
	int index = 1;

	CHECK(TENSOR_DEVICE_CPU.type == TENSOR_CPU);
	CHECK(TENSOR_DEVICE_CUDA(index).type == TENSOR_CUDA &&
	      TENSOR_DEVICE_CUDA(index).index == 1);
}

TEST(overloads_take_a_tensor_or_a_number)
{
	tensor_scope {
		tensor *x = tensor_full(TENSOR_SHAPE(1), TENSOR_SCALAR(3), TENSOR_OPTIONS(0));
		double value = 0;

		CHECK(tensor_item(tensor_add(x, x), &value) == 0 && value == 6);
		CHECK(tensor_item(tensor_add(x, 0), &value) == 0 && value == 3);
		CHECK(tensor_item(tensor_mul(x, 0.5f), &value) == 0 && value == 1.5);
		CHECK(tensor_item(tensor_pow(2, x), &value) == 0 && value == 8);
		CHECK(tensor_item(tensor_pow(x, TENSOR_SCALAR(2)), &value) == 0 && value == 9);
		CHECK(tensor_item(tensor_where(tensor_gt(x, 1), x, -1), &value) == 0 && value == 3);
		CHECK(tensor_item(tensor_fill_(x,
					       tensor_sum(tensor_ones_like(x, TENSOR_OPTIONS(0)))),
				  &value) == 0 &&
		      value == 1);
		CHECK(tensor_item(tensor_fill_(x, 5), &value) == 0 && value == 5);
		CHECK(!tensor_add(x, static_cast<tensor *>(nullptr)) &&
		      tensor_last_error()->code == EINVAL);
		tensor *(*add)(tensor *, tensor *) = tensor_add;
		CHECK(tensor_item(add(x, x), &value) == 0 && value == 10);
	}
}
