// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fourier transforms by cuFFT, which is loaded when a first one is computed. Lines that are not contiguous are transformed
 * with strides, one call for each index of the dimensions before theirs, or as copies if these are many.
 */
#include "kernels/cuda/linalg/cufft.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_fft.h"

#include <pthread.h>

#define CALLS_MAX 8  /* for lines with strides; above, they are copied */
#define PLANS	  32 /* that are kept */

/* ---- plans ---- */

struct plan_key {
	int device, type;
	long long n, stride, in_dist, out_dist, batch;
};

struct plan {
	struct plan_key key;
	cufftHandle handle;
	size_t workspace;
	uint64_t used; /* 0: there is none */
};

/* A plan has a stream and a workspace: the lock is held until its work is queued. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan plans[PLANS];
static uint64_t uses;

static int fft_check(const struct cuda_call *c, int result)
{
	if (likely(result == CUFFT_SUCCESS))
		return 0;
	return tensor_fail(result == CUFFT_ALLOC_FAILED ? ENOMEM : EIO, "%s: cuFFT: error %d",
			   c->op, result);
}

static struct plan *find_plan(const struct plan_key *key)
{
	for (int i = 0; i < PLANS; i++)
		if (plans[i].used && !memcmp(&plans[i].key, key, sizeof(*key)))
			return &plans[i];
	return NULL;
}

/* A free place, or that of the plan that was used least recently. */
static struct plan *place_for_plan(const struct cufft *fft)
{
	struct plan *p = &plans[0];

	for (int i = 1; i < PLANS; i++)
		if (plans[i].used < p->used)
			p = &plans[i];
	if (p->used)
		fft->destroy(p->handle);
	p->used = 0;
	return p;
}

static int make_plan(const struct cuda_call *c, const struct cufft *fft, struct plan *p,
		     const struct plan_key *key)
{
	long long n = key->n;
	int err = fft_check(c, fft->create(&p->handle));

	if (err)
		return err;
	err = fft_check(c, fft->set_auto_allocation(p->handle, 0));
	if (!err)
		err = fft_check(c,
				fft->make_plan_many64(p->handle, 1, &n, &n, key->stride,
						      key->in_dist, &n, key->stride, key->out_dist,
						      key->type, key->batch, &p->workspace));
	if (err)
		fft->destroy(p->handle);
	else
		p->key = *key;
	return err;
}

/* NULL with the error set. */
static struct plan *get_plan(const struct cuda_call *c, const struct cufft *fft,
			     const struct plan_key *key)
{
	struct plan *p = find_plan(key);

	if (!p) {
		p = place_for_plan(fft);
		if (make_plan(c, fft, p, key) < 0)
			return NULL;
	}
	p->used = ++uses;
	return p;
}

/* ---- lines ---- */

/*
 * [outer, n, inner] elements: lines of n, of which one has n elements of the transform and `in` and `out` complex or real
 * ones in the operands.
 */
struct lines {
	int type; /* of cuFFT */
	enum tensor_dtype from, to;
	bool forward;
	int64_t outer, inner, n, in, out;
};

static int execute(const struct cufft *fft, const struct plan *p, bool forward, char *in, char *out)
{
	const int direction = forward ? CUFFT_FORWARD : CUFFT_INVERSE;

	switch (p->key.type) {
	case CUFFT_C2C:
		return fft->exec_c2c(p->handle, in, out, direction);
	case CUFFT_Z2Z:
		return fft->exec_z2z(p->handle, in, out, direction);
	case CUFFT_R2C:
		return fft->exec_r2c(p->handle, in, out);
	case CUFFT_D2Z:
		return fft->exec_d2z(p->handle, in, out);
	case CUFFT_C2R:
		return fft->exec_c2r(p->handle, in, out);
	default:
		return fft->exec_z2d(p->handle, in, out);
	}
}

/* The caller holds lock. */
static int run_plan(const struct cuda_call *c, const struct cufft *fft, const struct lines *l,
		    const struct plan_key *key, void *in, void *out, int64_t calls)
{
	struct plan *p = get_plan(c, fft, key);
	const int64_t in_step = l->in * l->inner * (int64_t)tensor_itemsize(l->from),
		      out_step = l->out * l->inner * (int64_t)tensor_itemsize(l->to);
	void *workspace = NULL;
	int err;

	if (!p)
		return -tensor_last_error()->code;
	err = p->workspace ? cuda_scratch(c, p->workspace, &workspace) : 0;
	if (!err)
		err = fft_check(c, fft->set_stream(p->handle, c->stream));
	if (!err && workspace)
		err = fft_check(c, fft->set_work_area(p->handle, workspace));
	for (int64_t i = 0; i < calls && !err; i++)
		err = fft_check(c, execute(fft, p, l->forward, (char *)in + i * in_step,
					   (char *)out + i * out_step));
	cuda_scratch_free(c, workspace);
	return err;
}

/* Lines of contiguous elements, or with the stride `inner`. */
static int transform(const struct cuda_call *c, const struct cufft *fft, const struct lines *l,
		     void *in, void *out)
{
	const bool flat = l->inner == 1;
	struct plan_key key;
	int err;

	/* A plan, and its memory, may be destroyed before the graph. */
	if (cuda_capturing(c))
		return cuda_refuse(c, "needs a plan of cuFFT");
	memset(&key, 0, sizeof(key));
	key.device = c->device;
	key.type = l->type;
	key.n = l->n;
	key.stride = l->inner;
	key.in_dist = flat ? l->in : 1;
	key.out_dist = flat ? l->out : 1;
	key.batch = flat ? l->outer : l->inner;
	pthread_mutex_lock(&lock);
	err = run_plan(c, fft, l, &key, in, out, flat ? 1 : l->outer);
	pthread_mutex_unlock(&lock);
	return err;
}

/* [outer, n, inner] to [outer, inner, n], or back. */
static int move_lines(const struct cuda_call *c, const struct lines *l, int64_t n,
		      enum tensor_dtype d, void *to, void *from, bool back)
{
	const int64_t size = (int64_t)tensor_itemsize(d);
	const int64_t far = l->inner * size, line = n * size;
	struct cuda_pointwise p = { .data = { to, from } };

	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 2, n, (const int64_t[]){ back ? far : size, back ? size : far });
	cuda_dims_add(&p.dims, 2, l->inner,
		      (const int64_t[]){ back ? size : line, back ? line : size });
	cuda_dims_add(&p.dims, 2, l->outer, (const int64_t[]){ n * far, n * far });
	return cuda_copy_within(c, &p, d, d);
}

static int transform_copies(const struct cuda_call *c, const struct cufft *fft,
			    const struct lines *l, void *in, void *out)
{
	const int64_t all = l->outer * l->inner;
	struct lines rows = *l;
	void *from = NULL, *to = NULL;
	int err = cuda_scratch(c, (size_t)(all * l->in) * tensor_itemsize(l->from), &from);

	rows.outer = all;
	rows.inner = 1;
	if (!err)
		err = cuda_scratch(c, (size_t)(all * l->out) * tensor_itemsize(l->to), &to);
	if (!err)
		err = move_lines(c, l, l->in, l->from, from, in, false);
	if (!err)
		err = transform(c, fft, &rows, from, to);
	if (!err)
		err = move_lines(c, l, l->out, l->to, out, to, true);
	cuda_scratch_free(c, from);
	cuda_scratch_free(c, to);
	return err;
}

/* A transform to real numbers may write to its input. */
static int transform_to_real(const struct cuda_call *c, const struct cufft *fft,
			     const struct lines *l, void *in, void *out)
{
	const size_t bytes = (size_t)(l->outer * l->in * l->inner) * tensor_itemsize(l->from);
	void *copy = NULL;
	int err = cuda_scratch(c, bytes, &copy);

	if (!err)
		err = cuda_check(c->op, cudaMemcpyAsync(copy, in, bytes, cudaMemcpyDeviceToDevice,
							c->stream));
	if (!err)
		err = transform(c, fft, l, copy, out);
	cuda_scratch_free(c, copy);
	return err;
}

/* ---- one transform ---- */

/* Elements in their order, converted. */
static int convert(const struct cuda_call *c, tensor *out, const tensor *x)
{
	struct cuda_pointwise p = { .data = { out->data, x->data } };

	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 2, x->numel,
		      (const int64_t[]){ (int64_t)tensor_itemsize(out->dtype),
					 (int64_t)tensor_itemsize(x->dtype) });
	return cuda_copy_within(c, &p, out->dtype, x->dtype);
}

static int scale_by(const struct cuda_call *c, tensor *out, double scale)
{
	const bool is_double = out->dtype == TENSOR_F64 || out->dtype == TENSOR_C128;
	const int64_t n = out->numel * (dtype_is_complex(out->dtype) ? 2 : 1);

	if (scale == 1)
		return 0;
	return cuda_check(c->op, cuda_launch_fft_scale(out->data, n, scale, is_double, c->stream));
}

/* positions: of the transform, of which out and x may have half. */
static struct lines lines_of(const tensor *out, const tensor *x, int dim, int64_t positions)
{
	struct lines l = { .from = x->dtype,
			   .to = out->dtype,
			   .outer = 1,
			   .inner = 1,
			   .n = positions,
			   .in = x->sizes[dim],
			   .out = out->sizes[dim] };

	for (int d = 0; d < x->ndim; d++)
		if (d != dim)
			*(d < dim ? &l.outer : &l.inner) *= x->sizes[d];
	return l;
}

/* cuFFT takes memory that is aligned for complex numbers, also of real ones. */
static bool is_aligned(const struct lines *l, const tensor *out, const tensor *x)
{
	const uintptr_t item = l->to == TENSOR_F64 || l->to == TENSOR_C128 ? 16 : 8;
	uintptr_t all = (uintptr_t)out->data | (uintptr_t)x->data;

	if (l->inner > 1 && l->outer > 1)
		all |= (uintptr_t)(l->in * l->inner) * tensor_itemsize(l->from) |
		       (uintptr_t)(l->out * l->inner) * tensor_itemsize(l->to);
	return all % item == 0;
}

static int transform_lines(const struct cuda_call *c, const struct lines *l, tensor *out,
			   const tensor *x)
{
	const struct cufft *fft = cufft(c->op);
	const bool to_real = !dtype_is_complex(l->to);

	if (!fft)
		return -tensor_last_error()->code;
	if ((l->inner > 1 && l->outer > CALLS_MAX) || !is_aligned(l, out, x))
		return transform_copies(c, fft, l, x->data, out->data);
	return to_real ? transform_to_real(c, fft, l, x->data, out->data) :
			 transform(c, fft, l, x->data, out->data);
}

static bool is_single(const tensor *t)
{
	return t->dtype == TENSOR_F32 || t->dtype == TENSOR_C64;
}

int cuda_fft_c2c(tensor *out, const tensor *x, int dim, bool forward, double scale)
{
	struct lines l = lines_of(out, x, dim, x->sizes[dim]);
	struct cuda_call c;
	int err;

	l.type = is_single(x) ? CUFFT_C2C : CUFFT_Z2Z;
	l.forward = forward;
	if (!x->numel)
		return 0;
	err = cuda_begin_with(&c, "fft_c2c", out->device.index, out, x);
	if (err)
		return err;
	if (l.n > 1)
		err = transform_lines(&c, &l, out, x);
	else if (out->data != x->data)
		err = convert(&c, out, x);
	if (!err)
		err = scale_by(&c, out, scale);
	return cuda_end(&c, err);
}

int cuda_fft_r2c(tensor *out, const tensor *x, int dim, double scale)
{
	struct lines l = lines_of(out, x, dim, x->sizes[dim]);
	struct cuda_call c;
	int err;

	/* All positions: as a complex transform. */
	if (l.out != l.n / 2 + 1 || l.n == 1) {
		if (!x->numel)
			return 0;
		err = cuda_begin_with(&c, "fft_r2c", out->device.index, out, x);
		if (!err)
			err = cuda_end(&c, convert(&c, out, x));
		return err ? err : cuda_fft_c2c(out, out, dim, true, scale);
	}
	l.type = is_single(x) ? CUFFT_R2C : CUFFT_D2Z;
	if (!x->numel)
		return 0;
	err = cuda_begin_with(&c, "fft_r2c", out->device.index, out, x);
	if (err)
		return err;
	err = transform_lines(&c, &l, out, x);
	if (!err)
		err = scale_by(&c, out, scale);
	return cuda_end(&c, err);
}

int cuda_fft_c2r(tensor *out, const tensor *x, int dim, double scale)
{
	struct lines l = lines_of(out, x, dim, out->sizes[dim]);
	struct cuda_call c;
	int err;

	l.type = is_single(x) ? CUFFT_C2R : CUFFT_Z2D;
	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "fft_c2r", out->device.index, out, x);
	if (err)
		return err;
	err = l.n > 1 ? transform_lines(&c, &l, out, x) : convert(&c, out, x);
	if (!err)
		err = scale_by(&c, out, scale);
	return cuda_end(&c, err);
}
