// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* See descriptors.hpp. */
#include "descriptors.hpp"

#include <cstring>

struct rule {
	int descriptor, name, type;
	int64_t least, most; /* elements */
	int of;		     /* descriptor type of a descriptor, or -1 */
	bool required;
};

#define OP(d, name, of)                                                \
	{                                                              \
		d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, of, true \
	}
#define OF(d, name, t)                     \
	{                                  \
		d, name, t, 1, 1, -1, true \
	}
#define LIST(d, name, n, m)                               \
	{                                                 \
		d, name, CUDNN_TYPE_INT64, n, m, -1, true \
	}

enum {
	FORWARD = CUDNN_OPERATION_CONVOLUTION_FORWARD,
	FILTER = CUDNN_OPERATION_CONVOLUTION_BACKWARD_FILTER,
	DATA = CUDNN_OPERATION_CONVOLUTION_BACKWARD_DATA
};

/* CUDNN_TYPE_FLOAT stands for a float or a double. */
static const rule rules[] = {
	OF(CUDNN_TENSOR, CUDNN_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64),
	OF(CUDNN_TENSOR, CUDNN_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE),
	LIST(CUDNN_TENSOR, CUDNN_TENSOR_DIMENSIONS, 4, 5),
	LIST(CUDNN_TENSOR, CUDNN_TENSOR_STRIDES, 4, 5),
	OF(CUDNN_TENSOR, CUDNN_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64),
	{ CUDNN_TENSOR, CUDNN_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, -1, false },
	OF(CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE),
	OF(CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE),
	OF(CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64),
	LIST(CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_DILATIONS, 2, 3),
	LIST(CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_FILTER_STRIDES, 2, 3),
	LIST(CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_PRE_PADDINGS, 2, 3),
	LIST(CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_POST_PADDINGS, 2, 3),
	OF(FORWARD, CUDNN_FORWARD_ALPHA, CUDNN_TYPE_FLOAT),
	OF(FORWARD, CUDNN_FORWARD_BETA, CUDNN_TYPE_FLOAT),
	OP(FORWARD, CUDNN_FORWARD_CONV_DESC, CUDNN_CONVOLUTION),
	OP(FORWARD, CUDNN_FORWARD_W, CUDNN_TENSOR),
	OP(FORWARD, CUDNN_FORWARD_X, CUDNN_TENSOR),
	OP(FORWARD, CUDNN_FORWARD_Y, CUDNN_TENSOR),
	OF(DATA, CUDNN_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT),
	OF(DATA, CUDNN_BWD_DATA_BETA, CUDNN_TYPE_FLOAT),
	OP(DATA, CUDNN_BWD_DATA_CONV_DESC, CUDNN_CONVOLUTION),
	OP(DATA, CUDNN_BWD_DATA_W, CUDNN_TENSOR),
	OP(DATA, CUDNN_BWD_DATA_DX, CUDNN_TENSOR),
	OP(DATA, CUDNN_BWD_DATA_DY, CUDNN_TENSOR),
	OF(FILTER, CUDNN_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT),
	OF(FILTER, CUDNN_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT),
	OP(FILTER, CUDNN_BWD_FILTER_CONV_DESC, CUDNN_CONVOLUTION),
	OP(FILTER, CUDNN_BWD_FILTER_DW, CUDNN_TENSOR),
	OP(FILTER, CUDNN_BWD_FILTER_X, CUDNN_TENSOR),
	OP(FILTER, CUDNN_BWD_FILTER_DY, CUDNN_TENSOR),
	OF(CUDNN_POINTWISE, CUDNN_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE),
	OF(CUDNN_POINTWISE, CUDNN_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE),
	OP(CUDNN_OPERATION_POINTWISE, CUDNN_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_POINTWISE),
	OP(CUDNN_OPERATION_POINTWISE, CUDNN_OPERATION_POINTWISE_XDESC, CUDNN_TENSOR),
	OP(CUDNN_OPERATION_POINTWISE, CUDNN_OPERATION_POINTWISE_BDESC, CUDNN_TENSOR),
	OP(CUDNN_OPERATION_POINTWISE, CUDNN_OPERATION_POINTWISE_YDESC, CUDNN_TENSOR),
	OF(CUDNN_OPERATIONGRAPH, CUDNN_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE),
	{ CUDNN_OPERATIONGRAPH, CUDNN_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 2, -1,
	  true },
	OP(CUDNN_ENGINEHEUR, CUDNN_ENGINEHEUR_OPERATION_GRAPH, CUDNN_OPERATIONGRAPH),
	OF(CUDNN_ENGINEHEUR, CUDNN_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE),
	OF(CUDNN_EXECUTION_PLAN, CUDNN_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE),
	OP(CUDNN_EXECUTION_PLAN, CUDNN_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_ENGINECFG),
	LIST(CUDNN_VARIANT_PACK, CUDNN_VARIANT_PACK_UNIQUE_IDS, 1, 8),
	{ CUDNN_VARIANT_PACK, CUDNN_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 8, -1,
	  true },
	OF(CUDNN_VARIANT_PACK, CUDNN_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR),
};

static size_t size_of(int type)
{
	switch (type) {
	case CUDNN_TYPE_BOOLEAN:
		return sizeof(bool);
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_DOUBLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR:
		return 8;
	default:
		return 4;
	}
}

static const rule *rule_of(int descriptor, int name)
{
	for (const rule &r : rules)
		if (r.descriptor == descriptor && r.name == name)
			return &r;
	return nullptr;
}

int dnn_set(dnn_descriptor &d, int name, int type, int64_t count, const void *values)
{
	const rule *r = rule_of(d.type, name);

	if (!r || !values || d.finalized || count < r->least || count > r->most ||
	    (type != r->type && !(r->type == CUDNN_TYPE_FLOAT && type == CUDNN_TYPE_DOUBLE)))
		return DNN_BAD_PARAM;
	dnn_attribute a;
	a.count = count;
	a.bytes.resize((size_t)count * size_of(type));
	memcpy(a.bytes.data(), values, a.bytes.size());
	for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; i++) {
		dnn_reference &to = dnn_find(((void *const *)values)[i]);

		if (!to->finalized)
			return DNN_NOT_FINALIZED;
		if (r->of >= 0 && to->type != r->of)
			return DNN_BAD_PARAM;
		a.descriptors.push_back(to);
	}
	d.attributes[name] = a;
	return CUDNN_SUCCESS;
}

/* ---- finalizing ---- */

static size_t bytes_of(int type)
{
	return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

static int check_tensor(const dnn_descriptor &d)
{
	const dnn_attribute &sizes = d.at(CUDNN_TENSOR_DIMENSIONS);
	const dnn_attribute &strides = d.at(CUDNN_TENSOR_STRIDES);
	const int type = d.at(CUDNN_TENSOR_DATA_TYPE).number();
	const int64_t alignment = d.at(CUDNN_TENSOR_BYTE_ALIGNMENT).ints()[0];

	if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE && type != CUDNN_DATA_HALF &&
	    type != CUDNN_DATA_BFLOAT16)
		return CUDNN_NOT_SUPPORTED;
	if (sizes.count != strides.count || alignment < 1 || (size_t)alignment % bytes_of(type))
		return DNN_BAD_PARAM;
	for (int64_t i = 0; i < sizes.count; i++)
		if (sizes.ints()[i] < 1 || strides.ints()[i] < 1)
			return DNN_BAD_PARAM;
	return CUDNN_SUCCESS;
}

static int check_convolution(const dnn_descriptor &d)
{
	const int64_t spatial = d.at(CUDNN_CONVOLUTION_SPATIAL_DIMS).ints()[0];
	static const int lists[] = { CUDNN_CONVOLUTION_DILATIONS, CUDNN_CONVOLUTION_FILTER_STRIDES,
				     CUDNN_CONVOLUTION_PRE_PADDINGS,
				     CUDNN_CONVOLUTION_POST_PADDINGS };

	for (int name : lists)
		if (d.at(name).count != spatial)
			return DNN_BAD_PARAM;
	return CUDNN_SUCCESS;
}

/* alpha, beta, descriptor, x, w, y */
static const int names_of[3][6] = {
	{ CUDNN_FORWARD_ALPHA, CUDNN_FORWARD_BETA, CUDNN_FORWARD_CONV_DESC, CUDNN_FORWARD_X,
	  CUDNN_FORWARD_W, CUDNN_FORWARD_Y },
	{ CUDNN_BWD_FILTER_ALPHA, CUDNN_BWD_FILTER_BETA, CUDNN_BWD_FILTER_CONV_DESC,
	  CUDNN_BWD_FILTER_X, CUDNN_BWD_FILTER_DW, CUDNN_BWD_FILTER_DY },
	{ CUDNN_BWD_DATA_ALPHA, CUDNN_BWD_DATA_BETA, CUDNN_BWD_DATA_CONV_DESC, CUDNN_BWD_DATA_DX,
	  CUDNN_BWD_DATA_W, CUDNN_BWD_DATA_DY },
};

static const int64_t *sizes_of(const dnn_descriptor &t)
{
	return t.at(CUDNN_TENSOR_DIMENSIONS).ints();
}

static double factor(const dnn_attribute &a)
{
	return a.bytes.size() == 8 ? *(const double *)a.bytes.data() :
				     *(const float *)a.bytes.data();
}

static int check_operation(const dnn_descriptor &d)
{
	const int *names = names_of[d.type - FORWARD];
	const dnn_descriptor &c = *d.of(names[2]), &x = *d.of(names[3]), &w = *d.of(names[4]),
			     &y = *d.of(names[5]);
	const int64_t spatial = c.at(CUDNN_CONVOLUTION_SPATIAL_DIMS).ints()[0];
	const int64_t *xs = sizes_of(x), *ws = sizes_of(w), *ys = sizes_of(y);

	/* Other factors are permitted, and not computed here. */
	if (factor(d.at(names[0])) != 1 || factor(d.at(names[1])) != 0)
		return CUDNN_NOT_SUPPORTED;
	for (const dnn_descriptor *t : { &x, &w, &y })
		if (t->at(CUDNN_TENSOR_DIMENSIONS).count != spatial + 2)
			return DNN_BAD_PARAM;
	if (xs[0] != ys[0] || ws[0] != ys[1] || xs[1] % ws[1] || ys[1] % (xs[1] / ws[1]))
		return DNN_BAD_PARAM;
	for (int64_t i = 0; i < spatial; i++) {
		int64_t padded = xs[2 + i] + c.at(CUDNN_CONVOLUTION_PRE_PADDINGS).ints()[i] +
				 c.at(CUDNN_CONVOLUTION_POST_PADDINGS).ints()[i];
		int64_t reach = (ws[2 + i] - 1) * c.at(CUDNN_CONVOLUTION_DILATIONS).ints()[i] + 1;

		if ((padded - reach) / c.at(CUDNN_CONVOLUTION_FILTER_STRIDES).ints()[i] + 1 !=
		    ys[2 + i])
			return DNN_BAD_PARAM;
	}
	return CUDNN_SUCCESS;
}

static int check_pack(const dnn_descriptor &d)
{
	return d.at(CUDNN_VARIANT_PACK_UNIQUE_IDS).count ==
			       d.at(CUDNN_VARIANT_PACK_DATA_POINTERS).count ?
		       CUDNN_SUCCESS :
		       DNN_BAD_PARAM;
}

int dnn_check(const dnn_descriptor &d)
{
	for (const rule &r : rules)
		if (r.descriptor == d.type && r.required && !d.has(r.name))
			return DNN_BAD_PARAM;
	switch (d.type) {
	case CUDNN_TENSOR:
		return check_tensor(d);
	case CUDNN_CONVOLUTION:
		return check_convolution(d);
	case FORWARD:
	case FILTER:
	case DATA:
		return check_operation(d);
	case CUDNN_VARIANT_PACK:
		return check_pack(d);
	default:
		return CUDNN_SUCCESS;
	}
}

/* ---- the operation graph ---- */

static int64_t id_of(const dnn_descriptor &t)
{
	return t.at(CUDNN_TENSOR_UNIQUE_ID).ints()[0];
}

static bool is_virtual(const dnn_descriptor &t)
{
	return t.has(CUDNN_TENSOR_IS_VIRTUAL) &&
	       *(const bool *)t.at(CUDNN_TENSOR_IS_VIRTUAL).bytes.data();
}

static bool read_bias(const dnn_descriptor &op, dnn_graph &g)
{
	const dnn_descriptor &add = *op.of(CUDNN_OPERATION_POINTWISE_PW_DESCRIPTOR);

	if (op.type != CUDNN_OPERATION_POINTWISE || g.kind != FORWARD || !is_virtual(*g.y) ||
	    add.at(CUDNN_POINTWISE_MODE).number() != CUDNN_POINTWISE_ADD ||
	    id_of(*op.of(CUDNN_OPERATION_POINTWISE_XDESC)) != id_of(*g.y))
		return false;
	g.bias = op.of(CUDNN_OPERATION_POINTWISE_BDESC).get();
	g.result = op.of(CUDNN_OPERATION_POINTWISE_YDESC).get();
	for (int64_t i = 0; i < g.bias->at(CUDNN_TENSOR_DIMENSIONS).count; i++)
		if (sizes_of(*g.bias)[i] != (i == 1 ? sizes_of(*g.y)[1] : 1) ||
		    sizes_of(*g.result)[i] != sizes_of(*g.y)[i])
			return false;
	return !is_virtual(*g.bias);
}

bool dnn_read_graph(const dnn_descriptor &graph, dnn_graph &g)
{
	const std::vector<dnn_reference> &ops = graph.at(CUDNN_OPERATIONGRAPH_OPS).descriptors;
	const dnn_descriptor &op = *ops[0];

	if (op.type != FORWARD && op.type != FILTER && op.type != DATA)
		return false;
	const int *names = names_of[op.type - FORWARD];
	g.kind = op.type;
	g.convolution = op.of(names[2]).get();
	g.x = op.of(names[3]).get();
	g.w = op.of(names[4]).get();
	g.y = op.of(names[5]).get();
	g.result = op.type == FORWARD ? g.y : op.type == FILTER ? g.w : g.x;
	if (ops.size() == 2 && !read_bias(*ops[1], g))
		return false;
	/* All identifiers differ, and only a result before a bias is virtual. */
	std::vector<const dnn_descriptor *> all = { g.x, g.w, g.y };
	if (g.bias)
		all.insert(all.end(), { g.bias, g.result });
	for (size_t i = 0; i < all.size(); i++) {
		if (is_virtual(*all[i]) != (g.bias && all[i] == g.y))
			return false;
		for (size_t k = 0; k < i; k++)
			if (id_of(*all[i]) == id_of(*all[k]))
				return false;
	}
	return true;
}
