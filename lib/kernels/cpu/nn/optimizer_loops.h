/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A step for a block of a parameter of type T (no include guard). The includer defines T, SQRT and
 * LOOP(name). g is a copy of the gradient with the sign of maximize and with the weight decay; the
 * tensor of the gradient does not change, except by s->scale.
 */

static void LOOP(gradient)(const struct optimizer_step *s, T *g, T *grad, T *param, int64_t n)
{
	T scale = (T)s->scale, decay = (T)s->weight_decay, shrink = (T)(s->lr * s->weight_decay);

	if (s->scale != 1)
		IVDEP for (int64_t i = 0; i < n; i++) grad[i] /= scale;
	IVDEP for (int64_t i = 0; i < n; i++) g[i] = s->maximize ? -grad[i] : grad[i];
	if (s->weight_decay == 0)
		return;
	if (s->decoupled)
		IVDEP for (int64_t i = 0; i < n; i++) param[i] -= shrink * param[i];
	else
		IVDEP for (int64_t i = 0; i < n; i++) g[i] += decay * param[i];
}

static void LOOP(adam)(const struct optimizer_step *s, const T *g, T *param, T *const *state,
		       int64_t n)
{
	T *mean = state[0], *square = state[1], *greatest = state[2];
	T size = (T)(s->lr / (1 - pow(s->beta1, s->step)));
	T root = (T)sqrt(1 - pow(s->beta2, s->step));
	T beta2 = (T)s->beta2, one1 = (T)(1 - s->beta1), one2 = (T)(1 - s->beta2), eps = (T)s->eps;

	IVDEP for (int64_t i = 0; i < n; i++)
	{
		mean[i] += one1 * (g[i] - mean[i]);
		square[i] = beta2 * square[i] + one2 * g[i] * g[i];
	}
	if (greatest) {
		IVDEP for (int64_t i = 0; i < n; i++)
		{
			bool keep = greatest[i] > square[i] || greatest[i] != greatest[i];

			greatest[i] = keep ? greatest[i] : square[i];
		}
		square = greatest;
	}
	IVDEP for (int64_t i = 0; i < n; i++)
	{
		param[i] -= size * mean[i] / (SQRT(square[i]) / root + eps);
	}
}

static void LOOP(sgd)(const struct optimizer_step *s, T *g, T *param, T *const *state, int64_t n)
{
	T *buffer = state[0], momentum = (T)s->momentum, part = (T)(1 - s->dampening),
	  lr = (T)s->lr;

	if (buffer) {
		IVDEP for (int64_t i = 0; i < n; i++)
		{
			buffer[i] = s->first ? g[i] : momentum * buffer[i] + part * g[i];
			g[i] = s->nesterov ? g[i] + momentum * buffer[i] : buffer[i];
		}
	}
	IVDEP for (int64_t i = 0; i < n; i++) param[i] -= lr * g[i];
}

static void LOOP(adagrad)(const struct optimizer_step *s, const T *g, T *param, T *const *state,
			  int64_t n)
{
	T *sum = state[0], lr = (T)(s->lr / (1 + (s->step - 1) * s->lr_decay)), eps = (T)s->eps;

	IVDEP for (int64_t i = 0; i < n; i++)
	{
		sum[i] += g[i] * g[i];
		param[i] -= lr * g[i] / (SQRT(sum[i]) + eps);
	}
}

static void LOOP(block)(const struct optimizer_step *s, T *param, T *grad, T *const *state,
			int64_t n)
{
	T g[BLOCK];

	LOOP(gradient)(s, g, grad, param, n);
	switch (s->method) {
	case OPTIMIZER_ADAM:
		LOOP(adam)(s, g, param, state, n);
		break;
	case OPTIMIZER_SGD:
		LOOP(sgd)(s, g, param, state, n);
		break;
	case OPTIMIZER_ADAGRAD:
		LOOP(adagrad)(s, g, param, state, n);
		break;
	}
}

/* Elements begin to end of tensors of this dtype. */
static void LOOP(range)(int64_t begin, int64_t end, void *ctx)
{
	const struct optimizer_step *s = ctx;

	for (int64_t i = begin; i < end; i += BLOCK) {
		T *state[OPTIMIZER_STATES], *param = (T *)s->param + i, *grad = (T *)s->grad + i;

		for (int k = 0; k < OPTIMIZER_STATES; k++)
			state[k] = s->state[k] ? (T *)s->state[k] + i : NULL;
		LOOP(block)(s, param, grad, state, end - i < BLOCK ? end - i : BLOCK);
	}
}
