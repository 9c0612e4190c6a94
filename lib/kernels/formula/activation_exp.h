/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The complex loops and the tables of activation functions whose loops over floats are in
 * activation_exp_float.h. */
/* one: the logistic function of y */
#define SILU_GRAD(x, y, one) ((x) * (one) * (1 + (y) * (1 - (one))))
UNARY_COMPLEX(silu, x / (1 + exp(-x)))
BINARY_COMPLEX(silu_backward, SILU_GRAD(x, y, 1 / (1 + exp(-y))))
POINTWISE(silu, AT_FLOAT(silu), AT_BF16(silu), AT_COMPLEX(silu))
POINTWISE(silu_backward, AT_FLOAT(silu_backward), AT_BF16(silu_backward), AT_COMPLEX(silu_backward))

#define REAL(f)	     POINTWISE(f, AT_FLOAT(f))
#define REAL_BF16(f) POINTWISE(f, AT_FLOAT(f), AT_BF16(f))
REAL_BF16(mish)
REAL_BF16(mish_backward)
REAL_BF16(softplus)
REAL_BF16(softplus_backward)
REAL_BF16(log_sigmoid)
REAL_BF16(log_sigmoid_buffer)
REAL_BF16(elu)
REAL_BF16(elu_backward)
REAL_BF16(gelu)
REAL_BF16(gelu_backward)
REAL_BF16(gelu_tanh)
REAL_BF16(gelu_tanh_backward)
