// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions by cuDNN. Plans are kept; a convolution that cuDNN refuses is kept too, so that it is not asked again.
 */
#include "kernels/cuda/dnn/convolve.h"

#include "kernels/cuda/kernels.h"

#include <pthread.h>

#define PLANS	      256 /* that are kept */
#define ALIGNMENT_MAX 16

/* ---- plans ---- */

struct kept_plan {
	struct dnn_conv key;
	struct dnn_plan plan;
	bool refused;  /* there is no plan */
	bool captured; /* by a graph, which may be replayed at any time: kept for good */
	uint64_t used; /* 0: the place is free */
};

/* A handle has a stream: the lock is held until the work of a call is queued. Handles stay open. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *handles[CUDA_DEVICES];
static struct kept_plan plans[PLANS];
static uint64_t uses;

static struct kept_plan *find_plan(const struct dnn_conv *key)
{
	for (int i = 0; i < PLANS; i++)
		if (plans[i].used && !memcmp(&plans[i].key, key, sizeof(*key)))
			return &plans[i];
	return NULL;
}

/* A free place, or that of the plan that was used least recently. NULL if graphs have them all. */
static struct kept_plan *place_for_plan(const struct cudnn *dnn)
{
	struct kept_plan *p = NULL;

	for (int i = 0; i < PLANS; i++)
		if (!plans[i].captured && (!p || plans[i].used < p->used))
			p = &plans[i];
	if (p && p->used && !p->refused)
		dnn_free_plan(dnn, &p->plan);
	if (p)
		p->used = 0;
	return p;
}

/* NULL: cuDNN cannot compute the convolution now. */
static struct kept_plan *get_plan(const struct cuda_call *c, const struct cudnn *dnn,
				  const struct dnn_conv *key)
{
	struct kept_plan *p = find_plan(key);
	enum cudaStreamCaptureMode before;
	struct dnn_plan made;
	int status;

	if (!p) {
		before = cuda_relax();
		status = dnn_make_plan(dnn, handles[c->device], key, &made);
		cuda_unrelax(before);
		if (status)
			cudaGetLastError();
		/* Other failures may have a cause that passes, such as a lack of memory. */
		if (status && status / 1000 != CUDNN_NOT_SUPPORTED / 1000)
			return NULL;
		p = place_for_plan(dnn);
		if (!p) {
			if (!status)
				dnn_free_plan(dnn, &made);
			return NULL;
		}
		p->key = *key;
		p->refused = status;
		if (!status)
			p->plan = made;
	}
	p->used = ++uses;
	return p->refused ? NULL : p;
}

static bool open_handle(const struct cuda_call *c, const struct cudnn *dnn)
{
	void **handle = &handles[c->device];
	enum cudaStreamCaptureMode before;
	int status;

	if (*handle)
		return true;
	before = cuda_relax();
	status = dnn->create(handle);
	cuda_unrelax(before);
	if (!status)
		return true;
	*handle = NULL;
	cudaGetLastError();
	return false;
}

/* 1, 0 or -errno, see dnn_convolve(). */
static int execute(const struct cuda_call *c, const struct cudnn *dnn, struct kept_plan *p,
		   void *const *tensors)
{
	void *workspace = NULL, *handle = handles[c->device];
	enum cudaStreamCaptureMode before;
	int status, err;

	err = p->plan.workspace ? cuda_scratch(c, (size_t)p->plan.workspace, &workspace) : 0;
	if (err)
		return err;
	/* Code of an engine may be loaded now. */
	before = cuda_relax();
	status = dnn->set_stream(handle, c->stream);
	if (!status)
		status = dnn_execute(dnn, handle, &p->plan, &p->key, tensors, workspace);
	cuda_unrelax(before);
	cuda_scratch_free(c, workspace);
	p->captured |= cuda_capturing(c);
	if (!status)
		return 1;
	if (status / 1000 == CUDNN_NOT_SUPPORTED / 1000) {
		cudaGetLastError();
		return 0;
	}
	return tensor_fail(dnn_is_out_of_memory(status) ? ENOMEM : EIO, "%s: cuDNN: %s", c->op,
			   dnn->error_string(status));
}

static int execute_plan(const struct cuda_call *c, const struct cudnn *dnn,
			const struct dnn_conv *key, void *const *tensors)
{
	struct kept_plan *p;
	int result = 0;

	pthread_mutex_lock(&lock);
	if (open_handle(c, dnn)) {
		p = get_plan(c, dnn, key);
		result = p ? execute(c, dnn, p, tensors) : 0;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- a convolution ---- */

static int type_of(enum tensor_dtype dtype)
{
	switch (dtype) {
	case TENSOR_F64:
		return CUDNN_DATA_DOUBLE;
	case TENSOR_F16:
		return CUDNN_DATA_HALF;
	case TENSOR_BF16:
		return CUDNN_DATA_BFLOAT16;
	default:
		return CUDNN_DATA_FLOAT;
	}
}

static int alignment_of(void *const *tensors, int n)
{
	uintptr_t all = ALIGNMENT_MAX;

	for (int i = 0; i < n; i++)
		all |= (uintptr_t)tensors[i];
	return (int)(all & -all);
}

/* The last two dimensions of space, or all three. */
static void describe(struct dnn_conv *v, const struct cuda_conv *c)
{
	const struct cuda_windows *w = &c->w;
	const bool has_depth = w->in[0] > 1 || w->out[0] > 1 || w->kernel[0] > 1 || w->padding[0];
	const int first = has_depth ? 0 : 1;

	v->spatial = 3 - first;
	v->x[0] = v->y[0] = c->batch;
	v->x[1] = c->groups * c->in;
	v->w[0] = v->y[1] = c->groups * c->out;
	v->w[1] = c->in;
	for (int d = first; d < 3; d++) {
		v->x[2 + d - first] = w->in[d];
		v->w[2 + d - first] = w->kernel[d];
		v->y[2 + d - first] = w->out[d];
		v->stride[d - first] = w->stride[d];
		v->padding[d - first] = w->padding[d];
		v->dilation[d - first] = w->dilation[d];
	}
}

static int64_t count_of(const struct dnn_conv *v, const int64_t *sizes)
{
	int64_t n = 1;

	for (int d = 0; d < v->spatial + 2; d++)
		n *= sizes[d];
	return n;
}

/* result[n, k, :] += bias[k] */
static int add_bias(const struct cuda_call *c, const struct dnn_conv *v, const int64_t *sizes,
		    const struct dnn_operands *o, void *result)
{
	const int64_t size = (int64_t)tensor_itemsize(o->dtype), channels = sizes[1],
		      plane = count_of(v, sizes) / (sizes[0] * channels);
	struct cuda_pointwise p = { .data = { result, result, o->bias },
				    .itemsize = { size, size, size } };
	const int64_t all[] = { plane * size, plane * channels * size };

	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 3, plane, (const int64_t[]){ size, size, 0 });
	cuda_dims_add(&p.dims, 3, channels, (const int64_t[]){ all[0], all[0], size });
	cuda_dims_add(&p.dims, 3, sizes[0], (const int64_t[]){ all[1], all[1], 0 });
	cuda_dims_done(&p.dims, 3);
	return cuda_launched(c, cuda_launch_parts(cuda_launch_add, &p, 3, (int)o->dtype, c->stream),
			     o->dtype);
}

int dnn_convolve(const struct cuda_call *c, enum dnn_kind kind, const struct cuda_conv *conv,
		 const struct dnn_operands *o)
{
	const struct cudnn *dnn = cudnn();
	void *tensors[] = { o->x, o->w, o->y, o->bias };
	void *result = kind == DNN_FORWARD ? o->y : kind == DNN_INPUT ? o->x : o->w;
	struct dnn_conv v;
	const int64_t *sizes;
	int done, err;

	if (!dnn)
		return 0;
	memset(&v, 0, sizeof(v));
	v.device = c->device;
	v.kind = kind;
	v.type = type_of(o->dtype);
	describe(&v, conv);
	sizes = kind == DNN_FORWARD ? v.y : kind == DNN_INPUT ? v.x : v.w;
	v.alignment = alignment_of(tensors, 4);
	v.biased = kind == DNN_FORWARD && o->bias;
	done = execute_plan(c, dnn, &v, tensors);
	if (!done && v.biased) {
		v.biased = false;
		done = execute_plan(c, dnn, &v, tensors);
	}
	if (done < 1 || !o->bias || v.biased)
		return done;
	err = add_bias(c, &v, sizes, o, result);
	return err ? err : 1;
}
