// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions as operation graphs of cuDNN: one node, or two with a bias. Descriptors are made, used and destroyed in one
 * call; a plan keeps its own and that of its engine's configuration.
 */
#include "kernels/cuda/dnn/plan.h"

#define CONFIGS	      128 /* that are tried, best first; the first tens are of TF32 */
#define WORKSPACE_MAX ((int64_t)256 << 20) /* as much as columns may have, see conv.c */

/* ---- descriptors ---- */

/* Descriptors that are destroyed together. After a failure the others of its functions do nothing. */
struct builder {
	const struct cudnn *dnn;
	int status;
	int count;
	void *made[16 + 2 * CONFIGS];
};

static void *make(struct builder *b, int type)
{
	void *d = NULL;

	if (!b->status)
		b->status = b->dnn->create_descriptor(type, &d);
	if (b->status)
		return NULL;
	b->made[b->count++] = d;
	return d;
}

static void set(struct builder *b, void *d, int name, int type, int64_t count, const void *values)
{
	if (!b->status)
		b->status = b->dnn->set_attribute(d, name, type, count, values);
}

static void set_int(struct builder *b, void *d, int name, int64_t value)
{
	set(b, d, name, CUDNN_TYPE_INT64, 1, &value);
}

/* Enumerators have the size of an int. */
static void set_enum(struct builder *b, void *d, int name, int type, int value)
{
	set(b, d, name, type, 1, &value);
}

static void set_descriptor(struct builder *b, void *d, int name, void *value)
{
	set(b, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finish(struct builder *b, void *d)
{
	if (!b->status)
		b->status = b->dnn->finalize(d);
}

static void destroy_all(struct builder *b)
{
	while (b->count)
		b->dnn->destroy_descriptor(b->made[--b->count]);
}

/* Leaves the descriptor to the caller. */
static void keep(struct builder *b, const void *d)
{
	for (int i = 0; i < b->count; i++)
		if (b->made[i] == d)
			b->made[i] = b->made[--b->count];
}

/* ---- the operation graph ---- */

static int compute_type(const struct dnn_conv *v)
{
	return v->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

static void *tensor_of(struct builder *b, const struct dnn_conv *v, int id, const int64_t *sizes)
{
	const bool is_virtual = id == DNN_VIRTUAL;
	const int n = v->spatial + 2;
	int64_t strides[5];
	void *t = make(b, CUDNN_TENSOR);

	strides[n - 1] = 1;
	for (int d = n - 2; d >= 0; d--)
		strides[d] = strides[d + 1] * sizes[d + 1];
	set_enum(b, t, CUDNN_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
		 is_virtual ? compute_type(v) : v->type);
	set(b, t, CUDNN_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, n, sizes);
	set(b, t, CUDNN_TENSOR_STRIDES, CUDNN_TYPE_INT64, n, strides);
	set_int(b, t, CUDNN_TENSOR_UNIQUE_ID, id);
	set_int(b, t, CUDNN_TENSOR_BYTE_ALIGNMENT, v->alignment);
	if (is_virtual)
		set(b, t, CUDNN_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
	finish(b, t);
	return t;
}

static void *convolution_of(struct builder *b, const struct dnn_conv *v)
{
	void *c = make(b, CUDNN_CONVOLUTION);

	set_enum(b, c, CUDNN_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute_type(v));
	set_enum(b, c, CUDNN_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
		 CUDNN_CROSS_CORRELATION);
	set_int(b, c, CUDNN_CONVOLUTION_SPATIAL_DIMS, v->spatial);
	set(b, c, CUDNN_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, v->spatial, v->dilation);
	set(b, c, CUDNN_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, v->spatial, v->stride);
	set(b, c, CUDNN_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, v->spatial, v->padding);
	set(b, c, CUDNN_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, v->spatial, v->padding);
	finish(b, c);
	return c;
}

/* Names of the attributes of each direction. */
static const struct direction {
	int type, alpha, beta, desc, x, w, y;
} directions[] = {
	[DNN_FORWARD] = { CUDNN_OPERATION_CONVOLUTION_FORWARD, CUDNN_FORWARD_ALPHA,
			  CUDNN_FORWARD_BETA, CUDNN_FORWARD_CONV_DESC, CUDNN_FORWARD_X,
			  CUDNN_FORWARD_W, CUDNN_FORWARD_Y },
	[DNN_INPUT] = { CUDNN_OPERATION_CONVOLUTION_BACKWARD_DATA, CUDNN_BWD_DATA_ALPHA,
			CUDNN_BWD_DATA_BETA, CUDNN_BWD_DATA_CONV_DESC, CUDNN_BWD_DATA_DX,
			CUDNN_BWD_DATA_W, CUDNN_BWD_DATA_DY },
	[DNN_WEIGHT] = { CUDNN_OPERATION_CONVOLUTION_BACKWARD_FILTER, CUDNN_BWD_FILTER_ALPHA,
			 CUDNN_BWD_FILTER_BETA, CUDNN_BWD_FILTER_CONV_DESC, CUDNN_BWD_FILTER_X,
			 CUDNN_BWD_FILTER_DW, CUDNN_BWD_FILTER_DY },
};

/* y: of the convolution, which is virtual before a bias. */
static void *operation_of(struct builder *b, const struct dnn_conv *v, void *y)
{
	const struct direction *names = &directions[v->kind];
	const bool wide = v->type == CUDNN_DATA_DOUBLE;
	const double alpha = 1, beta = 0;
	const float alpha32 = 1, beta32 = 0;
	const int scale = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
	void *x = tensor_of(b, v, DNN_X, v->x), *w = tensor_of(b, v, DNN_W, v->w);
	void *convolution = convolution_of(b, v), *op = make(b, names->type);

	set_descriptor(b, op, names->x, x);
	set_descriptor(b, op, names->w, w);
	set_descriptor(b, op, names->y, y);
	set_descriptor(b, op, names->desc, convolution);
	set(b, op, names->alpha, scale, 1, wide ? (const void *)&alpha : &alpha32);
	set(b, op, names->beta, scale, 1, wide ? (const void *)&beta : &beta32);
	finish(b, op);
	return op;
}

/* y = sum + bias for each channel. */
static void *bias_of(struct builder *b, const struct dnn_conv *v, void *sum)
{
	const int64_t sizes[5] = { 1, v->y[1], 1, 1, 1 };
	void *y = tensor_of(b, v, DNN_Y, v->y), *bias = tensor_of(b, v, DNN_BIAS, sizes);
	void *add = make(b, CUDNN_POINTWISE), *op;

	set_enum(b, add, CUDNN_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
	set_enum(b, add, CUDNN_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute_type(v));
	finish(b, add);
	op = make(b, CUDNN_OPERATION_POINTWISE);
	set_descriptor(b, op, CUDNN_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
	set_descriptor(b, op, CUDNN_OPERATION_POINTWISE_XDESC, sum);
	set_descriptor(b, op, CUDNN_OPERATION_POINTWISE_BDESC, bias);
	set_descriptor(b, op, CUDNN_OPERATION_POINTWISE_YDESC, y);
	finish(b, op);
	return op;
}

static void *graph_of(struct builder *b, void *handle, const struct dnn_conv *v)
{
	void *y = tensor_of(b, v, v->biased ? DNN_VIRTUAL : DNN_Y, v->y), *graph;
	void *ops[2] = { operation_of(b, v, y), v->biased ? bias_of(b, v, y) : NULL };

	graph = make(b, CUDNN_OPERATIONGRAPH);
	set(b, graph, CUDNN_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	set(b, graph, CUDNN_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, v->biased ? 2 : 1,
	    ops);
	finish(b, graph);
	return graph;
}

/* ---- the engine ---- */

/*
 * An engine of which cuDNN notes something else than the use of tensor cores may give other bits in each call, sums in a
 * reduced precision, or is a transform (FFT, Winograd), where one NaN spreads to results that do not depend on it. Tensor
 * cores compute f32 in TF32.
 */
static bool is_precise(const struct dnn_conv *v, const int *notes, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		const bool tensor_core = notes[i] == CUDNN_NOTE_TENSOR_CORE;

		if (notes[i] != CUDNN_NOTE_STRICT_NAN_PROP &&
		    !(tensor_core && v->type != CUDNN_DATA_FLOAT))
			return false;
	}
	return true;
}

/* Runtime compilation would cost a call of a new shape up to seconds. */
static bool is_usable(struct builder *b, const struct dnn_conv *v, void *config)
{
	int numerical[CUDNN_NOTES] = { 0 }, behavior[CUDNN_NOTES] = { 0 };
	void *engine = make(b, CUDNN_ENGINE);
	int64_t count = 0;

	if (b->status ||
	    b->dnn->get_attribute(config, CUDNN_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
				  &count, &engine) ||
	    b->dnn->get_attribute(engine, CUDNN_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
				  CUDNN_NOTES, &count, numerical) ||
	    count > CUDNN_NOTES || !is_precise(v, numerical, count) ||
	    b->dnn->get_attribute(engine, CUDNN_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
				  CUDNN_NOTES, &count, behavior) ||
	    count > CUDNN_NOTES)
		return false;
	for (int64_t i = 0; i < count; i++)
		if (behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)
			return false;
	return true;
}

/* A status of cuDNN. A configuration may be refused here although the heuristics name it. */
static int plan_of(const struct cudnn *dnn, void *handle, void *config, struct dnn_plan *plan)
{
	struct builder b = { .dnn = dnn };
	void *p = make(&b, CUDNN_EXECUTION_PLAN);
	int64_t count = 0, workspace = 0;

	set(&b, p, CUDNN_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	set_descriptor(&b, p, CUDNN_EXECUTION_PLAN_ENGINE_CONFIG, config);
	finish(&b, p);
	if (!b.status)
		b.status = dnn->get_attribute(p, CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE,
					      CUDNN_TYPE_INT64, 1, &count, &workspace);
	if (!b.status && workspace > WORKSPACE_MAX)
		b.status = CUDNN_NOT_SUPPORTED;
	if (!b.status) {
		keep(&b, p);
		*plan = (struct dnn_plan){ p, config, workspace };
	}
	destroy_all(&b);
	return b.status;
}

static int choose(struct builder *b, void *handle, const struct dnn_conv *v, void *graph, int mode,
		  struct dnn_plan *plan)
{
	void *configs[CONFIGS], *heuristics = make(b, CUDNN_ENGINEHEUR);
	int64_t count = 0;

	set_descriptor(b, heuristics, CUDNN_ENGINEHEUR_OPERATION_GRAPH, graph);
	set_enum(b, heuristics, CUDNN_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
	finish(b, heuristics);
	for (int i = 0; i < CONFIGS; i++)
		configs[i] = make(b, CUDNN_ENGINECFG);
	if (!b->status)
		b->status = b->dnn->get_attribute(heuristics, CUDNN_ENGINEHEUR_RESULTS,
						  CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, &count,
						  configs);
	if (b->status)
		return b->status;
	for (int64_t i = 0; i < count && i < CONFIGS; i++) {
		int status = CUDNN_NOT_SUPPORTED;

		if (is_usable(b, v, configs[i]))
			status = plan_of(b->dnn, handle, configs[i], plan);
		if (!status)
			keep(b, configs[i]);
		if (!status || dnn_is_out_of_memory(status))
			return status;
	}
	return CUDNN_NOT_SUPPORTED;
}

int dnn_make_plan(const struct cudnn *dnn, void *handle, const struct dnn_conv *v,
		  struct dnn_plan *plan)
{
	static const int modes[] = { CUDNN_HEUR_A, CUDNN_HEUR_FALLBACK };
	int status = CUDNN_NOT_SUPPORTED;

	for (size_t i = 0; i < ARRAY_SIZE(modes) && status && !dnn_is_out_of_memory(status); i++) {
		struct builder b = { .dnn = dnn };
		void *graph = graph_of(&b, handle, v);

		status = choose(&b, handle, v, graph, modes[i], plan);
		destroy_all(&b);
	}
	return status;
}

void dnn_free_plan(const struct cudnn *dnn, struct dnn_plan *plan)
{
	dnn->destroy_descriptor(plan->plan);
	dnn->destroy_descriptor(plan->config);
}

/* ---- execution ---- */

int dnn_execute(const struct cudnn *dnn, void *handle, const struct dnn_plan *plan,
		const struct dnn_conv *v, void *const *tensors, void *workspace)
{
	static const int64_t ids[] = { DNN_X, DNN_W, DNN_Y, DNN_BIAS };
	const int count = v->biased ? 4 : 3;
	struct builder b = { .dnn = dnn };
	void *pack = make(&b, CUDNN_VARIANT_PACK);

	set(&b, pack, CUDNN_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
	set(&b, pack, CUDNN_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, tensors);
	set(&b, pack, CUDNN_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
	finish(&b, pack);
	if (!b.status)
		b.status = dnn->execute(handle, plan->plan, pack);
	destroy_all(&b);
	return b.status;
}
