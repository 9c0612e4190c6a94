/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The kernels of nn, reduce, sort, random and shape, by the types in kernels/abi. */
#ifndef TENSOR_CUDA_KERNELS_H
#define TENSOR_CUDA_KERNELS_H

#include "kernels/abi/attention.h"
#include "kernels/abi/batch_norm.h"
#include "kernels/abi/bincount.h"
#include "kernels/abi/ctc.h"
#include "kernels/abi/distance.h"
#include "kernels/abi/fft.h"
#include "kernels/abi/lapack.h"
#include "kernels/abi/list.h"
#include "kernels/abi/lstm.h"
#include "kernels/abi/pair_loss.h"
#include "kernels/abi/quantized.h"
#include "kernels/abi/search.h"
#include "kernels/abi/sparse.h"
#include "kernels/abi/spatial.h"
#include "kernels/cuda/cuda.h"

__typeof__(*type_of_convolution) cuda_convolution, cuda_convolution_input, cuda_convolution_weight;
__typeof__(*type_of_convolution_reduced) cuda_convolution_reduced;
__typeof__(*type_of_fft_c2c) cuda_fft_c2c;
__typeof__(*type_of_fft_r2c) cuda_fft_r2c;
__typeof__(*type_of_fft_c2r) cuda_fft_c2r;
__typeof__(*type_of_im2col) cuda_im2col, cuda_col2im;
__typeof__(*type_of_avg_pool) cuda_avg_pool, cuda_avg_pool_backward, cuda_adaptive_avg_pool,
	cuda_adaptive_avg_pool_backward;
__typeof__(*type_of_max_pool) cuda_max_pool, cuda_adaptive_max_pool;
__typeof__(*type_of_max_pool_backward) cuda_max_pool_backward;
__typeof__(*type_of_batch_stats) cuda_batch_stats;
__typeof__(*type_of_batch_apply) cuda_batch_apply;
__typeof__(*type_of_batch_norm_backward) cuda_batch_norm_backward;
__typeof__(*type_of_group_norm) cuda_group_norm;
__typeof__(*type_of_group_norm_backward) cuda_group_norm_backward;
__typeof__(*type_of_uniform) cuda_uniform, cuda_normal, cuda_exponential, cuda_randint,
	cuda_randperm;
__typeof__(*type_of_bernoulli_each) cuda_bernoulli_each;
__typeof__(*type_of_arange) cuda_arange, cuda_linspace;
__typeof__(*type_of_cumsum) cuda_cumsum, cuda_cumprod, cuda_logcumsumexp;
__typeof__(*type_of_cummax) cuda_cummax, cuda_cummin;
__typeof__(*type_of_sort) cuda_sort;
__typeof__(*type_of_sort_rows) cuda_sort_rows;
__typeof__(*type_of_topk) cuda_topk;
__typeof__(*type_of_kthvalue) cuda_kthvalue;
__typeof__(*type_of_nonzero) cuda_nonzero;
__typeof__(*type_of_masked_select) cuda_masked_select;
__typeof__(*type_of_masked_scatter) cuda_masked_scatter;
__typeof__(*type_of_pad) cuda_pad;
__typeof__(*type_of_pad_backward) cuda_pad_backward;
__typeof__(*type_of_upsample) cuda_upsample, cuda_upsample_backward;
__typeof__(*type_of_mean) cuda_mean, cuda_nansum;
__typeof__(*type_of_dot) cuda_dot;
__typeof__(*type_of_bincount) cuda_bincount;
__typeof__(*type_of_searchsorted) cuda_searchsorted;
__typeof__(*type_of_mode) cuda_mode;
__typeof__(*type_of_multinomial) cuda_multinomial;
__typeof__(*type_of_embedding_bag) cuda_embedding_bag;
__typeof__(*type_of_embedding_bag_backward) cuda_embedding_bag_backward;
__typeof__(*type_of_embedding_bag_weights_backward) cuda_embedding_bag_weights_backward;
__typeof__(*type_of_cdist) cuda_cdist;
__typeof__(*type_of_cdist_backward) cuda_cdist_backward;
__typeof__(*type_of_pdist) cuda_pdist;
__typeof__(*type_of_pdist_backward) cuda_pdist_backward;
__typeof__(*type_of_pair_loss) cuda_pair_loss;
__typeof__(*type_of_pair_loss_backward) cuda_pair_loss_backward;
__typeof__(*type_of_lstm_step) cuda_lstm_step;
__typeof__(*type_of_lstm_step_backward) cuda_lstm_step_backward;
__typeof__(*type_of_ctc_loss) cuda_ctc_loss;
__typeof__(*type_of_grid_sampler_2d) cuda_grid_sampler_2d;
__typeof__(*type_of_grid_sampler_2d_backward) cuda_grid_sampler_2d_backward;
__typeof__(*type_of_list) cuda_list;
__typeof__(*type_of_attention) cuda_attention;
__typeof__(*type_of_attention_backward) cuda_attention_backward;
__typeof__(*type_of_attention_takes_bf16) cuda_attention_takes_bf16;

__typeof__(*type_of_linalg_lu_factor) cuda_linalg_lu_factor;
__typeof__(*type_of_linalg_lu_solve) cuda_linalg_lu_solve;
__typeof__(*type_of_linalg_cholesky) cuda_linalg_cholesky;
__typeof__(*type_of_cholesky_solve) cuda_cholesky_solve;
__typeof__(*type_of_linalg_solve_triangular) cuda_linalg_solve_triangular;
__typeof__(*type_of_geqrf) cuda_geqrf;
__typeof__(*type_of_linalg_householder_product) cuda_linalg_householder_product;
__typeof__(*type_of__linalg_eigh) cuda__linalg_eigh;
__typeof__(*type_of__linalg_svd) cuda__linalg_svd;
__typeof__(*type_of_quantize) cuda_quantize;
__typeof__(*type_of_dequantize) cuda_dequantize;
__typeof__(*type_of_gemm_s8) cuda_gemm_s8;
__typeof__(*type_of_patches_u8) cuda_patches_u8;
__typeof__(*type_of_spmm) cuda_spmm;
__typeof__(*type_of_sampled_mm) cuda_sampled_mm;
__typeof__(*type_of_sum_runs) cuda_sum_runs;

#endif
