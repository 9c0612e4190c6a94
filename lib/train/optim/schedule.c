// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Learning rates as functions of the number of steps: the closed forms of PyTorch's schedulers. */
#include "train/optim/optim.h"

#include "dispatch/dispatch.h"

#include <math.h>

static double given(double v, double standard)
{
	return v == 0 ? standard : v == TENSOR_OPTIM_ZERO ? 0 : v;
}

static double power_of_steps(const tensor_schedule *s, int64_t step)
{
	double gamma = given(s->gamma, 0.1);
	int64_t n = step;

	if (s->kind == TENSOR_SCHEDULE_STEP)
		n = step / s->steps;
	if (s->kind == TENSOR_SCHEDULE_MULTI_STEP) {
		n = 0;
		for (int64_t i = 0; i < s->milestones.len; i++)
			n += s->milestones.data[i] <= step;
	}
	return pow(gamma, (double)n);
}

/* The cosine from `from` to `to`, or the straight line, after a part 0 to 1 of the way. */
static double between(const tensor_schedule *s, double from, double to, double part)
{
	if (s->linear)
		return from + (to - from) * part;
	return to + (from - to) / 2 * (1 + cos(M_PI * part));
}

static double one_cycle(const tensor_schedule *s, double lr, int64_t step)
{
	double up = given(s->pct_start, 0.3) * (double)s->steps - 1, last = (double)s->steps - 1;
	double first = lr / given(s->div_factor, 25),
	       final = first / given(s->final_div_factor, 1e4), at = (double)step, down = 2 * up;

	if (at <= up)
		return between(s, first, lr, up > 0 ? at / up : 1);
	if (!s->three_phase)
		return between(s, lr, final, (at - up) / (last - up));
	if (at <= down)
		return between(s, lr, first, (at - up) / up);
	return between(s, first, final, (at - down) / (last - down));
}

static double after_warmup(const tensor_schedule *s, double lr, int64_t step)
{
	double part = s->steps ? (double)step / (double)s->steps : 0, start, end, least;

	switch (s->kind) {
	case TENSOR_SCHEDULE_STEP:
	case TENSOR_SCHEDULE_MULTI_STEP:
	case TENSOR_SCHEDULE_EXPONENTIAL:
		return lr * power_of_steps(s, step);
	case TENSOR_SCHEDULE_LINEAR:
		start = given(s->start_factor, 1 / 3.);
		end = given(s->end_factor, 1);
		return lr * (start + (end - start) * fmin(part, 1));
	case TENSOR_SCHEDULE_COSINE:
		least = given(s->min_lr, 0);
		return least + (lr - least) * (1 + cos(M_PI * part)) / 2;
	case TENSOR_SCHEDULE_ONE_CYCLE:
		return one_cycle(s, lr, step);
	default:
		return lr;
	}
}

static int check_milestones(const char *caller, tensor_ints list)
{
	if (list.len < 0 || (list.len && !list.data))
		return wrong_list_code(caller, "milestones");
	for (int64_t i = 0; i + 1 < list.len; i++)
		if (list.data[i] > list.data[i + 1])
			return tensor_fail(EINVAL, "%s: milestones are not ascending", caller);
	return 0;
}

static int check(const char *caller, const tensor_schedule *s, int64_t step)
{
	const double *numbers = s ? &s->gamma : NULL; /* to the end of the struct */
	size_t n = (sizeof(*s) - offsetof(tensor_schedule, gamma)) / sizeof(double);

	if (!s)
		return tensor_fail(EINVAL, "%s: the schedule is NULL", caller);
	if (s->kind >= TENSOR_SCHEDULE_COUNT)
		return tensor_fail(EINVAL, "%s: there is no schedule %d", caller, s->kind);
	if (step < 0 || s->warmup < 0 || s->steps < 0)
		return tensor_fail(EINVAL, "%s: a number of steps is negative", caller);
	for (size_t i = 0; i < n; i++)
		if (!isfinite(numbers[i]) || (numbers[i] < 0 && numbers[i] != TENSOR_OPTIM_ZERO))
			return tensor_fail(EINVAL, "%s: field %zu after gamma is %g", caller, i,
					   numbers[i]);
	if (!isfinite(s->warmup_factor) || given(s->warmup_factor, 1) < 0 ||
	    given(s->div_factor, 25) == 0 || given(s->final_div_factor, 1e4) == 0 ||
	    given(s->pct_start, 0.3) > 1)
		return tensor_fail(EINVAL, "%s: a factor is out of range", caller);
	if (!s->steps && s->kind != TENSOR_SCHEDULE_CONSTANT &&
	    s->kind != TENSOR_SCHEDULE_MULTI_STEP && s->kind != TENSOR_SCHEDULE_EXPONENTIAL)
		return tensor_fail(EINVAL, "%s: this kind of schedule needs `steps`", caller);
	if (!s->gamma && s->kind == TENSOR_SCHEDULE_EXPONENTIAL)
		return tensor_fail(EINVAL, "%s: this kind of schedule needs gamma", caller);
	if (s->kind == TENSOR_SCHEDULE_ONE_CYCLE && step - s->warmup >= s->steps)
		return tensor_fail(EINVAL, "%s: step %lld of a schedule of %lld", caller,
				   (long long)step, (long long)s->steps);
	return check_milestones(caller, s->milestones);
}

static double schedule_lr(const tensor_schedule *s, double lr, int64_t step)
{
	double first = given(s->warmup_factor, 1 / 3.);

	if (step < s->warmup)
		return lr * (first + (1 - first) * (double)step / (double)s->warmup);
	return after_warmup(s, lr, step - s->warmup);
}

/* A rate that is not finite could not be stored with the optimizer. */
static int finite_lr(const char *caller, const tensor_schedule *s, double lr, int64_t step,
		     double *next)
{
	*next = schedule_lr(s, lr, step);
	return isfinite(*next) ? 0 :
				 tensor_fail(ERANGE, "%s: the rate %g becomes %g after %lld steps",
					     caller, lr, *next, (long long)step);
}

TENSOR_EXPORT double tensor_schedule_lr(const tensor_schedule *s, double lr, int64_t step)
{
	double next;

	return check("schedule_lr", s, step) < 0 ||
			       finite_lr("schedule_lr", s, lr, step, &next) < 0 ?
		       NAN :
		       next;
}

TENSOR_EXPORT int tensor_schedule_apply(const tensor_schedule *s, tensor_optim *o, int64_t step)
{
	if (optim_absent("schedule_apply", o) || check("schedule_apply", s, step) < 0)
		return -thread()->error.code;
	for (int k = 0; k < o->ngroups; k++) {
		double next;

		if (finite_lr("schedule_apply", s, o->groups[k].initial_lr, step, &next) < 0)
			return -ERANGE;
	}
	for (int k = 0; k < o->ngroups; k++)
		o->groups[k].options.lr = schedule_lr(s, o->groups[k].initial_lr, step);
	return 0;
}

/* ---- plateau ---- */

static bool better(const tensor_plateau *p, double measure)
{
	double threshold = given(p->threshold, 1e-4), sign = p->maximize ? 1 : -1;
	double least = p->absolute ? p->best + sign * threshold : p->best * (1 + sign * threshold);

	if (!p->begun)
		return !isnan(measure);
	return p->maximize ? measure > least : measure < least;
}

static bool lower(const tensor_plateau *p, tensor_optim *o)
{
	for (int k = 0; k < o->ngroups; k++) {
		double *lr = &o->groups[k].options.lr, next = *lr * given(p->factor, 0.1);

		next = fmax(next, given(p->min_lr, 0));
		if (*lr - next > 1e-8) /* PyTorch's eps */
			*lr = next;
	}
	return true;
}

TENSOR_EXPORT int tensor_plateau_step(tensor_plateau *p, tensor_optim *o, double measure)
{
	if (!p)
		return tensor_fail(EINVAL, "plateau_step: the plateau is NULL");
	if (optim_absent("plateau_step", o))
		return -EINVAL;
	if (!(given(p->factor, 0.1) >= 0 && given(p->factor, 0.1) < 1) ||
	    !(given(p->min_lr, 0) >= 0) || !(given(p->threshold, 1e-4) >= 0) || p->patience < -1 ||
	    p->cooldown < 0)
		return tensor_fail(EINVAL, "plateau_step: an option is out of range");
	if (better(p, measure)) {
		p->best = measure;
		p->begun = true;
		p->bad = 0;
	} else {
		p->bad++;
	}
	if (p->cooling > 0) {
		p->cooling--;
		p->bad = 0;
	}
	if (p->bad <= (p->patience == -1 ? 0 : p->patience ? p->patience : 10))
		return 0;
	p->cooling = p->cooldown;
	p->bad = 0;
	return lower(p, o);
}
