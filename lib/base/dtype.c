// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Element types: size, name, promotion, conversion of one element to a scalar. Promotion has
 * categories (bool < integer < float < complex). Within an operator, tensors with dimensions rank
 * above 0-d tensors, and those above scalars; an operand of lower rank counts only if its category
 * is higher.
 */
#include "base/dtype.h"

#include "base/error.h"
#include "base/reduced_float.h"

const uint8_t dtype_sizes[TENSOR_DTYPE_COUNT] = {
	[TENSOR_BOOL] = 1,    [TENSOR_U8] = 1,	[TENSOR_I8] = 1,  [TENSOR_I16] = 2,
	[TENSOR_I32] = 4,     [TENSOR_I64] = 8, [TENSOR_F16] = 2, [TENSOR_BF16] = 2,
	[TENSOR_F32] = 4,     [TENSOR_F64] = 8, [TENSOR_C64] = 8, [TENSOR_C128] = 16,
	[TENSOR_U16] = 2,     [TENSOR_U32] = 4, [TENSOR_U64] = 8, [TENSOR_F8_E4M3FN] = 1,
	[TENSOR_F8_E5M2] = 1,
};

static const char *const dtype_names[TENSOR_DTYPE_COUNT] = {
	"none", "bool", "u8",  "i8",   "i16", "i32", "i64", "f16",	 "bf16",
	"f32",	"f64",	"c64", "c128", "u16", "u32", "u64", "f8_e4m3fn", "f8_e5m2",
};

TENSOR_EXPORT size_t tensor_itemsize(enum tensor_dtype dtype)
{
	return (unsigned)dtype < TENSOR_DTYPE_COUNT ? dtype_sizes[dtype] : 0;
}

TENSOR_EXPORT const char *tensor_dtype_name(enum tensor_dtype dtype)
{
	return (unsigned)dtype < TENSOR_DTYPE_COUNT ? dtype_names[dtype] : "?";
}

TENSOR_EXPORT const char *tensor_layout_name(enum tensor_layout layout)
{
	static const char *const names[TENSOR_LAYOUT_COUNT] = { "none", "strided", "sparse_coo",
								"sparse_csr", "blocked" };

	return (unsigned)layout < TENSOR_LAYOUT_COUNT ? names[layout] : "?";
}

static int category(enum tensor_dtype d)
{
	if (dtype_is_int(d))
		return 2;
	if (dtype_is_float(d))
		return 3;
	return d == TENSOR_BOOL ? 1 : d == TENSOR_DTYPE_NONE ? 0 : 4;
}

static enum tensor_dtype promote_float(enum tensor_dtype a, enum tensor_dtype b)
{
	/* f16 and bf16 promote to f32; otherwise the wider dtype, which has the higher number. */
	if ((a == TENSOR_F16 && b == TENSOR_BF16) || (a == TENSOR_BF16 && b == TENSOR_F16))
		return TENSOR_F32;
	return a > b ? a : b;
}

static enum tensor_dtype promote_int(enum tensor_dtype a, enum tensor_dtype b)
{
	static const uint8_t twice[] = {
		[1] = TENSOR_I16, [2] = TENSOR_I32, [4] = TENSOR_I64, [8] = TENSOR_DTYPE_NONE
	};
	int wa = dtype_sizes[a], wb = dtype_sizes[b];
	bool ua = dtype_is_unsigned(a), ub = dtype_is_unsigned(b);

	/*
	 * The wider dtype; an unsigned dtype that is not narrower needs a signed one of twice its
	 * width.
	 */
	if (ua == ub)
		return wa > wb ? a : b;
	if (ua)
		return wa < wb ? b : twice[wa];
	return wb < wa ? a : twice[wb];
}

static enum tensor_dtype no_common_dtype(enum tensor_dtype a, enum tensor_dtype b)
{
	tensor_fail(EINVAL, "dtypes %s and %s have no common dtype; convert one of them",
		    dtype_names[a], dtype_names[b]);
	return TENSOR_DTYPE_NONE;
}

TENSOR_EXPORT enum tensor_dtype tensor_promote_types(enum tensor_dtype a, enum tensor_dtype b)
{
	int ca = category(a), cb = category(b);
	enum tensor_dtype common;

	if (a == b)
		return a;
	if (dtype_is_f8(a) || dtype_is_f8(b))
		return no_common_dtype(a, b);
	if (ca == 4 || cb == 4) {
		bool wide = a == TENSOR_C128 || b == TENSOR_C128 || a == TENSOR_F64 ||
			    b == TENSOR_F64;

		return wide ? TENSOR_C128 : TENSOR_C64;
	}
	if (ca != cb)
		return ca > cb ? a : b;
	if (ca == 3)
		return promote_float(a, b);
	common = promote_int(a, b);
	return common ? common : no_common_dtype(a, b);
}

enum tensor_dtype promote_lower_rank(enum tensor_dtype a, enum tensor_dtype b)
{
	if (category(b) <= category(a))
		return a;
	if (category(b) == 4 && category(a) == 3)
		return dtype_is_f8(a)  ? no_common_dtype(a, b) :
		       a == TENSOR_F64 ? TENSOR_C128 :
					 TENSOR_C64;
	return b;
}

enum tensor_dtype scalar_dtype(tensor_scalar s)
{
	static const uint8_t of_kind[] = { TENSOR_BOOL, TENSOR_BOOL, TENSOR_I64,
					   TENSOR_U64,	TENSOR_F32,  TENSOR_C64 };

	return of_kind[s.kind];
}

int64_t dtype_least(enum tensor_dtype d)
{
	return d == TENSOR_BOOL || dtype_is_unsigned(d) ? 0 : -dtype_greatest(d) - 1;
}

int64_t dtype_greatest(enum tensor_dtype d)
{
	int bits = 8 * dtype_sizes[d] - !dtype_is_unsigned(d);

	return d == TENSOR_BOOL ? 1 : bits > 62 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

enum tensor_dtype dtype_to_float(enum tensor_dtype d)
{
	return category(d) < 3 ? TENSOR_F32 : d;
}

/* Above INT64_MAX the value becomes a float, which every operator takes. */
static tensor_scalar scalar_unsigned(uint64_t u)
{
	return u > INT64_MAX ? tensor_scalar_float((double)u) : tensor_scalar_int((int64_t)u);
}

int element_load(const void *p, enum tensor_dtype dtype, tensor_scalar *value)
{
	switch (dtype) {
	case TENSOR_BOOL:
		*value = tensor_scalar_bool(*(const uint8_t *)p);
		return 0;
	case TENSOR_U8:
		*value = tensor_scalar_int(*(const uint8_t *)p);
		return 0;
	case TENSOR_I8:
		*value = tensor_scalar_int(*(const int8_t *)p);
		return 0;
	case TENSOR_I16:
		*value = tensor_scalar_int(*(const int16_t *)p);
		return 0;
	case TENSOR_I32:
		*value = tensor_scalar_int(*(const int32_t *)p);
		return 0;
	case TENSOR_I64:
		*value = tensor_scalar_int(*(const int64_t *)p);
		return 0;
	case TENSOR_U16:
		*value = tensor_scalar_int(*(const uint16_t *)p);
		return 0;
	case TENSOR_U32:
		*value = tensor_scalar_int(*(const uint32_t *)p);
		return 0;
	case TENSOR_U64:
		*value = scalar_unsigned(*(const uint64_t *)p);
		return 0;
	case TENSOR_F8_E4M3FN:
		*value = tensor_scalar_float(e4m3fn_to_f32(*(const uint8_t *)p));
		return 0;
	case TENSOR_F8_E5M2:
		*value = tensor_scalar_float(e5m2_to_f32(*(const uint8_t *)p));
		return 0;
	case TENSOR_F16:
		*value = tensor_scalar_float(f16_to_f32(*(const uint16_t *)p));
		return 0;
	case TENSOR_BF16:
		*value = tensor_scalar_float(bf16_to_f32(*(const uint16_t *)p));
		return 0;
	case TENSOR_C64:
		*value = tensor_scalar_complex(((const float *)p)[0], ((const float *)p)[1]);
		return 0;
	case TENSOR_C128:
		*value = tensor_scalar_complex(((const double *)p)[0], ((const double *)p)[1]);
		return 0;
	case TENSOR_F32:
		*value = tensor_scalar_float(*(const float *)p);
		return 0;
	case TENSOR_F64:
		*value = tensor_scalar_float(*(const double *)p);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

TENSOR_EXPORT int tensor_element_store(void *p, enum tensor_dtype dtype, tensor_scalar v)
{
	if (unlikely(v.kind == TENSOR_SCALAR_UINT) && dtype_is_int(dtype) && dtype != TENSOR_U64)
		return -EOVERFLOW;
	switch (dtype) {
	case TENSOR_BOOL:
		*(uint8_t *)p = v.kind >= TENSOR_SCALAR_FLOAT ? v.d != 0 || scalar_imag(v) != 0 :
								v.i != 0;
		return 0;
	case TENSOR_U8:
	case TENSOR_I8:
		*(uint8_t *)p = (uint8_t)scalar_int(v);
		return 0;
	case TENSOR_I16:
		*(int16_t *)p = (int16_t)scalar_int(v);
		return 0;
	case TENSOR_I32:
		*(int32_t *)p = (int32_t)scalar_int(v);
		return 0;
	case TENSOR_I64:
		*(int64_t *)p = scalar_int(v);
		return 0;
	case TENSOR_U16:
		*(uint16_t *)p = (uint16_t)scalar_int(v);
		return 0;
	case TENSOR_U32:
		*(uint32_t *)p = (uint32_t)scalar_int(v);
		return 0;
	case TENSOR_U64:
		*(uint64_t *)p = v.kind >= TENSOR_SCALAR_FLOAT ? f64_to_u64(v.d) : (uint64_t)v.i;
		return 0;
	case TENSOR_F8_E4M3FN:
		*(uint8_t *)p = f32_to_e4m3fn((float)scalar_double(v));
		return 0;
	case TENSOR_F8_E5M2:
		*(uint8_t *)p = f32_to_e5m2((float)scalar_double(v));
		return 0;
	case TENSOR_F16:
		*(uint16_t *)p = f32_to_f16((float)scalar_double(v));
		return 0;
	case TENSOR_BF16:
		*(uint16_t *)p = f32_to_bf16((float)scalar_double(v));
		return 0;
	case TENSOR_C64:
		((float *)p)[0] = (float)scalar_double(v);
		((float *)p)[1] = (float)scalar_imag(v);
		return 0;
	case TENSOR_C128:
		((double *)p)[0] = scalar_double(v);
		((double *)p)[1] = scalar_imag(v);
		return 0;
	case TENSOR_F32:
		*(float *)p = (float)scalar_double(v);
		return 0;
	case TENSOR_F64:
		*(double *)p = scalar_double(v);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}
