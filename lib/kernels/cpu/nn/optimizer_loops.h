/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A step for n elements of a parameter of type T (no include guard): each is read and written once.
 * The includer defines T, SQRT and LOOP(name). The tensor of the gradient changes by s->scale alone.
 */

/* Arguments of the loops of all methods, in type T. */
struct LOOP(rates) {
	T sign, decay, keep, lr, eps;
};

static struct LOOP(rates) LOOP(rates_of)(const struct optimizer_step *s)
{
	return (struct LOOP(rates)){ .sign = s->maximize ? -1 : 1,
				     .decay = s->decoupled ? 0 : (T)s->weight_decay,
				     .keep = s->decoupled ? (T)(1 - s->lr * s->weight_decay) : 1,
				     .lr = (T)s->lr,
				     .eps = (T)s->eps };
}

/* The gradient of element i with its sign and weight decay. The condition is the same in all iterations; it keeps
 * an infinite parameter from making the gradient NaN. */
#define GRADIENT(r) \
	((r).decay != 0 ? (r).sign * grad[i] + (r).decay * param[i] : (r).sign * grad[i])

static void LOOP(unscale)(const struct optimizer_step *s, T *grad, int64_t n)
{
	T scale = (T)s->scale;

	IVDEP for (int64_t i = 0; i < n; i++) grad[i] /= scale;
}

static void LOOP(adam)(const struct optimizer_step *s, double step, const T *grad, T *param,
		       T *const *state, int64_t n)
{
	const struct LOOP(rates) r = LOOP(rates_of)(s);
	T *mean = state[0], *square = state[1], *greatest = state[2];
	T size = (T)(s->lr / (1 - pow(s->beta1, step)));
	T root = (T)(1 / sqrt(1 - pow(s->beta2, step)));
	T beta2 = (T)s->beta2, one1 = (T)(1 - s->beta1), one2 = (T)(1 - s->beta2);

	if (greatest) {
		IVDEP for (int64_t i = 0; i < n; i++)
		{
			T g = GRADIENT(r), m = mean[i] + one1 * (g - mean[i]);
			T v = beta2 * square[i] + one2 * g * g, top = greatest[i];

			top = top > v || top != top ? top : v;
			mean[i] = m;
			square[i] = v;
			greatest[i] = top;
			param[i] = param[i] * r.keep - size * m / (SQRT(top) * root + r.eps);
		}
		return;
	}
	IVDEP for (int64_t i = 0; i < n; i++)
	{
		T g = GRADIENT(r), m = mean[i] + one1 * (g - mean[i]);
		T v = beta2 * square[i] + one2 * g * g;

		mean[i] = m;
		square[i] = v;
		param[i] = param[i] * r.keep - size * m / (SQRT(v) * root + r.eps);
	}
}

static void LOOP(sgd)(const struct optimizer_step *s, const T *grad, T *param, T *const *state,
		      int64_t n)
{
	const struct LOOP(rates) r = LOOP(rates_of)(s);
	T *buffer = state[0], momentum = (T)s->momentum, part = (T)(1 - s->dampening);

	if (!buffer) {
		IVDEP for (int64_t i = 0; i < n; i++) param[i] -= r.lr * GRADIENT(r);
	} else if (s->first) {
		T first = r.lr * (1 + (s->nesterov ? momentum : 0));

		IVDEP for (int64_t i = 0; i < n; i++)
		{
			T g = GRADIENT(r);

			buffer[i] = g;
			param[i] -= first * g;
		}
	} else {
		bool nesterov = s->nesterov;

		IVDEP for (int64_t i = 0; i < n; i++)
		{
			T g = GRADIENT(r), b = momentum * buffer[i] + part * g;

			buffer[i] = b;
			param[i] -= r.lr * (nesterov ? g + momentum * b : b);
		}
	}
}

static void LOOP(adagrad)(const struct optimizer_step *s, double step, const T *grad, T *param,
			  T *const *state, int64_t n)
{
	const struct LOOP(rates) r = LOOP(rates_of)(s);
	T *sum = state[0], lr = (T)(s->lr / (1 + (step - 1) * s->lr_decay));

	IVDEP for (int64_t i = 0; i < n; i++)
	{
		T g = GRADIENT(r), v = sum[i] + g * g;

		sum[i] = v;
		param[i] -= lr * g / (SQRT(v) + r.eps);
	}
}

static void LOOP(rmsprop)(const struct optimizer_step *s, const T *grad, T *param, T *const *state,
			  int64_t n)
{
	const struct LOOP(rates) r = LOOP(rates_of)(s);
	T *square = state[0], *mean = state[1], *buffer = state[2];
	T alpha = (T)s->alpha, part = (T)(1 - s->alpha), momentum = (T)s->momentum;

	for (int64_t begin = 0; begin < n; begin += BLOCK) {
		int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
		T d[BLOCK], variance[BLOCK];

		IVDEP for (int64_t i = begin; i < end; i++)
		{
			T g = GRADIENT(r), v = alpha * square[i] + part * g * g;

			d[i - begin] = g;
			square[i] = variance[i - begin] = v;
		}
		if (mean)
			IVDEP for (int64_t i = begin; i < end; i++)
			{
				T m = mean[i] + part * (d[i - begin] - mean[i]);

				mean[i] = m;
				variance[i - begin] -= m * m;
			}
		IVDEP for (int64_t i = 0; i < end - begin; i++) d[i] /= SQRT(variance[i]) + r.eps;
		if (buffer)
			IVDEP for (int64_t i = begin; i < end; i++)
			{
				buffer[i] = momentum * buffer[i] + d[i - begin];
				d[i - begin] = buffer[i];
			}
		IVDEP for (int64_t i = begin; i < end; i++) param[i] -= r.lr * d[i - begin];
	}
}
#undef GRADIENT

static void LOOP(block)(const struct optimizer_step *s, double step, T *param, T *grad,
			T *const *state, int64_t n)
{
	if (s->scale != 1)
		LOOP(unscale)(s, grad, n);
	switch (s->method) {
	case OPTIMIZER_ADAM:
		LOOP(adam)(s, step, grad, param, state, n);
		break;
	case OPTIMIZER_SGD:
		LOOP(sgd)(s, grad, param, state, n);
		break;
	case OPTIMIZER_ADAGRAD:
		LOOP(adagrad)(s, step, grad, param, state, n);
		break;
	case OPTIMIZER_RMSPROP:
		LOOP(rmsprop)(s, grad, param, state, n);
		break;
	}
}

/* Elements begin to end of a parameter of this dtype. */
static void LOOP(range)(const struct optimizer_step *s, const struct optimizer_item *item,
			int64_t begin, int64_t end)
{
	T *state[OPTIMIZER_STATES], *param = (T *)item->param + begin,
				    *grad = (T *)item->grad + begin;

	for (int k = 0; k < OPTIMIZER_STATES; k++)
		state[k] = item->state[k] ? (T *)item->state[k] + begin : NULL;
	LOOP(block)(s, item->step, param, grad, state, end - begin);
}
