/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * cuDNN's graph API, loaded when first needed, so that the plugin can be used without it. Numbers are those of its
 * documentation, of version 9; a descriptor and a handle are void pointers here.
 */
#ifndef TENSOR_CUDA_CUDNN_H
#define TENSOR_CUDA_CUDNN_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Functions return a cudnnStatus_t, whose thousands are its category. */
enum {
	CUDNN_SUCCESS = 0,
	CUDNN_NOT_SUPPORTED = 3000,
	CUDNN_HOST_ALLOCATION_FAILED = 4003,
	CUDNN_DEVICE_ALLOCATION_FAILED = 4004,
};

/* cudnnDataType_t */
enum {
	CUDNN_DATA_FLOAT = 0,
	CUDNN_DATA_DOUBLE = 1,
	CUDNN_DATA_HALF = 2,
	CUDNN_DATA_BFLOAT16 = 9,
};

/* cudnnBackendAttributeType_t */
enum {
	CUDNN_TYPE_HANDLE = 0,
	CUDNN_TYPE_DATA_TYPE = 1,
	CUDNN_TYPE_BOOLEAN = 2, /* bool */
	CUDNN_TYPE_INT64 = 3,
	CUDNN_TYPE_FLOAT = 4,
	CUDNN_TYPE_DOUBLE = 5,
	CUDNN_TYPE_VOID_PTR = 6,
	CUDNN_TYPE_CONVOLUTION_MODE = 7,
	CUDNN_TYPE_HEUR_MODE = 8,
	CUDNN_TYPE_NUMERICAL_NOTE = 11,
	CUDNN_TYPE_POINTWISE_MODE = 14,
	CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
	CUDNN_TYPE_BEHAVIOR_NOTE = 19,
};

/* cudnnBackendDescriptorType_t */
enum {
	CUDNN_POINTWISE = 0,
	CUDNN_CONVOLUTION = 1,
	CUDNN_ENGINE = 2,
	CUDNN_ENGINECFG = 3,
	CUDNN_ENGINEHEUR = 4,
	CUDNN_EXECUTION_PLAN = 5,
	CUDNN_OPERATION_CONVOLUTION_FORWARD = 10,
	CUDNN_OPERATION_CONVOLUTION_BACKWARD_FILTER = 11,
	CUDNN_OPERATION_CONVOLUTION_BACKWARD_DATA = 12,
	CUDNN_OPERATION_POINTWISE = 13,
	CUDNN_OPERATIONGRAPH = 15,
	CUDNN_VARIANT_PACK = 16,
	CUDNN_TENSOR = 17,
};

/* cudnnBackendAttributeName_t */
enum {
	CUDNN_POINTWISE_MODE = 0,
	CUDNN_POINTWISE_MATH_PREC = 1,
	CUDNN_CONVOLUTION_COMP_TYPE = 100,
	CUDNN_CONVOLUTION_CONV_MODE = 101,
	CUDNN_CONVOLUTION_DILATIONS = 102,
	CUDNN_CONVOLUTION_FILTER_STRIDES = 103,
	CUDNN_CONVOLUTION_POST_PADDINGS = 104,
	CUDNN_CONVOLUTION_PRE_PADDINGS = 105,
	CUDNN_CONVOLUTION_SPATIAL_DIMS = 106,
	CUDNN_ENGINEHEUR_MODE = 200,
	CUDNN_ENGINEHEUR_OPERATION_GRAPH = 201,
	CUDNN_ENGINEHEUR_RESULTS = 202,
	CUDNN_ENGINECFG_ENGINE = 300,
	CUDNN_EXECUTION_PLAN_HANDLE = 400,
	CUDNN_EXECUTION_PLAN_ENGINE_CONFIG = 401,
	CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
	/* alpha, beta, the descriptor and the three tensors of each direction */
	CUDNN_FORWARD_ALPHA = 700,
	CUDNN_FORWARD_BETA = 701,
	CUDNN_FORWARD_CONV_DESC = 702,
	CUDNN_FORWARD_W = 703,
	CUDNN_FORWARD_X = 704,
	CUDNN_FORWARD_Y = 705,
	CUDNN_BWD_DATA_ALPHA = 706,
	CUDNN_BWD_DATA_BETA = 707,
	CUDNN_BWD_DATA_CONV_DESC = 708,
	CUDNN_BWD_DATA_W = 709,
	CUDNN_BWD_DATA_DX = 710,
	CUDNN_BWD_DATA_DY = 711,
	CUDNN_BWD_FILTER_ALPHA = 712,
	CUDNN_BWD_FILTER_BETA = 713,
	CUDNN_BWD_FILTER_CONV_DESC = 714,
	CUDNN_BWD_FILTER_DW = 715,
	CUDNN_BWD_FILTER_X = 716,
	CUDNN_BWD_FILTER_DY = 717,
	CUDNN_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
	CUDNN_OPERATION_POINTWISE_XDESC = 751,
	CUDNN_OPERATION_POINTWISE_BDESC = 752,
	CUDNN_OPERATION_POINTWISE_YDESC = 753,
	CUDNN_OPERATIONGRAPH_HANDLE = 800,
	CUDNN_OPERATIONGRAPH_OPS = 801,
	CUDNN_TENSOR_BYTE_ALIGNMENT = 900,
	CUDNN_TENSOR_DATA_TYPE = 901,
	CUDNN_TENSOR_DIMENSIONS = 902,
	CUDNN_TENSOR_STRIDES = 903,
	CUDNN_TENSOR_UNIQUE_ID = 906,
	CUDNN_TENSOR_IS_VIRTUAL = 907,
	CUDNN_VARIANT_PACK_UNIQUE_IDS = 1000,
	CUDNN_VARIANT_PACK_DATA_POINTERS = 1001,
	CUDNN_VARIANT_PACK_WORKSPACE = 1003,
	CUDNN_ENGINE_NUMERICAL_NOTE = 1303,
	CUDNN_ENGINE_BEHAVIOR_NOTE = 1305,
};

enum { CUDNN_CROSS_CORRELATION = 1 };		      /* cudnnConvolutionMode_t */
enum { CUDNN_POINTWISE_ADD = 0 };		      /* cudnnPointwiseMode_t */
enum { CUDNN_HEUR_FALLBACK = 2, CUDNN_HEUR_A = 3 };   /* cudnnBackendHeurMode_t */
enum { CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION = 0 }; /* cudnnBackendBehaviorNote_t */

/* cudnnBackendNumericalNote_t */
enum {
	CUDNN_NOTE_TENSOR_CORE = 0,
	CUDNN_NOTE_STRICT_NAN_PROP = 9,
	CUDNN_NOTES = 16, /* more than there are */
};

struct cudnn {
	int (*create)(void **handle);
	int (*set_stream)(void *handle, cudaStream_t stream);
	int (*create_descriptor)(int type, void **descriptor);
	int (*destroy_descriptor)(void *descriptor);
	int (*set_attribute)(void *descriptor, int name, int type, int64_t count,
			     const void *values);
	int (*get_attribute)(void *descriptor, int name, int type, int64_t requested,
			     int64_t *count, void *values);
	int (*finalize)(void *descriptor);
	int (*execute)(void *handle, void *plan, void *variant_pack);
	const char *(*error_string)(int status);
};

/* NULL if there is no cuDNN. Sets no error: convolutions have other kernels. */
const struct cudnn *cudnn(void);

#endif
