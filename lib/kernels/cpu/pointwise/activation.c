// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Activation functions, and gradients of activation functions, that need only arithmetic; those
 * that need exp() or erf() are in activation_exp.c. In gradients, x is the incoming gradient and y
 * the input of the function, or its saved result.
 */
#include "kernels/cpu/simd/complex_mul.h"
#include "kernels/cpu/simd/loops.h"

#include <tgmath.h>

#include "kernels/formula/activation.h"

CPU_KERNELS(K(relu), K(hardsigmoid), K(hardswish), K(hardsigmoid_backward), K(hardswish_backward),
	    K(leaky_relu), K(leaky_relu_backward), K(hardtanh_backward), K(threshold),
	    K(hardshrink), K(softshrink), K(shrink_backward), K(relu_backward), K(tanh_backward),
	    K(sigmoid_backward), K(elu_backward_result), K(log_sigmoid_backward))
