/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of embedding_bag and its gradients. See launch.h and kernels/abi/embedding.h. */
#ifndef TENSOR_CUDA_LAUNCH_EMBEDDING_H
#define TENSOR_CUDA_LAUNCH_EMBEDDING_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_bag_mode { CUDA_BAG_SUM, CUDA_BAG_MEAN, CUDA_BAG_MAX };

/* `indices` and the other integers are i64, or i32 unless `wide`. factors, of the result's dtype, may
 * be NULL. */
struct cuda_bags {
	bool wide;
	enum cuda_bag_mode mode;
	int64_t m, bags, rows, d, padding;
	int64_t noffsets; /* as many as bags, or one more: the end of the last bag */
	const void *indices, *offsets, *factors;
	void *offset2bag, *bag_size, *maximum;
	struct cuda_report bad;
};
/* Checks the indices and offsets, and writes offset2bag. Reports indices that are out of range, and offsets that do not
 * ascend. */
int cuda_launch_bags_check(const struct cuda_bags *b, cudaStream_t stream);
/* out [bags, d] from weight [rows, d] of `dtype`. Indices out of range are not read. */
int cuda_launch_bags(const struct cuda_bags *b, void *out, const void *weight, int dtype,
		     cudaStream_t stream);

/* Reports elements of offset2bag that are no bags, and indices that are no rows. */
int cuda_launch_bags_check_made(const struct cuda_bags *b, cudaStream_t stream);
/* out [m, d] = the row of grad, of `dtype`, of each index's bag times its factor, by the bag's size
 * for CUDA_BAG_MEAN; for CUDA_BAG_MAX out [bags, d] = grad, or 0 for a bag without rows. */
int cuda_launch_bag_rows(const struct cuda_bags *b, void *out, const void *grad, int dtype,
			 cudaStream_t stream);
/* out [m] = the product of the index's row of weight and the gradient of its bag. */
int cuda_launch_bag_products(const struct cuda_bags *b, void *out, const void *grad,
			     const void *weight, int dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
