/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The value types of all public headers: dtype, device, layout, scalar, lists of integers and of
 * tensors, and the options of a factory. In all of them zero means "not given", so a zeroed struct
 * is a valid set of defaults.
 */
#ifndef TENSOR_TYPES_H
#define TENSOR_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENSOR_VERSION	0x000100 /* 0.1.0: major << 16 | minor << 8 | patch */
#define TENSOR_MAX_DIMS 16

/* A tensor: opaque, reference-counted. Sizes and strides are in elements. */
typedef struct tensor tensor;

/* A random number generator: opaque, reference-counted; see <tensor/random.h>. */
typedef struct tensor_generator tensor_generator;

/* Element types. The values are those of the kernel's UAPI and of messages between processes. */
enum tensor_dtype {
	TENSOR_DTYPE_NONE = 0,
	TENSOR_BOOL,
	TENSOR_U8,
	TENSOR_I8,
	TENSOR_I16,
	TENSOR_I32,
	TENSOR_I64,
	TENSOR_F16,
	TENSOR_BF16,
	TENSOR_F32,
	TENSOR_F64,
	TENSOR_C64,
	TENSOR_C128,
	TENSOR_U16,
	TENSOR_U32,
	TENSOR_U64,
	TENSOR_F8_E4M3FN, /* for storage only: operators compute in f32 */
	TENSOR_F8_E5M2,
	TENSOR_DTYPE_COUNT
};

enum tensor_layout {
	TENSOR_LAYOUT_NONE = 0,
	TENSOR_STRIDED,
	TENSOR_SPARSE_COO,
	TENSOR_SPARSE_CSR,
	TENSOR_BLOCKED,
	TENSOR_LAYOUT_COUNT
};

enum tensor_device_type {
	TENSOR_DEVICE_NONE = 0,
	TENSOR_CPU,
	TENSOR_CUDA,
	TENSOR_PRIVATE, /* a registered backend, identified by the index */
	TENSOR_DEVICE_TYPE_COUNT
};

typedef struct tensor_device {
	int8_t type;  /* enum tensor_device_type */
	int8_t index; /* 0 for the CPU */
} tensor_device;

#ifndef __cplusplus /* C++: literals.hpp */
#define TENSOR_DEVICE_CPU     ((tensor_device){ TENSOR_CPU, 0 })
#define TENSOR_DEVICE_CUDA(i) ((tensor_device){ TENSOR_CUDA, (i) })
#endif

/* The order of a tensor's dimensions in memory. */
enum tensor_memory_format {
	TENSOR_MEMORY_FORMAT_NONE = 0, /* default of the function */
	TENSOR_CONTIGUOUS_FORMAT,      /* row-major */
	TENSOR_PRESERVE_FORMAT,	       /* same as the input */
	TENSOR_CHANNELS_LAST,	       /* order in memory of [n, c, h, w]: n, h, w, c */
	TENSOR_CHANNELS_LAST_3D,       /* order in memory of [n, c, d, h, w]: n, d, h, w, c */
	TENSOR_MEMORY_FORMAT_COUNT
};

/* Argument reduction of loss functions. */
enum tensor_reduction {
	TENSOR_REDUCTION_NONE = 0, /* a loss for each element */
	TENSOR_REDUCTION_MEAN,
	TENSOR_REDUCTION_SUM,
};

/* Argument `mode` of embedding_bag. */
enum tensor_bag_mode {
	TENSOR_BAG_SUM = 0,
	TENSOR_BAG_MEAN,
	TENSOR_BAG_MAX,
};

/* Arguments `interpolation_mode` and `padding_mode` of grid_sampler. */
enum tensor_interpolation_mode {
	TENSOR_INTERPOLATION_BILINEAR = 0,
	TENSOR_INTERPOLATION_NEAREST,
	TENSOR_INTERPOLATION_BICUBIC,
};

enum tensor_padding_mode {
	TENSOR_PADDING_ZEROS = 0,
	TENSOR_PADDING_BORDER,
	TENSOR_PADDING_REFLECTION,
};

/* g++ warns about omitted members of a designated initializer unless they have a default. */
#ifdef __cplusplus
#define TENSOR_ZERO_ = {}
#else
#define TENSOR_ZERO_
#endif

/* Options of a factory. A zero field is the default: f32, strided, CPU, not shareable, row-major. */
typedef struct tensor_options {
	uint8_t dtype TENSOR_ZERO_;  /* enum tensor_dtype */
	uint8_t layout TENSOR_ZERO_; /* enum tensor_layout */
	tensor_device device TENSOR_ZERO_;
	uint8_t shareable TENSOR_ZERO_; /* allocate a buffer that can be shared, whatever its size */
	uint8_t memory_format TENSOR_ZERO_; /* enum tensor_memory_format */
	uint8_t reserved[2] TENSOR_ZERO_;
} tensor_options;

#ifndef __cplusplus /* C++: literals.hpp */
#define TENSOR_OPTIONS(...) ((tensor_options){ __VA_ARGS__ })
#endif

/* A number of any kind, for arguments declared as Scalar in a schema. */
enum tensor_scalar_kind {
	TENSOR_SCALAR_NONE = 0,
	TENSOR_SCALAR_BOOL,
	TENSOR_SCALAR_INT,
	TENSOR_SCALAR_UINT, /* above INT64_MAX */
	TENSOR_SCALAR_FLOAT,
	TENSOR_SCALAR_COMPLEX,
};

typedef struct tensor_scalar {
	union {
		int64_t i;  /* bool and int */
		uint64_t u; /* uint */
		double d;   /* float, and the real part of a complex */
	};
	double imag;
	uint32_t kind; /* enum tensor_scalar_kind */
	uint32_t reserved;
} tensor_scalar;

static inline tensor_scalar tensor_scalar_int(int64_t v)
{
	tensor_scalar s = { { 0 }, 0, TENSOR_SCALAR_INT, 0 };

	s.i = v;
	return s;
}

/* An integer of kind TENSOR_SCALAR_INT, unless it is above INT64_MAX. */
static inline tensor_scalar tensor_scalar_uint(uint64_t v)
{
	tensor_scalar s = { { 0 }, 0, TENSOR_SCALAR_INT, 0 };

	s.u = v;
	if (v > INT64_MAX)
		s.kind = TENSOR_SCALAR_UINT;
	return s;
}

static inline tensor_scalar tensor_scalar_bool(bool v)
{
	tensor_scalar s = { { 0 }, 0, TENSOR_SCALAR_BOOL, 0 };

	s.i = v;
	return s;
}

static inline tensor_scalar tensor_scalar_float(double v)
{
	tensor_scalar s = { { 0 }, 0, TENSOR_SCALAR_FLOAT, 0 };

	s.d = v;
	return s;
}

static inline tensor_scalar tensor_scalar_complex(double real, double imag)
{
	tensor_scalar s = { { 0 }, 0, TENSOR_SCALAR_COMPLEX, 0 };

	s.d = real;
	s.imag = imag;
	return s;
}

#ifndef __cplusplus /* C++: literals.hpp */
static inline tensor_scalar tensor_scalar_same(tensor_scalar s)
{
	return s;
}

static inline tensor_scalar tensor_scalar_from_complex(double _Complex z)
{
	return tensor_scalar_complex(__builtin_creal(z), __builtin_cimag(z));
}

/*
 * TENSOR_SCALAR(3), TENSOR_SCALAR(0.5), TENSOR_SCALAR((bool)x): the kind follows from the C type. Types wider
 * than double are rounded to double. A type without an entry (__int128, a pointer, a bit-field, which needs a
 * cast) is an error of the compiler, which names the type.
 */
#define TENSOR_SCALAR(x) _Generic((x), TENSOR_SCALAR_TYPES_)(x)

/* clang-format off */
#define TENSOR_AS_INT_(type)	 type: tensor_scalar_int
#define TENSOR_AS_UINT_(type)	 type: tensor_scalar_uint
#define TENSOR_AS_FLOAT_(type)	 type: tensor_scalar_float
#define TENSOR_AS_COMPLEX_(type) type: tensor_scalar_from_complex
/* clang-format on */
#define TENSOR_SCALAR_TYPES_                                                                   \
	TENSOR_FLOAT16_TYPES_ TENSOR_FLOATN_TYPES_ TENSOR_INT_TYPES_, TENSOR_AS_FLOAT_(float), \
		TENSOR_AS_FLOAT_(double), TENSOR_AS_FLOAT_(long double),                       \
		TENSOR_AS_COMPLEX_(float _Complex), TENSOR_AS_COMPLEX_(double _Complex),       \
		TENSOR_AS_COMPLEX_(long double _Complex), tensor_scalar : tensor_scalar_same
#define TENSOR_INT_TYPES_                      \
	bool : tensor_scalar_bool,             \
	       TENSOR_AS_INT_(char),           \
	       TENSOR_AS_INT_(signed char),    \
	       TENSOR_AS_INT_(unsigned char),  \
	       TENSOR_AS_INT_(short),          \
	       TENSOR_AS_INT_(unsigned short), \
	       TENSOR_AS_INT_(int),            \
	       TENSOR_AS_INT_(unsigned int),   \
	       TENSOR_AS_INT_(long),           \
	       TENSOR_AS_INT_(long long),      \
	       TENSOR_AS_UINT_(unsigned long), \
	       TENSOR_AS_UINT_(unsigned long long)

/* Types of ISO/IEC TS 18661-3, where the compiler has them. */
#ifdef __FLT16_MAX__
__extension__ typedef _Float16 tensor_float16_;
#define TENSOR_FLOAT16_TYPES_ TENSOR_AS_FLOAT_(tensor_float16_),
#else
#define TENSOR_FLOAT16_TYPES_
#endif
#if defined(__FLT32_MAX__) && defined(__FLT128_MAX__)
__extension__ typedef _Float32 tensor_float32_;
__extension__ typedef _Float64 tensor_float64_;
__extension__ typedef _Float128 tensor_float128_;
__extension__ typedef _Float32x tensor_float32x_;
__extension__ typedef _Float64x tensor_float64x_;
#define TENSOR_FLOATN_TYPES_                                                            \
	TENSOR_AS_FLOAT_(tensor_float32_), TENSOR_AS_FLOAT_(tensor_float64_),           \
		TENSOR_AS_FLOAT_(tensor_float128_), TENSOR_AS_FLOAT_(tensor_float32x_), \
		TENSOR_AS_FLOAT_(tensor_float64x_),
#else
#define TENSOR_FLOATN_TYPES_
#endif
#endif

/* For macros that declare a variable and may be nested. */
#define TENSOR_PASTE_(a, b)  TENSOR_PASTE__(a, b)
#define TENSOR_PASTE__(a, b) a##b

/* Lists are borrowed during the call; the library keeps no pointer to them. */
typedef struct tensor_ints {
	const int64_t *data;
	int64_t len; /* -1: not given */
} tensor_ints;

typedef struct tensor_floats {
	const double *data;
	int64_t len; /* -1: not given */
} tensor_floats;

typedef struct tensor_scalars {
	const tensor_scalar *data;
	int64_t len;
} tensor_scalars;

typedef struct tensor_list {
	tensor *const *data;
	int64_t len;
} tensor_list;

#define TENSOR_SHAPE(...) TENSOR_INTS(__VA_ARGS__)
#ifndef __cplusplus /* C++: literals.hpp */
/* Parameters. In C++ they are classes that TENSOR_SHAPE(2, 3) converts to. */
typedef tensor_ints tensor_ints_arg;
typedef tensor_floats tensor_floats_arg;
typedef tensor_scalars tensor_scalars_arg;
typedef tensor_list tensor_list_arg;

#define TENSOR_INTS(...)                                  \
	((tensor_ints){ (const int64_t[]){ __VA_ARGS__ }, \
			sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t) })
#define TENSOR_SCALAR_SHAPE ((tensor_ints){ NULL, 0 }) /* zero dimensions, one element */
#define TENSOR_NO_INTS	    ((tensor_ints){ NULL, -1 })
#define TENSOR_FLOATS(...)                                 \
	((tensor_floats){ (const double[]){ __VA_ARGS__ }, \
			  sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double) })
#define TENSOR_NO_FLOATS ((tensor_floats){ NULL, -1 })
#define TENSOR_SCALARS(...)                                                 \
	((tensor_scalars){ (const tensor_scalar[]){ __VA_ARGS__ },          \
			   sizeof((const tensor_scalar[]){ __VA_ARGS__ }) / \
				   sizeof(tensor_scalar) })
#define TENSOR_LIST(...)                                  \
	((tensor_list){ (tensor *const[]){ __VA_ARGS__ }, \
			sizeof((tensor *const[]){ __VA_ARGS__ }) / sizeof(tensor *) })
#endif

/* "Not given" for an optional integer, and for an optional tensor. NULL never means that: it is the
 * result of a failed operator, and propagates the failure. */
#define TENSOR_NONE	INT64_MIN
#define TENSOR_NO_FLOAT __builtin_nan("") /* an optional float that is not given: any NaN */
extern tensor *const tensor_none;

#ifdef __cplusplus
}
#include <tensor/literals.hpp>
#endif
#endif
