// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Conversions between any two dtypes: the kernel `copy`, and the conversion of operands of
 * pointwise kernels to the dtype of their loops. A conversion to bool compares with zero, one
 * from a float to an integer rounds towards zero, one from a complex number takes the real part.
 */
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec.h"

#include "base/reduced_float.h"
#include "kernels/cpu/simd/bits.h"

#define LOAD_f16(x)    f16_to_f32(x)
#define LOAD_bf16(x)   bf16_to_f32(x)
#define LOAD_e4m3fn(x) e4m3fn_to_f32(x)
#define LOAD_e5m2(x)   e5m2_to_f32(x)
#define LOAD_self(x)   (x)
/* Other libraries and views of other dtypes may write any byte; all but 0 are true, as in NumPy. */
#define LOAD_b8(x) ((x) != 0)

#define STORE_b8(x) ((x) != 0)
/* By way of i64: C leaves the conversion of negative floats to unsigned integers undefined. */
#define STORE_u8(x)  ((uint8_t)(int64_t)(x))
#define STORE_i8(x)  ((int8_t)(x))
#define STORE_i16(x) ((int16_t)(x))
#define STORE_i32(x) ((int32_t)(x))
#define STORE_i64(x) ((int64_t)(x))
#define STORE_u16(x) ((uint16_t)(int64_t)(x))
#define STORE_u32(x) ((uint32_t)(int64_t)(x))
#define STORE_u64(x)                                       \
	_Generic((x), float                                \
		 : f64_to_u64((double)(x)), double         \
		 : f64_to_u64((double)(x)), float complex  \
		 : f64_to_u64((double)(x)), double complex \
		 : f64_to_u64((double)(x)), default        \
		 : (uint64_t)(x))
#define STORE_e4m3fn(x) f32_to_e4m3fn((float)(x))
#define STORE_e5m2(x)	f32_to_e5m2((float)(x))
#define STORE_f16(x)	f32_to_f16((float)(x))
#define STORE_bf16(x)	f32_to_bf16((float)(x))
#define STORE_f32(x)	((float)(x))
#define STORE_f64(x)	((double)(x))
#define STORE_c64(x)	((float complex)(x))
#define STORE_c128(x)	((double complex)(x))

/* convert_FROM_TO(), for source dtype sd of type S and destination dtype dd of type D. */
#define TO(sd, S, LOAD, dd, D) UNARY_LOOP(convert_##sd##_##dd, S, D, STORE_##dd(LOAD(x)))
#define TO_ALL(sd, S, LOAD)                 \
	TO(sd, S, LOAD, b8, uint8_t)        \
	TO(sd, S, LOAD, u8, uint8_t)        \
	TO(sd, S, LOAD, i8, int8_t)         \
	TO(sd, S, LOAD, i16, int16_t)       \
	TO(sd, S, LOAD, i32, int32_t)       \
	TO(sd, S, LOAD, i64, int64_t)       \
	TO(sd, S, LOAD, u16, uint16_t)      \
	TO(sd, S, LOAD, u32, uint32_t)      \
	TO(sd, S, LOAD, u64, uint64_t)      \
	TO(sd, S, LOAD, e4m3fn, uint8_t)    \
	TO(sd, S, LOAD, e5m2, uint8_t)      \
	TO(sd, S, LOAD, f64, double)        \
	TO(sd, S, LOAD, c64, float complex) \
	TO(sd, S, LOAD, c128, double complex)
#define FROM_LOAD(sd, S, LOAD)          \
	TO_ALL(sd, S, LOAD)             \
	TO(sd, S, LOAD, f16, uint16_t)  \
	TO(sd, S, LOAD, bf16, uint16_t) \
	TO(sd, S, LOAD, f32, float)
#define FROM(sd, S, SD) FROM_LOAD(sd, S, LOAD_self)
FROM_LOAD(b8, uint8_t, LOAD_b8)
DTYPES_INT(FROM)
FROM(f64, double, TENSOR_F64)
DTYPES_COMPLEX(FROM)
TO_ALL(f32, float, LOAD_self)
TO(f32, float, LOAD_self, bf16, uint16_t)
TO(f32, float, LOAD_self, f32, float)
TO_ALL(bf16, uint16_t, LOAD_bf16)
TO(bf16, uint16_t, LOAD_bf16, f16, uint16_t)
TO(bf16, uint16_t, LOAD_bf16, f32, float)
TO_ALL(f16, uint16_t, LOAD_f16)
TO(f16, uint16_t, LOAD_f16, bf16, uint16_t)
#define FROM_F8(sd)                                \
	TO_ALL(sd, uint8_t, LOAD_##sd)             \
	TO(sd, uint8_t, LOAD_##sd, f16, uint16_t)  \
	TO(sd, uint8_t, LOAD_##sd, bf16, uint16_t) \
	TO(sd, uint8_t, LOAD_##sd, f32, float)
FROM_F8(e4m3fn)
FROM_F8(e5m2)

/*
 * f16 and f32: CONTIGUOUS() converts as many elements as it can by instructions for vectors, ONE()
 * the others.
 */
#define WITH_VECTORS(NAME, S, D, CONTIGUOUS, ONE)                                             \
	UNARY_LOOP(NAME##_any, S, D, ONE(x))                                                  \
	static void NAME(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, \
			 int64_t n1, const void *params)                                      \
	{                                                                                     \
		if (s0[0] != sizeof(D) || s0[1] != sizeof(S)) {                               \
			NAME##_any(data, s0, s1, n0, n1, params);                             \
			return;                                                               \
		}                                                                             \
		for (int64_t j = 0; j < n1; j++) {                                            \
			D *to = (D *)(data[0] + j * s1[0]);                                   \
			const S *from = (const S *)(data[1] + j * s1[1]);                     \
			int64_t i = CONTIGUOUS(to, from, n0);                                 \
                                                                                              \
			for (; i < n0; i++)                                                   \
				to[i] = ONE(from[i]);                                         \
		}                                                                             \
	}
WITH_VECTORS(convert_f16_f32, uint16_t, float, vec_f16_to_f32, f16_to_f32)
WITH_VECTORS(convert_f32_f16, float, uint16_t, vec_f32_to_f16, f32_to_f16)

/* Elements of equal dtypes are copied by bits_loop(): a conversion to f32 can change a NaN. */
#define convert_f16_f16	  NULL
#define convert_bf16_bf16 NULL
#define COLUMN(dd, F16, F32)                                                                    \
	{                                                                                       \
		[TENSOR_BOOL] = convert_b8_##dd, [TENSOR_U8] = convert_u8_##dd,                 \
		[TENSOR_I8] = convert_i8_##dd, [TENSOR_I16] = convert_i16_##dd,                 \
		[TENSOR_I32] = convert_i32_##dd, [TENSOR_I64] = convert_i64_##dd,               \
		[TENSOR_F16] = F16, [TENSOR_BF16] = convert_bf16_##dd, [TENSOR_F32] = F32,      \
		[TENSOR_F64] = convert_f64_##dd, [TENSOR_C64] = convert_c64_##dd,               \
		[TENSOR_C128] = convert_c128_##dd, [TENSOR_U16] = convert_u16_##dd,             \
		[TENSOR_U32] = convert_u32_##dd, [TENSOR_U64] = convert_u64_##dd,               \
		[TENSOR_F8_E4M3FN] = convert_e4m3fn_##dd, [TENSOR_F8_E5M2] = convert_e5m2_##dd, \
	}
/* [to][from]; entries of equal dtypes are not used. */
static const iter_loop conversions[TENSOR_DTYPE_COUNT][TENSOR_DTYPE_COUNT] = {
	[TENSOR_BOOL] = COLUMN(b8, convert_f16_b8, convert_f32_b8),
	[TENSOR_U8] = COLUMN(u8, convert_f16_u8, convert_f32_u8),
	[TENSOR_I8] = COLUMN(i8, convert_f16_i8, convert_f32_i8),
	[TENSOR_I16] = COLUMN(i16, convert_f16_i16, convert_f32_i16),
	[TENSOR_I32] = COLUMN(i32, convert_f16_i32, convert_f32_i32),
	[TENSOR_I64] = COLUMN(i64, convert_f16_i64, convert_f32_i64),
	[TENSOR_F16] = COLUMN(f16, convert_f16_f16, convert_f32_f16),
	[TENSOR_BF16] = COLUMN(bf16, convert_f16_bf16, convert_f32_bf16),
	[TENSOR_F32] = COLUMN(f32, convert_f16_f32, convert_f32_f32),
	[TENSOR_F64] = COLUMN(f64, convert_f16_f64, convert_f32_f64),
	[TENSOR_C64] = COLUMN(c64, convert_f16_c64, convert_f32_c64),
	[TENSOR_C128] = COLUMN(c128, convert_f16_c128, convert_f32_c128),
	[TENSOR_U16] = COLUMN(u16, convert_f16_u16, convert_f32_u16),
	[TENSOR_U32] = COLUMN(u32, convert_f16_u32, convert_f32_u32),
	[TENSOR_U64] = COLUMN(u64, convert_f16_u64, convert_f32_u64),
	[TENSOR_F8_E4M3FN] = COLUMN(e4m3fn, convert_f16_e4m3fn, convert_f32_e4m3fn),
	[TENSOR_F8_E5M2] = COLUMN(e5m2, convert_f16_e5m2, convert_f32_e5m2),
};

static iter_loop copy_loop(enum tensor_dtype to, enum tensor_dtype from)
{
	return to == from ? CPU_NAME(bits_loop)(dtype_sizes[to]) : conversions[to][from];
}

/*
 * The size of the elements with which the operands of a copy can be read: rows of 2, 4, 8 or 16 adjacent bytes that
 * are aligned to their size in both become single elements. A loop over rows of four elements takes four times as
 * long.
 */
static size_t wide_elements(struct tensor_iter *it, size_t size)
{
	int64_t row = it->ndim > 1 ? it->shape[0] * (int64_t)size : 0;
	uintptr_t bits = (uintptr_t)it->data[0] | (uintptr_t)it->data[1];

	if (row < 2 || row > 16 || (row & (row - 1)) || it->shape[0] == 1 ||
	    it->strides[0][0] != (int64_t)size || it->strides[1][0] != (int64_t)size)
		return size;
	for (int d = 1; d < it->ndim; d++)
		bits |= (uintptr_t)it->strides[0][d] | (uintptr_t)it->strides[1][d];
	if (bits & (row - 1))
		return size;
	it->numel /= it->shape[0];
	it->ndim--;
	for (int d = 0; d < it->ndim; d++) {
		it->shape[d] = it->shape[d + 1];
		for (int i = 0; i < 2; i++)
			it->strides[i][d] = it->strides[i][d + 1];
	}
	return row;
}

static int cpu_copy(struct tensor_iter *it, enum tensor_dtype to, enum tensor_dtype from)
{
	const uint8_t want[] = { to, from };

	if (to == from) {
		size_t size = wide_elements(it, dtype_sizes[to]);

		iter_run(it, CPU_NAME(bits_loop)(size), NULL);
		return 0;
	}
	if (it->direct)
		iter_run(it, copy_loop(to, from), NULL);
	else
		iter_run_packed(it, copy_loop(to, from), NULL, want, copy_loop);
	return 0;
}

void CPU_NAME(convert)(void *to, enum tensor_dtype to_dtype, int64_t to_stride, const void *from,
		       enum tensor_dtype from_dtype, int64_t from_stride, int64_t n)
{
	char *const data[] = { to, (char *)from };
	const int64_t s0[] = { to_stride, from_stride }, s1[] = { 0, 0 };

	copy_loop(to_dtype, from_dtype)(data, s0, s1, n, 1, NULL);
}

/* ---- pointwise kernels ---- */

/* Runs a loop whose operands have the dtypes `want`; reduced: see iter_run_packed_reduced(). */
static int run_as(const char *name, struct tensor_iter *it, iter_loop loop, const uint8_t *want,
		  const void *params, bool reduced)
{
	bool same = it->direct;

	if (unlikely(!loop))
		return tensor_kernel_no_dtype(name, it->dtype, "cpu");
	for (int i = 0; i < it->nops; i++)
		same &= iter_dtype(it, i) == want[i];
	if (likely(same))
		iter_run(it, loop, params);
	else if (reduced)
		iter_run_packed_reduced(it, loop, params, want, copy_loop);
	else
		iter_run_packed(it, loop, params, want, copy_loop);
	return 0;
}

/*
 * Sets want[] for a loop for f16 or bf16, which reads inputs of stride 0 as f32: see loops.h. An
 * input that repeats an element of each row keeps its dtype where rows are joined, since its block
 * has the elements of several rows. Returns false if the loop has no form for the strides.
 */
static bool reduced_float_wants(const struct tensor_iter *it, uint8_t *want)
{
	bool joined = iter_joins_rows(it);
	int repeated = 0;

	if (!it->ndim)
		return false;
	for (int i = it->nops - 1; i > 0; i--) {
		bool one = !it->strides[i][0];

		if (one && joined && it->ndim > 1 && it->strides[i][1]) {
			if (it->direct)
				return false;
			one = false;
		}
		if (one && !iter_may_repeat(it, i))
			return false;
		want[i] = one ? TENSOR_F32 : it->dtype;
		repeated += one;
	}
	return repeated <= 1;
}

/* pointwise_run() for an iterator that needs no expansion. */
static int run_loops(const char *name, struct tensor_iter *it, const iter_loop *loops,
		     enum tensor_dtype result, const void *params)
{
	enum tensor_dtype dtype = it->dtype, wide = dtype_wide(dtype);
	bool own = it->uniform && loops[dtype] && it->op[0]->dtype == (result ? result : dtype);
	uint8_t want[ITER_OPERANDS];
	bool reduced = wide != dtype && own && reduced_float_wants(it, want);

	/* A loop for f16 or bf16 is an optimization for operands that all have that dtype. */
	if (!reduced) {
		dtype = wide;
		for (int i = 1; i < it->nops; i++)
			want[i] = dtype;
	}
	want[0] = result ? result : dtype;
	return run_as(name, it, loops[dtype], want, params, reduced);
}

int CPU_NAME(pointwise_run_as)(const char *name, struct tensor_iter *it, iter_loop loop,
			       const uint8_t *want, const void *params)
{
	struct tensor_storage *block = NULL;
	int err;

	if (unlikely(it->ndim > 2) && iter_expand(it, copy_loop, &block) < 0)
		return -ENOMEM;
	err = run_as(name, it, loop, want, params, false);
	if (block)
		storage_put(block);
	return err;
}

int CPU_NAME(pointwise_run)(const char *name, struct tensor_iter *it, const iter_loop *loops,
			    enum tensor_dtype result, const void *params)
{
	enum tensor_dtype dtype = it->dtype;
	struct tensor_storage *block = NULL;
	int err;

	if (unlikely(it->ndim > 2) && iter_expand(it, copy_loop, &block) < 0)
		return -ENOMEM;
	if (likely(it->direct && it->uniform && loops[dtype] && dtype_wide(dtype) == dtype &&
		   it->op[0]->dtype == (result ? result : dtype))) {
		iter_run(it, loops[dtype], params);
		err = 0;
	} else
		err = run_loops(name, it, loops, result, params);
	if (block)
		storage_put(block);
	return err;
}

CPU_KERNELS(KERNEL(copy))
