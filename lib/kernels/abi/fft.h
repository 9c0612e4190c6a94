/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Kernels of Fourier transforms along one dimension of contiguous tensors, all results times
 * scale. Forward has exp(-2 pi i j k / n). f32, f64 and their complex.
 */
#ifndef TENSOR_FFT_H
#define TENSOR_FFT_H

#include "kernels/abi/kernels.h"

/* t, complex, in place. */
typedef int (*fft_c2c_kernel)(tensor *t, int dim, bool forward, double scale);
/* out, complex: the first positions of the transform of x, as many as out has. */
typedef int (*fft_r2c_kernel)(tensor *out, const tensor *x, int dim, double scale);
/* out, real: the backward transform of what x, its first half, is by symmetry. */
typedef int (*fft_c2r_kernel)(tensor *out, const tensor *x, int dim, double scale);

#endif
