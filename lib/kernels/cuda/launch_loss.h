/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of distances, losses of pairs, CTC and steps of an LSTM. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_LOSS_H
#define TENSOR_CUDA_LAUNCH_LOSS_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- distances, see kernels/abi/distance.h ---- */

/* x [batch, n, length], y [batch, m, length]; triangle: y is x, out has the pairs i < j. */
struct cuda_distance {
	const void *x, *y, *grad, *distance;
	void *out; /* in the backward the gradient of x */
	int64_t batch, n, m, length;
	double p;
	bool triangle;
};
int cuda_launch_distance(const struct cuda_distance *d, int dtype, cudaStream_t stream);
int cuda_launch_distance_backward(const struct cuda_distance *d, int dtype, cudaStream_t stream);

/* ---- losses of pairs, see kernels/abi/pair_loss.h ---- */

#define CUDA_PAIR_BLOCKS 512 /* at most */
struct cuda_pair_loss {
	const void *self, *target, *grad;
	int64_t n;
	double edge, square, slope, factor;
	bool each; /* a loss or, in the backward, a gradient for each pair */
	bool mean;
};
/* partial has `blocks` f64, or is NULL if `each`. */
int cuda_launch_pair_loss(const struct cuda_pair_loss *l, void *out, double *partial, int blocks,
			  int dtype, cudaStream_t stream);
int cuda_launch_pair_loss_backward(const struct cuda_pair_loss *l, void *out, int dtype,
				   cudaStream_t stream);

/* ---- steps of an LSTM, see kernels/abi/lstm.h ---- */

/* Elements between rows follow each pointer. */
struct cuda_lstm {
	int64_t rows, size;
	void *gates, *cells, *output, *grad_gates;
	const void *before, *grad_output, *grad_cells, *grad_hidden;
	int64_t gates_row, cells_row, output_row, grad_gates_row;
	int64_t before_row, grad_output_row, grad_cells_row, grad_hidden_row;
	float *state;
};
int cuda_launch_lstm_step(const struct cuda_lstm *s, int dtype, cudaStream_t stream);
int cuda_launch_lstm_step_backward(const struct cuda_lstm *s, int dtype, cudaStream_t stream);

/* ---- CTC, see kernels/abi/ctc.h; all pointers are on the device ---- */

struct cuda_ctc {
	int64_t steps, batch, classes, blank, width;
	const int64_t *labels, *first, *input_lengths, *target_lengths;
	const void *log_probs, *grad;
	void *alpha, *loss, *out, *beta;
	bool zero_infinity;
};
int cuda_launch_ctc(const struct cuda_ctc *c, int dtype, cudaStream_t stream);
int cuda_launch_ctc_backward(const struct cuda_ctc *c, int dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
