// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A step of Adam, SGD, Adagrad or RMSprop: the formulas of lib/kernels/cpu/nn/optimizer_loops.h, for
 * 16 bytes of elements of each thread where addresses allow, else for one. blockIdx.y is the item.
 */
#include "kernels/cuda/launch_nn.h"
#include "kernels/cuda/reduce/rows.cuh"

static __device__ inline float root(float x)
{
	return sqrtf(x);
}

static __device__ inline double root(double x)
{
	return sqrt(x);
}

/* Numbers that all elements share, in the type C of the computation. */
template <class C> struct rates {
	C sign, decay, keep, lr, eps, scale, beta1, beta2, momentum, part, alpha, size, root;
	bool nesterov, first;

	__device__ inline rates(const cuda_step &s, double size, double root)
	    : sign(s.maximize ? -1 : 1), decay(s.decoupled ? 0 : (C)s.weight_decay),
	      keep(s.decoupled ? (C)(1 - s.lr * s.weight_decay) : 1), lr((C)s.lr), eps((C)s.eps),
	      scale((C)s.scale), beta1((C)(1 - s.beta1)), beta2((C)s.beta2),
	      momentum((C)s.momentum), part((C)(1 - s.dampening)), alpha((C)s.alpha), size((C)size),
	      root((C)root), nesterov(s.nesterov), first(s.first)
	{
	}

	/* decay 0 keeps an infinite parameter from making the gradient NaN. */
	__device__ inline C gradient(C grad, C param) const
	{
		return decay != 0 ? sign * grad + decay * param : sign * grad;
	}
};

/* One element; has[k]: there is a state k. */
template <class C> struct element {
	C param, grad, state[CUDA_STEP_STATES];
};

template <class C>
static __device__ inline void adam(const rates<C> &r, C other2, const bool *has, element<C> *e)
{
	const C g = r.gradient(e->grad, e->param);
	const C m = e->state[0] + r.beta1 * (g - e->state[0]);
	const C v = r.beta2 * e->state[1] + other2 * g * g;
	C top = v;

	if (has[2]) {
		top = e->state[2];
		top = top > v || top != top ? top : v;
		e->state[2] = top;
	}
	e->state[0] = m;
	e->state[1] = v;
	e->param = e->param * r.keep - r.size * m / (root(top) * r.root + r.eps);
}

template <class C>
static __device__ inline void sgd(const rates<C> &r, const bool *has, element<C> *e)
{
	const C g = r.gradient(e->grad, e->param);
	C b;

	if (!has[0]) {
		e->param -= r.lr * g;
		return;
	}
	b = r.first ? g : r.momentum * e->state[0] + r.part * g;
	e->state[0] = b;
	if (r.first)
		e->param -= r.lr * (1 + (r.nesterov ? r.momentum : 0)) * g;
	else
		e->param -= r.lr * (r.nesterov ? g + r.momentum * b : b);
}

template <class C> static __device__ inline void adagrad(const rates<C> &r, element<C> *e)
{
	const C g = r.gradient(e->grad, e->param);

	e->state[0] += g * g;
	e->param -= r.size * g / (root(e->state[0]) + r.eps);
}

template <class C>
static __device__ inline void rmsprop(const rates<C> &r, C part, const bool *has, element<C> *e)
{
	const C g = r.gradient(e->grad, e->param);
	C variance = r.alpha * e->state[0] + part * g * g, d;

	e->state[0] = variance;
	if (has[1]) {
		e->state[1] += part * (g - e->state[1]);
		variance -= e->state[1] * e->state[1];
	}
	d = g / (root(variance) + r.eps);
	if (has[2]) {
		e->state[2] = r.momentum * e->state[2] + d;
		d = e->state[2];
	}
	e->param -= r.lr * d;
}

template <int METHOD, class C>
static __device__ inline void step_element(const cuda_step &s, const rates<C> &r, const bool *has,
					   element<C> *e)
{
	if (s.scale != 1)
		e->grad /= r.scale;
	if (METHOD == CUDA_ADAM)
		adam(r, (C)(1 - s.beta2), has, e);
	else if (METHOD == CUDA_SGD)
		sgd(r, has, e);
	else if (METHOD == CUDA_ADAGRAD)
		adagrad(r, e);
	else
		rmsprop(r, (C)(1 - s.alpha), has, e);
}

/* Packs of an item, from pack `from` to `to`. */
template <int METHOD, class T, int PACK>
static __device__ inline void step_packs(const cuda_step &s, const cuda_step_item &item,
					 int64_t from, int64_t to)
{
	typedef typename number<T>::compute C;
	typedef pack<T, PACK> P;
	const double *given = s.rates ? s.rates + 2 * blockIdx.y : &item.size;
	const rates<C> r(s, given[0], given[1]);
	bool has[CUDA_STEP_STATES];

#pragma unroll
	for (int k = 0; k < CUDA_STEP_STATES; k++)
		has[k] = item.state[k] != nullptr;
	for (int64_t i = from + first_element<int64_t>(); i < to; i += element_step<int64_t>()) {
		P param = ((P *)item.param)[i], grad = ((P *)item.grad)[i], state[CUDA_STEP_STATES];

#pragma unroll
		for (int k = 0; k < CUDA_STEP_STATES; k++)
			if (has[k])
				state[k] = ((P *)item.state[k])[i];
#pragma unroll
		for (int j = 0; j < PACK; j++) {
			element<C> e = { number<T>::load(param.v[j]),
					 number<T>::load(grad.v[j]),
					 {} };

#pragma unroll
			for (int k = 0; k < CUDA_STEP_STATES; k++)
				if (has[k])
					e.state[k] = number<T>::load(state[k].v[j]);
			step_element<METHOD>(s, r, has, &e);
			param.v[j] = number<T>::store(e.param);
			grad.v[j] = number<T>::store(e.grad);
#pragma unroll
			for (int k = 0; k < CUDA_STEP_STATES; k++)
				state[k].v[j] = number<T>::store(e.state[k]);
		}
		((P *)item.param)[i] = param;
		if (s.scale != 1)
			((P *)item.grad)[i] = grad;
#pragma unroll
		for (int k = 0; k < CUDA_STEP_STATES; k++)
			if (has[k])
				((P *)item.state[k])[i] = state[k];
	}
}

template <int METHOD, class T> __global__ void step_kernel(cuda_step s)
{
	enum { PACK = 16 / sizeof(T) };
	const cuda_step_item &item = s.item[blockIdx.y];
	const uintptr_t odd = (uintptr_t)item.param | (uintptr_t)item.grad |
			      (uintptr_t)item.state[0] | (uintptr_t)item.state[1] |
			      (uintptr_t)item.state[2];
	int64_t done = 0;

	if (odd % 16 == 0) {
		done = item.n / PACK;
		step_packs<METHOD, T, PACK>(s, item, 0, done);
		done *= PACK;
	}
	step_packs<METHOD, T, 1>(s, item, done, item.n);
}

template <int METHOD> static int step(const cuda_step *s, int dtype, cudaStream_t stream)
{
	int64_t most = 1;

	for (int k = 0; k < s->n; k++)
		most = s->item[k].n > most ? s->item[k].n : most;
	const dim3 grid(grid_for(most, BLOCK * 4), (unsigned)s->n);

	switch (dtype) {
#define X(D, T) \
	case D: \
		return launch(step_kernel<METHOD, T>, grid, BLOCK, stream, *s);
		FOR_ALL_FLOATS(X)
#undef X
	default:
		return CUDA_NO_DTYPE;
	}
}

int cuda_launch_step(const cuda_step *s, int dtype, cudaStream_t stream)
{
	switch (s->method) {
	case CUDA_ADAM:
		return step<CUDA_ADAM>(s, dtype, stream);
	case CUDA_SGD:
		return step<CUDA_SGD>(s, dtype, stream);
	case CUDA_ADAGRAD:
		return step<CUDA_ADAGRAD>(s, dtype, stream);
	case CUDA_RMSPROP:
		return step<CUDA_RMSPROP>(s, dtype, stream);
	}
	return cudaErrorInvalidValue;
}
