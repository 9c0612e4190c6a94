/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Data-parallel training: each rank of a process group has the same module and trains it on its own part of every batch.
 * The gradients are averaged over the ranks while backward computes the next ones, so that all ranks make the same step.
 *
 * 	tensor_data_parallel *dp = tensor_data_parallel_new(m, group, NULL);
 * 	...
 * 	loss = net(m, batch);
 * 	tensor_data_parallel_backward(dp, loss);
 * 	tensor_optim_step(optim);
 *
 * With the mean over a batch as the loss, and batches of one size, this is the step of one process with all batches.
 */
#ifndef TENSOR_PARALLEL_H
#define TENSOR_PARALLEL_H

#include <tensor/group.h>
#include <tensor/module.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tensor_data_parallel tensor_data_parallel;

struct tensor_data_parallel_options {
	int64_t bucket_bytes; /* gradients that travel together; 0: 25 MiB, and 1 MiB for the first ones */
	enum tensor_dtype
		dtype; /* in which they travel: f16, bf16, f32, f64; TENSOR_DTYPE_NONE: their own */
	bool keep_buffers; /* each rank keeps its own buffers of the module; otherwise they are rank 0's */
};

#define TENSOR_DATA_PARALLEL_OPTIONS(...) \
	(&(const struct tensor_data_parallel_options){ __VA_ARGS__ })

/*
 * Prepare a module whose parameters exist: call the model once, or load a file, before. Parameters and buffers of all
 * ranks become rank 0's. The module and the group are used until tensor_data_parallel_free(). Parameters that require no
 * gradient now are left alone. NULL with the error set: EINVAL, also on all ranks if their modules differ, or one of them
 * has a parameter or buffer that cannot be written; the errors of <tensor/group.h>.
 */
tensor_data_parallel *tensor_data_parallel_new(tensor_module *m, tensor_group *group,
					       const struct tensor_data_parallel_options *options);
/*
 * The same for a program that has its parameters and buffers in no tensor_module: lists of the same length and order on all
 * ranks, of which references are kept.
 */
tensor_data_parallel *
tensor_data_parallel_new_of(tensor_list parameters, tensor_list buffers, tensor_group *group,
			    const struct tensor_data_parallel_options *options);
/* NULL is ignored. The group may be closed already; gradients must not be computed between the two calls. */
void tensor_data_parallel_free(tensor_data_parallel *dp);

/*
 * tensor_backward(loss), and tensor_data_parallel_finish(). Every rank calls it equally often. 0, or -errno: of backward,
 * or of the group.
 */
int tensor_data_parallel_backward(tensor_data_parallel *dp, tensor *loss);
/*
 * After another kind of backward: wait until the gradients of all ranks have been averaged. A parameter that
 * has a gradient on no rank gets none; one without on this rank counts as zero here. Then buffers are rank 0's again.
 * Also after a backward that failed on this rank: the others wait for it.
 */
int tensor_data_parallel_finish(tensor_data_parallel *dp);
/*
 * Before tensor_data_parallel_finish(), for programs that look for something else meanwhile: wait at most for a time
 * (negative: no limit) for the gradients of all ranks. 0: finish() does not wait for them; it returns their error.
 * -ETIMEDOUT: they have not come; wait again, or call finish().
 */
int tensor_data_parallel_wait(tensor_data_parallel *dp, int64_t timeout_ns);
/*
 * Without sync, gradients are only accumulated on this rank: for the first backwards of a large batch that is computed
 * in parts. The next backward with sync averages what has come together. 0 or -EINVAL.
 */
int tensor_data_parallel_set_sync(tensor_data_parallel *dp, bool sync);

/* ---- sharded optimizer ---- */

/*
 * This rank's part of the parameters, about as many elements as each other rank has: an optimizer made for them keeps
 * state for them alone. After its step, tensor_data_parallel_share() gives their new values to all ranks. Valid until dp is
 * freed; a rank can have none.
 */
tensor_list tensor_data_parallel_owned(tensor_data_parallel *dp);
int tensor_data_parallel_share(tensor_data_parallel *dp);

#ifdef __cplusplus
}
#endif
#endif
