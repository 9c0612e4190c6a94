// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Stands for cuDNN's graph API, as far as the plugin uses it: convolutions in each direction, the forward one with a bias.
 * The heuristics name engines that the plugin must not use before the one it may use: the others give wrong results, or are
 * refused when their plan is finalized. Some convolutions have no engine. Sums are computed in double.
 */
#include "descriptors.hpp"

#include "base/reduced_float.h"
#include "host.hpp"

#include <cmath>
#include <cstring>

enum engine {
	NONDETERMINISTIC,
	TF32,	  /* tensor cores, which are as precise as other units in other types than f32 */
	NARROWED, /* operands */
	REDUCED,  /* sums */
	WINOGRAD, /* also FFT: both spread a NaN */
	COMPILED, /* at runtime */
	REFUSED,  /* when its plan is finalized */
	LARGE,	  /* workspace */
	PRECISE,
};
enum : int64_t { WORKSPACE = 4096 };
enum { EACH = 4 };

struct note {
	int engine, note;
};
/* cudnnBackendNumericalNote_t */
static const note notes[] = {
	{ NONDETERMINISTIC, 4 }, { TF32, 0 },	  { NARROWED, 1 }, { REDUCED, 2 },
	{ WINOGRAD, 5 },	 { WINOGRAD, 3 }, { PRECISE, 9 },
};

struct handle {
	int device;
	cudaStream_t stream;
};

static std::map<void *, dnn_reference> &descriptors = *new std::map<void *, dnn_reference>();

#define DNN()                     \
	host_call call(__func__); \
	if (call.injected)        \
	return call.injected

dnn_reference &dnn_find(void *descriptor)
{
	auto at = descriptors.find(descriptor);

	if (at == descriptors.end())
		host_fatal("cuDNN: %p is no descriptor", descriptor);
	return at->second;
}

extern "C" const char *cudnnGetErrorString(int status)
{
	return status == CUDNN_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS of the stand-in";
}

extern "C" int cudnnCreate(void **to)
{
	DNN();
	if (host_may_be_unsafe() != cudaSuccess)
		return CUDNN_DEVICE_ALLOCATION_FAILED;
	*to = new handle{ host_current_device(), nullptr };
	return CUDNN_SUCCESS;
}

extern "C" int cudnnSetStream(void *h, cudaStream_t stream)
{
	DNN();
	((handle *)h)->stream = stream;
	return CUDNN_SUCCESS;
}

extern "C" int cudnnBackendCreateDescriptor(int type, void **descriptor)
{
	DNN();
	auto d = std::make_shared<dnn_descriptor>();

	d->type = type;
	*descriptor = d.get();
	descriptors[d.get()] = d;
	return CUDNN_SUCCESS;
}

extern "C" int cudnnBackendDestroyDescriptor(void *descriptor)
{
	DNN();
	dnn_find(descriptor);
	descriptors.erase(descriptor);
	return CUDNN_SUCCESS;
}

extern "C" int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count,
					const void *values)
{
	DNN();
	return dnn_set(*dnn_find(descriptor), name, type, count, values);
}

/* ---- engines ---- */

static int type_of(const dnn_descriptor &t)
{
	return t.at(CUDNN_TENSOR_DATA_TYPE).number();
}

/* Patterns without an engine: f64 with a bias, and the gradient of the weight in f64 with three spatial dimensions. */
static int check_graph(const dnn_descriptor &d)
{
	dnn_graph g;

	if (!dnn_read_graph(d, g))
		return DNN_BAD_PARAM;
	if (type_of(*g.x) == CUDNN_DATA_DOUBLE &&
	    (g.bias || (g.kind == CUDNN_OPERATION_CONVOLUTION_BACKWARD_FILTER &&
			g.x->at(CUDNN_TENSOR_DIMENSIONS).count == 5)))
		return DNN_UNSUPPORTED_PATTERN;
	return CUDNN_SUCCESS;
}

static int finish_plan(dnn_descriptor &d)
{
	const dnn_descriptor &config = *d.of(CUDNN_EXECUTION_PLAN_ENGINE_CONFIG);

	if (host_may_be_unsafe() != cudaSuccess)
		return CUDNN_DEVICE_ALLOCATION_FAILED;
	d.engine = config.engine;
	d.attributes[CUDNN_ENGINEHEUR_OPERATION_GRAPH] =
		config.at(CUDNN_ENGINEHEUR_OPERATION_GRAPH);
	d.workspace = d.engine == LARGE ? (int64_t)1 << 40 : WORKSPACE;
	return d.engine == REFUSED ? DNN_UNSUPPORTED_PATTERN : CUDNN_SUCCESS;
}

extern "C" int cudnnBackendFinalize(void *descriptor)
{
	DNN();
	dnn_descriptor &d = *dnn_find(descriptor);
	int status = d.finalized ? DNN_BAD_PARAM : dnn_check(d);

	if (!status && d.type == CUDNN_OPERATIONGRAPH)
		status = check_graph(d);
	if (!status && d.type == CUDNN_EXECUTION_PLAN)
		status = finish_plan(d);
	d.finalized = !status;
	return status;
}

/* A number of configurations for each engine. The gradient of the weight has its engine in the fallback mode alone. */
static int give_configs(const dnn_descriptor &d, int64_t requested, int64_t *count, void **to)
{
	const dnn_attribute &graph = d.at(CUDNN_ENGINEHEUR_OPERATION_GRAPH);
	const bool fallback = d.at(CUDNN_ENGINEHEUR_MODE).number() == CUDNN_HEUR_FALLBACK;
	dnn_graph g;

	dnn_read_graph(*graph.descriptors[0], g);
	const bool late = g.kind == CUDNN_OPERATION_CONVOLUTION_BACKWARD_FILTER;
	int64_t n = 0;
	for (int i = 0; i < EACH * (PRECISE + 1) && n < requested; i++) {
		const int engine = i / EACH;

		if (engine == PRECISE && late != fallback)
			continue;
		dnn_descriptor &config = *dnn_find(to[n++]);

		if (config.type != CUDNN_ENGINECFG || config.finalized)
			return DNN_BAD_PARAM;
		config.engine = engine;
		config.attributes[CUDNN_ENGINEHEUR_OPERATION_GRAPH] = graph;
		config.finalized = true;
	}
	*count = n;
	return CUDNN_SUCCESS;
}

static int give_engine(const dnn_descriptor &d, int64_t requested, int64_t *count, void **to)
{
	dnn_descriptor &engine = *dnn_find(to[0]);

	if (requested != 1 || engine.type != CUDNN_ENGINE || engine.finalized)
		return DNN_BAD_PARAM;
	engine.engine = d.engine;
	engine.attributes[CUDNN_ENGINEHEUR_OPERATION_GRAPH] =
		d.at(CUDNN_ENGINEHEUR_OPERATION_GRAPH);
	engine.finalized = true;
	*count = 1;
	return CUDNN_SUCCESS;
}

static int give_notes(const dnn_descriptor &d, int64_t requested, int64_t *count, int *to)
{
	*count = 0;
	for (const note &n : notes)
		if (n.engine == d.engine && *count < requested)
			to[(*count)++] = n.note;
	return CUDNN_SUCCESS;
}

extern "C" int cudnnBackendGetAttribute(void *descriptor, int name, int type, int64_t requested,
					int64_t *count, void *values)
{
	DNN();
	const dnn_descriptor &d = *dnn_find(descriptor);

	if (!d.finalized)
		return DNN_NOT_FINALIZED;
	if (d.type == CUDNN_ENGINEHEUR && name == CUDNN_ENGINEHEUR_RESULTS &&
	    type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		return give_configs(d, requested, count, (void **)values);
	if (d.type == CUDNN_ENGINECFG && name == CUDNN_ENGINECFG_ENGINE &&
	    type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		return give_engine(d, requested, count, (void **)values);
	if (d.type == CUDNN_ENGINE && name == CUDNN_ENGINE_NUMERICAL_NOTE &&
	    type == CUDNN_TYPE_NUMERICAL_NOTE)
		return give_notes(d, requested, count, (int *)values);
	if (d.type == CUDNN_ENGINE && name == CUDNN_ENGINE_BEHAVIOR_NOTE &&
	    type == CUDNN_TYPE_BEHAVIOR_NOTE) {
		*count = d.engine == COMPILED;
		*(int *)values = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
		return CUDNN_SUCCESS;
	}
	if (d.type == CUDNN_EXECUTION_PLAN && name == CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE &&
	    type == CUDNN_TYPE_INT64 && requested == 1) {
		*count = 1;
		*(int64_t *)values = d.workspace;
		return CUDNN_SUCCESS;
	}
	return DNN_BAD_PARAM;
}

/* ---- execution ---- */

struct operand {
	char *data;
	int type;
	int64_t n, sizes[5], strides[5];

	operand(void) = default;
	operand(const dnn_descriptor &t, void *memory) : data((char *)memory)
	{
		n = t.at(CUDNN_TENSOR_DIMENSIONS).count;
		type = type_of(t);
		memcpy(sizes, t.at(CUDNN_TENSOR_DIMENSIONS).ints(), (size_t)n * 8);
		memcpy(strides, t.at(CUDNN_TENSOR_STRIDES).ints(), (size_t)n * 8);
	}
	size_t item(void) const
	{
		return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
	}
	int64_t count(void) const
	{
		int64_t all = 1;

		for (int64_t d = 0; d < n; d++)
			all *= sizes[d];
		return all;
	}
	/* Of element i in row-major order. */
	char *at(int64_t i) const
	{
		int64_t offset = 0;

		for (int64_t d = n - 1; d >= 0; i /= sizes[d--])
			offset += i % sizes[d] * strides[d];
		return data + offset * (int64_t)item();
	}
	double load(int64_t i) const
	{
		const char *p = at(i);

		if (type == CUDNN_DATA_BFLOAT16)
			return bf16_to_f32(*(const uint16_t *)p);
		if (type == CUDNN_DATA_HALF)
			return f16_to_f32(*(const uint16_t *)p);
		return type == CUDNN_DATA_DOUBLE ? *(const double *)p : *(const float *)p;
	}
	void store(int64_t i, double v) const
	{
		char *p = at(i);

		if (type == CUDNN_DATA_BFLOAT16)
			*(uint16_t *)p = f32_to_bf16((float)v);
		else if (type == CUDNN_DATA_HALF)
			*(uint16_t *)p = f32_to_f16((float)v);
		else if (type == CUDNN_DATA_DOUBLE)
			*(double *)p = v;
		else
			*(float *)p = (float)v;
	}
	void check(bool write) const
	{
		for (int64_t i = 0; i < count(); i++) {
			host_check(at(i), item(), write, "cuDNN");
#ifdef CUDA_HOST_TSAN
			if (write)
				__tsan_write_range(at(i), item());
			else
				__tsan_read_range(at(i), item());
#endif
		}
	}
};

struct work {
	int kind, engine;
	operand x, w, y, bias, result;
	bool biased;
	int64_t stride[3], padding[3], dilation[3];
	char *workspace;
};

/* Adds each term of the convolution to the sum that it belongs to. */
static void add_terms(const work &k, std::vector<double> &sums)
{
	const int64_t spatial = k.x.n - 2, groups = k.x.sizes[1] / k.w.sizes[1];
	const int64_t outputs = k.y.count(), in = k.w.sizes[1], out = k.w.sizes[0] / groups;
	const int64_t taps = k.w.count() / (k.w.sizes[0] * in);

	for (int64_t o = 0; o < outputs; o++) {
		int64_t rest = o, place[3] = { 0, 0, 0 };

		for (int64_t d = spatial - 1; d >= 0; rest /= k.y.sizes[2 + d--])
			place[d] = rest % k.y.sizes[2 + d];
		const int64_t channel = rest % k.y.sizes[1], image = rest / k.y.sizes[1];
		for (int64_t t = 0; t < in * taps; t++) {
			int64_t tap = t % taps,
				x = image * k.x.sizes[1] + channel / out * in + t / taps;
			int64_t at[3], left = tap;
			bool inside = true;

			for (int64_t d = spatial - 1; d >= 0; left /= k.w.sizes[2 + d--])
				at[d] = place[d] * k.stride[d] - k.padding[d] +
					left % k.w.sizes[2 + d] * k.dilation[d];
			for (int64_t d = 0; d < spatial; d++) {
				inside &= at[d] >= 0 && at[d] < k.x.sizes[2 + d];
				x = x * k.x.sizes[2 + d] + at[d];
			}
			const int64_t w = (channel * in + t / taps) * taps + tap;
			/* What is read in the padding is 0: an infinite gradient makes it NaN. */
			if (!inside && k.kind == CUDNN_OPERATION_CONVOLUTION_BACKWARD_FILTER)
				sums[(size_t)w] += k.y.load(o) * 0;
			if (!inside)
				continue;
			if (k.kind == CUDNN_OPERATION_CONVOLUTION_FORWARD)
				sums[(size_t)o] += k.x.load(x) * k.w.load(w);
			else if (k.kind == CUDNN_OPERATION_CONVOLUTION_BACKWARD_DATA)
				sums[(size_t)x] += k.y.load(o) * k.w.load(w);
			else
				sums[(size_t)w] += k.y.load(o) * k.x.load(x);
		}
	}
}

static void compute(const work &k)
{
	const bool forward = k.kind == CUDNN_OPERATION_CONVOLUTION_FORWARD;
	const operand &result = k.result;
	std::vector<double> sums((size_t)result.count());
	const int64_t plane = result.count() / (result.sizes[0] * result.sizes[1]);

	host_check(k.workspace, WORKSPACE, true, "cuDNN");
	memset(k.workspace, 0x5a, WORKSPACE);
	if (k.kind != CUDNN_OPERATION_CONVOLUTION_BACKWARD_DATA)
		k.x.check(false);
	if (k.kind != CUDNN_OPERATION_CONVOLUTION_BACKWARD_FILTER)
		k.w.check(false);
	if (!forward)
		k.y.check(false);
	if (k.biased)
		k.bias.check(false);
	result.check(true);
	add_terms(k, sums);
	for (int64_t i = 0; i < result.count(); i++) {
		double v = sums[(size_t)i];

		if (k.biased)
			v += k.bias.load(i / plane % result.sizes[1]);
		/* What the plugin must not use. */
		if (k.engine != PRECISE && !(k.engine == TF32 && k.x.type != CUDNN_DATA_FLOAT))
			v = 1.5 * v + 1;
		result.store(i, v);
	}
}

/* The memory of the tensor in the variant pack. */
static operand operand_of(const dnn_descriptor &t, const dnn_descriptor &pack, int device)
{
	const dnn_attribute &ids = pack.at(CUDNN_VARIANT_PACK_UNIQUE_IDS);
	void *const *pointers =
		(void *const *)pack.at(CUDNN_VARIANT_PACK_DATA_POINTERS).bytes.data();
	const int64_t id = t.at(CUDNN_TENSOR_UNIQUE_ID).ints()[0];

	for (int64_t i = 0; i < ids.count; i++) {
		if (ids.ints()[i] != id)
			continue;
		if (!pointers[i] ||
		    (uintptr_t)pointers[i] % (uintptr_t)t.at(CUDNN_TENSOR_BYTE_ALIGNMENT).ints()[0])
			host_fatal(
				"cuDNN: tensor %lld at %p has not the alignment of its descriptor",
				(long long)id, pointers[i]);
		if (host_device_of(pointers[i]) != device)
			host_fatal("cuDNN: tensor %lld is not memory of cuda:%d", (long long)id,
				   device);
		return operand(t, pointers[i]);
	}
	host_fatal("cuDNN: the variant pack has no tensor %lld", (long long)id);
}

extern "C" int cudnnBackendExecute(void *h, void *plan, void *variant_pack)
{
	DNN();
	const handle &with = *(handle *)h;
	const dnn_descriptor &p = *dnn_find(plan), &pack = *dnn_find(variant_pack);

	if (p.type != CUDNN_EXECUTION_PLAN || pack.type != CUDNN_VARIANT_PACK)
		return DNN_BAD_PARAM;
	if (!p.finalized || !pack.finalized)
		return DNN_NOT_FINALIZED;
	if (*(void *const *)p.at(CUDNN_EXECUTION_PLAN_HANDLE).bytes.data() != h)
		host_fatal("cuDNN: the plan belongs to another handle");
	CUstream_st *s = host_stream(with.stream, with.device);
	dnn_graph g;
	work k;

	dnn_read_graph(*p.of(CUDNN_ENGINEHEUR_OPERATION_GRAPH), g);
	if (s->device != with.device || host_current_device() != with.device)
		host_fatal("cuDNN: the handle belongs to another device than the stream");
	k.kind = g.kind;
	k.engine = p.engine;
	k.x = operand_of(*g.x, pack, with.device);
	k.w = operand_of(*g.w, pack, with.device);
	k.result = operand_of(*g.result, pack, with.device);
	k.y = g.bias ? operand(*g.y, nullptr) : operand_of(*g.y, pack, with.device);
	k.biased = g.bias;
	if (g.bias)
		k.bias = operand_of(*g.bias, pack, with.device);
	for (int64_t d = 0; d < k.x.n - 2; d++) {
		k.stride[d] = g.convolution->at(CUDNN_CONVOLUTION_FILTER_STRIDES).ints()[d];
		k.padding[d] = g.convolution->at(CUDNN_CONVOLUTION_PRE_PADDINGS).ints()[d];
		k.dilation[d] = g.convolution->at(CUDNN_CONVOLUTION_DILATIONS).ints()[d];
	}
	k.workspace = *(char *const *)pack.at(CUDNN_VARIANT_PACK_WORKSPACE).bytes.data();
	if (!k.workspace)
		return DNN_BAD_PARAM;
	host_counts.launches++;
	host_submit(s, "cuDNN", 1u << with.device, [=] { compute(k); });
	return CUDNN_SUCCESS;
}
