/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Descriptors of the stand-in for cuDNN: attributes with the types that its documentation gives, and what finalizing checks. */
#ifndef CUDA_HOST_DNN_DESCRIPTORS_HPP
#define CUDA_HOST_DNN_DESCRIPTORS_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernels/cuda/dnn/cudnn.h"

/* Statuses that the plugin does not name. */
static constexpr int DNN_BAD_PARAM = 2000, DNN_NOT_FINALIZED = 2004, DNN_UNSUPPORTED_PATTERN = 3001;

struct dnn_descriptor;
typedef std::shared_ptr<dnn_descriptor> dnn_reference;

struct dnn_attribute {
	std::vector<char> bytes;
	std::vector<dnn_reference> descriptors; /* which live as long as those that name them */
	int64_t count = 0;

	const int64_t *ints(void) const
	{
		return (const int64_t *)bytes.data();
	}
	int number(void) const
	{
		return *(const int *)bytes.data();
	}
};

struct dnn_descriptor {
	int type = 0;
	bool finalized = false;
	std::map<int, dnn_attribute> attributes;
	int engine = -1; /* of an engine, its configuration and its plan */
	int64_t workspace = 0;

	const dnn_attribute &at(int name) const
	{
		return attributes.at(name);
	}
	const dnn_reference &of(int name) const
	{
		return attributes.at(name).descriptors[0];
	}
	bool has(int name) const
	{
		return attributes.count(name);
	}
};

/* The descriptor of a handle; ends the process if there is none. */
dnn_reference &dnn_find(void *descriptor);
int dnn_set(dnn_descriptor &d, int name, int type, int64_t count, const void *values);
/* Whether all attributes that the type requires are set, and consistent. */
int dnn_check(const dnn_descriptor &d);

/* An operation graph as the documentation permits it: a convolution, and the addition of a bias to the forward one. */
struct dnn_graph {
	int kind = -1; /* descriptor type of the convolution */
	const dnn_descriptor *convolution = nullptr, *x = nullptr, *w = nullptr, *y = nullptr;
	const dnn_descriptor
		*bias = nullptr,
		*result = nullptr; /* result: y of the addition, or the convolution's own */
};
/* False if it is another graph. */
bool dnn_read_graph(const dnn_descriptor &graph, dnn_graph &g);

#endif
