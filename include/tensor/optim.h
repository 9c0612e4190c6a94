/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Training steps: optimizers over groups of parameters, learning-rate schedules, clipping of gradients, averages of
 * parameters. docs/reference/training.md has an introduction.
 *
 * An optimizer, an average or a scaler is used by one thread at a time.
 */
#ifndef TENSOR_OPTIM_H
#define TENSOR_OPTIM_H

#include <tensor/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimizers ---- */

enum tensor_optim_method {
	TENSOR_OPTIM_NONE = 0,
	TENSOR_OPTIM_SGD,
	TENSOR_OPTIM_ADAM,
	TENSOR_OPTIM_ADAMW,
	TENSOR_OPTIM_ADAGRAD,
	TENSOR_OPTIM_RMSPROP,
	TENSOR_OPTIM_COUNT
};

/* The number 0 in a field whose 0 means a default that is not 0. */
#define TENSOR_OPTIM_ZERO (-1.0)

/* A field that is 0 has PyTorch's default, which is 0 where none is given here. Fields that a method does not
 * read are ignored. */
typedef struct tensor_optim_options {
	uint8_t method TENSOR_ZERO_; /* enum tensor_optim_method */
	bool maximize TENSOR_ZERO_;  /* go up the gradient */
	bool nesterov TENSOR_ZERO_;  /* SGD; needs momentum and no dampening */
	bool amsgrad TENSOR_ZERO_;   /* Adam, AdamW */
	bool centered TENSOR_ZERO_;  /* RMSprop */
	uint8_t reserved[3] TENSOR_ZERO_;
	double lr TENSOR_ZERO_;			 /* 0.001; Adagrad, RMSprop: 0.01 */
	double weight_decay TENSOR_ZERO_;	 /* AdamW: 0.01 */
	double momentum TENSOR_ZERO_;		 /* SGD, RMSprop */
	double dampening TENSOR_ZERO_;		 /* SGD */
	double beta1 TENSOR_ZERO_;		 /* Adam, AdamW: 0.9 */
	double beta2 TENSOR_ZERO_;		 /* Adam, AdamW: 0.999 */
	double eps TENSOR_ZERO_;		 /* 1e-8; Adagrad: 1e-10 */
	double alpha TENSOR_ZERO_;		 /* RMSprop: 0.99 */
	double lr_decay TENSOR_ZERO_;		 /* Adagrad */
	double initial_accumulator TENSOR_ZERO_; /* Adagrad */
} tensor_optim_options;

/* TENSOR_ADAMW(.lr = 3e-4, .weight_decay = 0.1) */
#define TENSOR_SGD(...)	    TENSOR_OPTIM_OPTIONS_(TENSOR_OPTIM_SGD, __VA_ARGS__)
#define TENSOR_ADAM(...)    TENSOR_OPTIM_OPTIONS_(TENSOR_OPTIM_ADAM, __VA_ARGS__)
#define TENSOR_ADAMW(...)   TENSOR_OPTIM_OPTIONS_(TENSOR_OPTIM_ADAMW, __VA_ARGS__)
#define TENSOR_ADAGRAD(...) TENSOR_OPTIM_OPTIONS_(TENSOR_OPTIM_ADAGRAD, __VA_ARGS__)
#define TENSOR_RMSPROP(...) TENSOR_OPTIM_OPTIONS_(TENSOR_OPTIM_RMSPROP, __VA_ARGS__)
#ifdef __cplusplus
#define TENSOR_OPTIM_OPTIONS_(METHOD, ...) (tensor_optim_options{ .method = METHOD, __VA_ARGS__ })
#else
#define TENSOR_OPTIM_OPTIONS_(METHOD, ...) ((tensor_optim_options){ .method = METHOD, __VA_ARGS__ })
#endif

typedef struct tensor_optim tensor_optim;

/*
 * An optimizer of these parameters, which are group 0. It keeps a reference to each: leaves of a floating or complex
 * dtype, each at most once in all groups. Owned by the caller; NULL with the error set: EINVAL for a parameter that is
 * no leaf, not strided, not writable, of another dtype, or given twice, and for options out of range.
 */
tensor_optim *tensor_optim_new(tensor_list_arg params, tensor_optim_options options);
void tensor_optim_free(tensor_optim *o); /* NULL is ignored */
/* Add a group with options of its own, of the same method. Returns its number, or -errno. */
int tensor_optim_add_group(tensor_optim *o, tensor_list_arg params, tensor_optim_options options);

/*
 * Change every parameter that has a gradient, with one call of a fused operator for each group. Nothing is recorded.
 * 0 or -errno: EOPNOTSUPP for a sparse gradient, ENOMEM; groups before the failing one are then changed. State is
 * allocated in the first step of a parameter.
 */
int tensor_optim_step(tensor_optim *o);
/* Remove the gradients of all parameters. 0 or -errno. */
int tensor_optim_zero_grad(tensor_optim *o);

/* Number of groups, and of the parameters of one; -1 for NULL or a group that does not exist. */
int tensor_optim_groups(const tensor_optim *o);
int64_t tensor_optim_group_size(const tensor_optim *o, int group);
/* Parameter i of a group, borrowed; NULL if there is none. */
tensor *tensor_optim_param(const tensor_optim *o, int group, int64_t i);
/* The learning rate of a group; NaN with the error set for a group that does not exist. */
double tensor_optim_lr(const tensor_optim *o, int group);
/* Set the learning rate of a group, or of all for group -1; lr >= 0. 0 or -errno. */
int tensor_optim_set_lr(tensor_optim *o, int group, double lr);
/* The options of a group, with defaults filled in; 0 as a number is TENSOR_OPTIM_ZERO where that is not the default.
 * 0 or -errno. */
int tensor_optim_get_options(const tensor_optim *o, int group, tensor_optim_options *options);
/* Replace them; the method stays. 0 or -errno. */
int tensor_optim_set_options(tensor_optim *o, int group, tensor_optim_options options);

/*
 * State: tensors called "GROUP.PARAMETER.KEY" ("0.3.exp_avg"), with the keys of PyTorch: step (0-d f32), momentum_buffer;
 * step, exp_avg, exp_avg_sq, max_exp_avg_sq; step, sum; square_avg, grad_avg, momentum_buffer. A parameter that was in no
 * step has none. The tensors have the shape, dtype and device of the parameter.
 */
int64_t tensor_optim_state_count(const tensor_optim *o); /* 0 for NULL */
/* State tensor i, borrowed until the next call for this optimizer, as is its name. 0 or -errno. */
int tensor_optim_state_at(tensor_optim *o, int64_t i, struct tensor_named *state);
/* A state tensor by its key, borrowed; NULL without an error if the parameter has none. */
tensor *tensor_optim_state(const tensor_optim *o, int group, int64_t i, const char *key);
/*
 * Replace the whole state by copies of these tensors. Every tensor must be one of the optimizer's with its shape and
 * dtype, and a parameter that has one must have all of its method. After a failure nothing is changed. 0 or -errno.
 */
int tensor_optim_load_state(tensor_optim *o, const struct tensor_named *state, int64_t n);

/*
 * tensor_share_memory() for every state tensor, and for those that the first step would make: a child process that is
 * forked then, and steps on parameters in shared memory (tensor_module_share_memory()), uses the same state. 0 or -errno:
 * EINVAL for SGD with dampening before its first step, in which the buffer becomes the gradient.
 */
int tensor_optim_share_memory(tensor_optim *o);

/*
 * Save state and options to a safetensors file, and load them: training goes on bit for bit as without it. Loading
 * needs the same method, number of groups and shapes of parameters; after a failure nothing is changed. The parameters
 * themselves are not in the file. 0 or -errno: EINVAL for a file of another optimizer, EBADMSG, or that of a system call.
 */
int tensor_optim_save(tensor_optim *o, const char *path);
int tensor_optim_load(tensor_optim *o, const char *path);

/* ---- learning-rate schedules ---- */

enum tensor_schedule_kind {
	TENSOR_SCHEDULE_CONSTANT = 0,
	TENSOR_SCHEDULE_STEP,	     /* times gamma after every `steps` steps */
	TENSOR_SCHEDULE_MULTI_STEP,  /* times gamma at each of `milestones` */
	TENSOR_SCHEDULE_EXPONENTIAL, /* times gamma in each step */
	TENSOR_SCHEDULE_LINEAR, /* from start_factor to end_factor in `steps` steps, then constant */
	TENSOR_SCHEDULE_COSINE,	   /* down to min_lr in `steps` steps, and up again after that */
	TENSOR_SCHEDULE_ONE_CYCLE, /* up to the group's rate and down, in `steps` steps */
	TENSOR_SCHEDULE_COUNT
};

/*
 * A learning rate as a function of the number of steps taken: there is no state besides that number. A field that is
 * 0 has PyTorch's default; TENSOR_OPTIM_ZERO is the number 0.
 */
typedef struct tensor_schedule {
	uint8_t kind TENSOR_ZERO_;     /* enum tensor_schedule_kind */
	bool linear TENSOR_ZERO_;      /* one-cycle: straight lines, not cosines */
	bool three_phase TENSOR_ZERO_; /* one-cycle: symmetric, then down to the end */
	uint8_t reserved[5] TENSOR_ZERO_;
	/* Before `kind` begins: `warmup` steps in a straight line from warmup_factor (1/3) times the group's rate. */
	int64_t warmup TENSOR_ZERO_;
	double warmup_factor TENSOR_ZERO_;
	int64_t steps TENSOR_ZERO_; /* needed, but for constant, multi-step and exponential */
	tensor_ints milestones
		TENSOR_ZERO_;		  /* ascending; borrowed as long as the schedule is used */
	double gamma TENSOR_ZERO_;	  /* 0.1; needed for exponential */
	double start_factor TENSOR_ZERO_; /* linear: 1/3 */
	double end_factor TENSOR_ZERO_;	  /* linear: 1 */
	double min_lr TENSOR_ZERO_;	  /* cosine */
	double pct_start TENSOR_ZERO_;	  /* one-cycle: the part of the steps that goes up, 0.3 */
	double div_factor
		TENSOR_ZERO_; /* one-cycle: begins at the group's rate divided by this, 25 */
	double final_div_factor
		TENSOR_ZERO_; /* one-cycle: ends at the first rate divided by this, 1e4 */
} tensor_schedule;

/* The learning rate after `step` >= 0 steps, for a group whose rate is lr. NaN with the error set: EINVAL for fields out
 * of range, or a step after the end of a one-cycle schedule; ERANGE for a rate that is not finite. */
double tensor_schedule_lr(const tensor_schedule *s, double lr, int64_t step);
/* Set the rate of each group: call it with 0 before the first step, and with the number of steps after each. A
 * group's own rate is that of the options it was made with, which the optimizer's file contains. 0 or -errno. */
int tensor_schedule_apply(const tensor_schedule *s, tensor_optim *o, int64_t step);

/* Lower the rate when a measure stops improving. The first six fields are options, 0 for PyTorch's defaults; the
 * others are the state, zero at first: a copy of the struct is a complete save. */
typedef struct tensor_plateau {
	double factor TENSOR_ZERO_; /* 0.1 */
	double threshold
		TENSOR_ZERO_; /* 1e-4; an improvement is at least this part of the best value */
	double min_lr TENSOR_ZERO_;
	int64_t patience TENSOR_ZERO_; /* 10; -1: none */
	int64_t cooldown TENSOR_ZERO_; /* epochs after a change that count no bad ones */
	bool maximize TENSOR_ZERO_,
		absolute TENSOR_ZERO_; /* absolute: the threshold is a difference */
	bool begun TENSOR_ZERO_;
	uint8_t reserved[5] TENSOR_ZERO_;
	double best TENSOR_ZERO_;
	int64_t bad TENSOR_ZERO_, cooling TENSOR_ZERO_;
} tensor_plateau;

/* Record the measure of an epoch. Returns 1 if the rates were lowered, 0 if not, or -errno. */
int tensor_plateau_step(tensor_plateau *p, tensor_optim *o, double measure);

/* ---- gradients of a list of parameters ---- */

/*
 * Multiply the gradients by max_norm / (norm + 1e-6) if that is less than 1, where the norm is that of all elements
 * together, of order norm_type: 1, 2, infinity or another number above 0. Parameters without a gradient are skipped;
 * each is given once.
 * *norm is the norm before; NULL to ignore it. With error_if_nonfinite, a norm that is not finite is EDOM and
 * nothing is changed. 0 or -errno.
 */
int tensor_clip_grad_norm_(tensor_list_arg params, double max_norm, double norm_type,
			   bool error_if_nonfinite, double *norm);
/* Clamp each element of the gradients to -limit and limit >= 0. 0 or -errno. */
int tensor_clip_grad_value_(tensor_list_arg params, double limit);

/* ---- averages of parameters ---- */

typedef struct tensor_ema tensor_ema;

/*
 * An exponential moving average, which begins as a copy of the parameters: each update sets it to decay * average +
 * (1 - decay) * parameter; 0 <= decay < 1. Keeps a reference to each parameter. Owned by the caller; NULL with the
 * error set.
 */
tensor_ema *tensor_ema_new(tensor_list_arg params, double decay);
void tensor_ema_free(tensor_ema *e); /* NULL is ignored; swap the parameters back before */
/* 0 or -errno: EBUSY while swapped. */
int tensor_ema_update(tensor_ema *e);
/* Exchange the values of parameters and averages: once to evaluate with the averages, and again to go on. 0 or -errno. */
int tensor_ema_swap(tensor_ema *e);
bool tensor_ema_is_swapped(const tensor_ema *e);
/* The i-th average, borrowed, to save it or to load it by tensor_copy_(); NULL if there is none. */
tensor *tensor_ema_average(const tensor_ema *e, int64_t i);

/* ---- mixed precision ---- */

/*
 * tensor_autocast(TENSOR_BF16) { ... }: operators inside convert their floating tensors on the CPU before they compute,
 * f64 excepted: matrix products, convolutions, linear and attention to bf16 (or f16), and operators that need the
 * range or the precision, such as losses, to f32; cat, stack and index_copy to the wider dtype of their tensors. The tags
 * autocast_lower, autocast_f32 and autocast_promote of a schema name them; all other operators are unchanged, as are
 * in-place operators and those called by a converted one. Conversions are recorded, so gradients have the dtype of the
 * leaf. The conversion of a leaf that requires a gradient is kept until the outermost scope ends, or until the leaf
 * is changed. Scopes nest; TENSOR_DTYPE_NONE turns conversion off inside. Call backward outside of the scope. The body
 * does not run after a failure: EINVAL for another dtype, ENOMEM.
 */
#define tensor_autocast(dtype) \
	TENSOR_AUTOCAST_(TENSOR_PASTE_(tensor_autocast_guard_, __COUNTER__), dtype)
#define TENSOR_AUTOCAST_(guard, dtype) TENSOR_AUTOCAST__(guard, dtype)
#define TENSOR_AUTOCAST__(guard, dtype)                                                      \
	for (struct tensor_autocast_guard guard                                              \
	     __attribute__((cleanup(tensor_autocast_leave))) = tensor_autocast_enter(dtype), \
	     *guard##_once = guard.entered ? &guard : NULL;                                  \
	     guard##_once; guard##_once = NULL)

struct tensor_autocast_guard {
	bool entered; /* false after a failure */
	bool active;  /* the state before */
	uint8_t dtype;
};
/* For bindings: C code uses tensor_autocast. Guards are left by the same thread in reverse order. */
struct tensor_autocast_guard tensor_autocast_enter(enum tensor_dtype dtype);
void tensor_autocast_leave(struct tensor_autocast_guard *guard);
/* The dtype of the innermost scope of this thread, TENSOR_DTYPE_NONE without one. */
enum tensor_dtype tensor_autocast_dtype(void);

/* ---- scale of gradients ---- */

/*
 * Gradients in f16 underflow. The loss is multiplied by a scale, and the gradients divided by it before the step; a
 * step whose gradients are not finite is left out and lowers the scale.
 */
typedef struct tensor_grad_scaler {
	double growth TENSOR_ZERO_, backoff TENSOR_ZERO_; /* factors: 2, 0.5 */
	int64_t interval TENSOR_ZERO_; /* steps with finite gradients before the scale grows: 2000 */
	double scale TENSOR_ZERO_;     /* the first scale: 65536 */
	/* State, zero at first: a copy of the struct after an update is a complete save. */
	int32_t finite_steps TENSOR_ZERO_;
	bool found_inf TENSOR_ZERO_; /* since the last update, of any optimizer */
	uint8_t reserved[3] TENSOR_ZERO_;
	uint64_t round TENSOR_ZERO_; /* 0 from an update to the next tensor_grad_scaler_unscale() */
} tensor_grad_scaler;

/* loss * scale, a recorded result; NULL with the error set. */
tensor *tensor_grad_scaler_scale(tensor_grad_scaler *s, tensor *loss);
/* Divide the gradients of all parameters by the scale, at most once for each optimizer between two updates: to clip them,
 * for example. 0 or -errno: EALREADY for another call before the update. */
int tensor_grad_scaler_unscale(tensor_grad_scaler *s, tensor_optim *o);
/* Unscale unless that was done, and step if all gradients of this optimizer are finite. Returns 1 if it stepped, 0 if
 * not, or -errno: EALREADY for another call before the update. */
int tensor_grad_scaler_step(tensor_grad_scaler *s, tensor_optim *o);
/* Set the scale for the next step, after the steps of all optimizers. 0 or -errno. */
int tensor_grad_scaler_update(tensor_grad_scaler *s);

#ifdef __cplusplus
}
#endif
#endif
