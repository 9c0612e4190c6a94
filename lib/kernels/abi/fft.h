/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels of Fourier transforms along one dimension of contiguous tensors, of dtypes f32, f64, c64
 * and c128. Forward is the sum over j of x[j] exp(-2 pi i j k / n), backward has the positive sign.
 * Results are multiplied by scale.
 */
#ifndef TENSOR_FFT_H
#define TENSOR_FFT_H

#include "kernels/abi/kernels.h"

/* out, complex = the transform of x; they have the same shape and may be the same tensor. */
typedef int (*fft_c2c_kernel)(tensor *out, const tensor *x, int dim, bool forward, double scale);
extern fft_c2c_kernel type_of_fft_c2c;
/* out, complex = the first elements of the forward transform of x, as many as out has. */
typedef int (*fft_r2c_kernel)(tensor *out, const tensor *x, int dim, double scale);
extern fft_r2c_kernel type_of_fft_r2c;
/* out, real = the backward transform of a Hermitian line, of which x has the first half. */
typedef int (*fft_c2r_kernel)(tensor *out, const tensor *x, int dim, double scale);
extern fft_c2r_kernel type_of_fft_c2r;

#endif
