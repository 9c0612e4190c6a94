// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Graphs of CUDA devices (include/tensor/cuda.h), which are in the plugin, and captures as operators see them. */
#include "storage/devices.h"

#include "base/error.h"

#include <tensor/cuda.h>

/* ---- captures ---- */

bool device_captures(tensor_device d)
{
	const struct cuda_graph_calls *f = d.type == TENSOR_CUDA ? cuda_graph_calls() : NULL;

	return f && f->capturing(d.index);
}

int device_refuse_capture(tensor_device d, const char *op, const char *why)
{
	return device_captures(d) ? cuda_graph_calls()->excludes(op, d.index, why) : 0;
}

int device_take_random(tensor_device d, tensor_generator *g, uint64_t n,
		       struct tensor_generator_state *at)
{
	return device_captures(d) ? cuda_graph_calls()->random(d.index, g, n, at) : 0;
}

void device_random_position(tensor_generator *g, struct device_random *at)
{
	const struct cuda_graph_calls *f = cuda_graph_calls();

	*at = (struct device_random){ 0, 0 };
	if (f)
		f->random_position(g, at);
}

void device_random_set(tensor_generator *g, const struct device_random *to)
{
	if (to->capture)
		cuda_graph_calls()->random_set(g, to);
}

int device_refuse_captures(const char *op, const char *why)
{
	return cuda_graph_calls()->excludes(op, -1, why);
}

int device_capture_count(tensor_device d, tensor *count)
{
	return cuda_graph_calls()->count(d.index, count);
}

/* ---- graphs ---- */

static int absent(const char *call)
{
	return tensor_fail(EINVAL, "%s: the graph is NULL", call);
}

TENSOR_EXPORT tensor_cuda_graph *tensor_cuda_graph_new(int device)
{
	tensor_cuda_graph *graph = NULL;

	/* Loads the plugin, or fails with the reason. */
	if (tensor_cuda_device_count() < 0 || cuda_graph_calls()->create(device, &graph) < 0)
		return NULL;
	return graph;
}

TENSOR_EXPORT int tensor_cuda_graph_capture_begin(tensor_cuda_graph *graph, tensor_cuda_graph *with)
{
	return graph ? cuda_graph_calls()->capture_begin(graph, with) :
		       absent("cuda_graph_capture_begin");
}

TENSOR_EXPORT int tensor_cuda_graph_capture_end(tensor_cuda_graph *graph)
{
	return graph ? cuda_graph_calls()->capture_end(graph) : absent("cuda_graph_capture_end");
}

TENSOR_EXPORT int tensor_cuda_graph_register_generator(tensor_cuda_graph *graph,
						       tensor_generator *g)
{
	return graph ? cuda_graph_calls()->register_generator(graph, g) :
		       absent("cuda_graph_register_generator");
}

TENSOR_EXPORT int tensor_cuda_graph_replay(tensor_cuda_graph *graph)
{
	return graph ? cuda_graph_calls()->replay(graph) : absent("cuda_graph_replay");
}

TENSOR_EXPORT int tensor_cuda_graph_wait(tensor_cuda_graph *graph)
{
	return graph ? cuda_graph_calls()->wait(graph) : absent("cuda_graph_wait");
}

TENSOR_EXPORT int tensor_cuda_graph_reset(tensor_cuda_graph *graph)
{
	return graph ? cuda_graph_calls()->reset(graph) : absent("cuda_graph_reset");
}

TENSOR_EXPORT int tensor_cuda_graph_release(tensor_cuda_graph *graph)
{
	return graph ? cuda_graph_calls()->release(graph) : 0;
}

TENSOR_EXPORT bool tensor_cuda_is_capturing(int device)
{
	return device_captures(TENSOR_DEVICE_CUDA(device));
}
