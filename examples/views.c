// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Views: a tensor that is seen in another shape or order has the same memory, and a write through one shows in all. */
#include <stdio.h>
#include <tensor/tensor.h>

/* Element [i, j] of t; on error the record is printed at the end. */
static double at(const tensor *t, int64_t i, int64_t j)
{
	double value = -1;

	tensor_at(t, TENSOR_INTS(i, j), &value);
	return value;
}

static int check(bool true_, const char *what)
{
	if (!true_)
		printf("not true: %s\n", what);
	return !true_;
}

int main(void)
{
	int wrong = 0;

	tensor_scope {
		/* 0 to 11 in three rows of four: strides [4, 1]. */
		tensor *x = tensor_view(tensor_arange(TENSOR_SCALAR(12), TENSOR_OPTIONS(0)),
					TENSOR_SHAPE(3, 4));
		tensor *columns = tensor_transpose(x, 0, 1); /* strides [1, 4]: nothing is copied */
		tensor *middle = tensor_narrow(x, 1, 1, 2);  /* columns 1 and 2 */
		tensor *odd = tensor_slice(x, 1, 1, 4, 2);   /* columns 1 and 3 */

		wrong += check(tensor_shares_storage(x, columns), "a transposed tensor is a view");
		wrong += check(at(columns, 3, 2) == at(x, 2, 3), "rows and columns are swapped");
		wrong += check(tensor_storage_offset(middle) == 1, "a part begins at an offset");
		wrong += check(at(odd, 2, 1) == 11, "a slice has a step");

		/* In place: the function's name ends with an underscore. */
		tensor_add_scalar_(middle, TENSOR_SCALAR(100));
		wrong += check(at(x, 0, 1) == 101 && at(x, 0, 3) == 3, "a write shows in the base");
		wrong += check(at(columns, 2, 1) == 106, "a write shows in other views");

		/* expand() repeats without memory: the stride is 0. */
		tensor *rows = tensor_expand(tensor_narrow(x, 0, 0, 1), TENSOR_SHAPE(5, 4));

		wrong += check(tensor_stride(rows, 0) == 0, "a repeated dimension has stride 0");

		/* What must lie in order is copied: reshape() of this copies, view() fails. */
		tensor *flat = tensor_reshape(columns, TENSOR_SHAPE(12));

		wrong += check(!tensor_shares_storage(flat, x), "reshape copies where it has to");
		wrong += check(!tensor_view(columns, TENSOR_SHAPE(12)), "view never copies");
		printf("as it should: %s\n", tensor_last_error()->text);
		tensor_print(x, stdout);
	}
	return wrong != 0;
}
