// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * mm and bmm. Each matrix is computed by the function of its dtype (matmul_f32.c, matmul_f64.c,
 * matmul_reduced_float.c, matmul_int.c). A complex product is computed as products of the real and
 * imaginary parts, which are real matrices with twice the strides.
 */
#include "kernels/cpu/linalg/matmul.h"

#include "iter/parallel.h"
#include "kernels/abi/product.h"

#define WORK	   (1 << 16) /* multiplications in a chunk of small products */
#define WORK_LARGE (1 << 21) /* multiplications from which one product is computed in parallel */

static void swap(int64_t *x, int64_t *y)
{
	int64_t tmp = *x;

	*x = *y;
	*y = tmp;
}

/* c^T = b^T a^T */
static void transpose(struct product *p)
{
	const void *a = p->a;

	p->a = p->b;
	p->b = a;
	swap(&p->m, &p->n);
	swap(&p->rsa, &p->csb);
	swap(&p->csa, &p->rsb);
	swap(&p->rsc, &p->csc);
}

/*
 * The transposed product is faster if columns of c are contiguous, or if rows are shorter than
 * columns and than most vectors: the functions of a dtype write rows of c by vectors.
 */
static bool better_transposed(const struct product *p)
{
	if (p->n <= 4)
		return p->m > p->n;
	return p->m > 4 && p->csc != 1 && p->rsc == 1;
}

/* ---- bias ---- */

/* Rows of c that get the bias in a chunk of parallel work. */
#define BIAS_ROWS 4096

struct product_bias {
	const struct product *p;
	int64_t size; /* bytes of an element */
};

static void fill_rows(int64_t begin, int64_t end, void *ctx)
{
	const struct product_bias *f = ctx;

	for (int64_t i = begin; i < end; i++)
		for (int64_t j = 0; j < f->p->n; j++)
			memcpy((char *)f->p->c + (i * f->p->rsc + j * f->p->csc) * f->size,
			       (const char *)f->p->bias + j * f->size, f->size);
}

/* Copies the bias to c: a transposed product would need it for each row. */
static void fill_with_bias(struct product *p, int64_t size)
{
	struct product_bias f = { p, size };

	if (p->bias && p->beta != 0)
		parallel_for(0, p->m, BIAS_ROWS, fill_rows, &f);
	p->bias = NULL;
}

/* ---- complex ---- */

#define LOOPS_FILE "kernels/cpu/linalg/matmul_scale_loops.h"
#include "kernels/cpu/simd/each_float.h"

/* Strides in p are in real numbers, of `size` bytes. */
static int complex_product(const struct product *p, product_fn fn, size_t size, double alpha_im)
{
	/*
	 * The parts of c, a and b of a real product, the part of alpha that it has, and the sign.
	 */
	static const struct {
		uint8_t c, a, b, alpha;
		int8_t sign;
	} terms[] = {
		{ 0, 0, 0, 0, 1 },  { 0, 1, 1, 0, -1 }, { 1, 0, 1, 0, 1 }, { 1, 1, 0, 0, 1 },
		{ 0, 0, 1, 1, -1 }, { 0, 1, 0, 1, -1 }, { 1, 0, 0, 1, 1 }, { 1, 1, 1, 1, -1 }
	};
	int n = alpha_im != 0 ? 8 : 4, err = 0;
	bool begun[2] = { false, false };

	for (int i = 0; i < n && !err; i++) {
		struct product q = *p;

		q.a = (const char *)p->a + terms[i].a * size;
		q.b = (const char *)p->b + terms[i].b * size;
		q.c = (char *)p->c + terms[i].c * size;
		q.alpha = terms[i].sign * (terms[i].alpha ? alpha_im : p->alpha);
		q.beta = begun[terms[i].c] ? 1 : p->beta;
		begun[terms[i].c] = true;
		err = fn(&q);
	}
	return err;
}

static int complex_matrix(struct product *p, enum tensor_dtype dtype, double alpha_im,
			  double beta_im)
{
	bool single = dtype == TENSOR_C64;

	p->rsa *= 2, p->csa *= 2, p->rsb *= 2, p->csb *= 2, p->rsc *= 2, p->csc *= 2;
	if (beta_im != 0) {
		(single ? scale_complex_f32 : scale_complex_f64)(p, p->beta, beta_im);
		p->beta = 1;
	}
	return complex_product(p, single ? CPU_NAME(matmul_f32) : CPU_NAME(matmul_f64),
			       single ? sizeof(float) : sizeof(double), alpha_im);
}

/* ---- batches ---- */

struct batch {
	struct product first;
	int64_t sa, sb, sc; /* bytes between adjacent matrices */
	enum tensor_dtype dtype;
	product_fn fn; /* NULL for complex dtypes */
	double alpha_im, beta_im;
	_Atomic bool failed;
};

static const product_fn products[TENSOR_DTYPE_COUNT] = {
	[TENSOR_U8] = CPU_NAME(matmul_u8),     [TENSOR_I8] = CPU_NAME(matmul_i8),
	[TENSOR_I16] = CPU_NAME(matmul_i16),   [TENSOR_I32] = CPU_NAME(matmul_i32),
	[TENSOR_I64] = CPU_NAME(matmul_i64),   [TENSOR_F16] = CPU_NAME(matmul_f16),
	[TENSOR_BF16] = CPU_NAME(matmul_bf16), [TENSOR_F32] = CPU_NAME(matmul_f32),
	[TENSOR_F64] = CPU_NAME(matmul_f64),   [TENSOR_U16] = CPU_NAME(matmul_i16),
	[TENSOR_U32] = CPU_NAME(matmul_i32),   [TENSOR_U64] = CPU_NAME(matmul_i64),
};

static int compute_one(const struct batch *t, int64_t i)
{
	struct product p = t->first;

	p.a = (const char *)p.a + i * t->sa;
	p.b = (const char *)p.b + i * t->sb;
	p.c = (char *)p.c + i * t->sc;
	return t->fn ? t->fn(&p) : complex_matrix(&p, t->dtype, t->alpha_im, t->beta_im);
}

static void compute_some(int64_t begin, int64_t end, void *ctx)
{
	struct batch *t = ctx;

	for (int64_t i = begin; i < end; i++)
		if (compute_one(t, i) < 0)
			t->failed = true;
}

/*
 * Large products of a small batch are computed one after the other, each in parallel, unless the
 * threads can share the products evenly; small ones in parallel with each other. Each product has
 * the same bits in both ways.
 */
static int compute_batch(struct batch *t, int64_t count)
{
	const struct product *p = &t->first;
	int64_t work = (p->k + 1) * p->m * p->n;

	if (!p->m || !p->n || !count)
		return 0;
	if (count == 1)
		return compute_one(t, 0);
	if (work >= WORK_LARGE && count < 8 && count % tensor_get_num_threads())
		compute_some(0, count, t);
	else
		parallel_for(0, count, work < WORK ? WORK / work : 1, compute_some, t);
	return t->failed ? tensor_fail(ENOMEM, "bmm: no memory for a block") : 0;
}

static inline __attribute__((always_inline)) int
matmul(const char *name, const tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha,
       tensor_scalar beta, const void *bias, struct product_activation *activation)
{
	int64_t size = itemsize(out);
	int d = out->ndim - 2; /* dimension of rows */
	struct batch t = {
		.first = { .m = out->sizes[d],
			   .n = out->sizes[d + 1],
			   .k = a->sizes[d + 1],
			   .a = a->data,
			   .b = b->data,
			   .c = out->data,
			   .rsa = a->strides[d],
			   .csa = a->strides[d + 1],
			   .rsb = b->strides[d],
			   .csb = b->strides[d + 1],
			   .rsc = out->strides[d],
			   .csc = out->strides[d + 1],
			   .alpha = scalar_double(alpha),
			   .beta = scalar_double(beta),
			   .alpha_int = scalar_int(alpha),
			   .beta_int = scalar_int(beta),
			   .bias = bias,
			   .activation = activation },
		.sa = d ? a->strides[0] * size : 0,
		.sb = d ? b->strides[0] * size : 0,
		.sc = d ? out->strides[0] * size : 0,
		.dtype = out->dtype,
		/* An empty product of bool matrices only writes zeros, as that of u8. */
		.fn = products[out->dtype == TENSOR_BOOL && !(a->numel && b->numel) ? TENSOR_U8 :
										      out->dtype],
		.alpha_im = alpha.imag,
		.beta_im = beta.imag,
	};

	if (!t.fn && !dtype_is_complex(out->dtype))
		return tensor_kernel_no_dtype(name, out->dtype, "cpu");
	if (better_transposed(&t.first)) {
		fill_with_bias(&t.first, size);
		transpose(&t.first);
		swap(&t.sa, &t.sb);
	}
	return compute_batch(&t, d ? out->sizes[0] : 1);
}

/* ---- mm and bmm ---- */

static int cpu_mm(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha,
		  tensor_scalar beta)
{
	return matmul("mm", out, a, b, alpha, beta, NULL, NULL);
}

static int cpu_mm_epilogue(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha,
			   tensor_scalar beta, const struct mm_epilogue *epilogue)
{
	struct product_activation f = { epilogue->activation, { out, out }, false };
	int err = matmul("mm_epilogue", out, a, b, alpha, beta,
			 epilogue->bias ? epilogue->bias->data : NULL, f.fn ? &f : NULL);

	if (!err && f.failed)
		err = tensor_fail(ENOMEM, "mm: no memory for the activation of a block");
	return err;
}

static int cpu_bmm(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha,
		   tensor_scalar beta)
{
	return matmul("bmm", out, a, b, alpha, beta, NULL, NULL);
}

/* ---- products with a matrix that is packed once, of f16 and bf16; others read it in place ---- */

static int cpu_mm_pack(const tensor *b, int64_t m, tensor **packed)
{
	product_pack_fn pack = b->dtype == TENSOR_BF16 ? CPU_NAME(matmul_bf16_pack) :
							 CPU_NAME(matmul_f16_pack);
	struct product p = { .m = m,
			     .k = b->sizes[0],
			     .n = b->sizes[1],
			     .b = b->data,
			     .rsb = b->strides[0],
			     .csb = b->strides[1],
			     .csc = 1 };
	int64_t bytes;

	*packed = NULL;
	bytes = dtype_is_reduced_float(b->dtype) && b->numel ? (int64_t)pack(&p, NULL) : 0;
	if (!bytes)
		return 0;
	*packed = tensor_new(TENSOR_DEVICE_CPU, TENSOR_U8, &bytes, 1);
	if (!*packed)
		return -thread()->error.code;
	pack(&p, (*packed)->data);
	return 0;
}

static int cpu_mm_packed(tensor *out, const tensor *a, const tensor *b, const tensor *packed,
			 double beta)
{
	struct product p = { .m = out->sizes[0],
			     .n = out->sizes[1],
			     .k = a->sizes[1],
			     .a = a->data,
			     .b = b->data,
			     .c = out->data,
			     .rsa = a->strides[0],
			     .csa = a->strides[1],
			     .rsb = b->strides[0],
			     .csb = b->strides[1],
			     .rsc = out->strides[0],
			     .csc = 1,
			     .alpha = 1,
			     .beta = beta,
			     .packed = packed->data };

	return products[out->dtype](&p);
}

CPU_KERNELS(KERNEL(mm), KERNEL(mm_epilogue), KERNEL(bmm), KERNEL(mm_pack), KERNEL(mm_packed))
