// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions by cuDNN (dnn/), and what it cannot compute, or is not there to compute: matrix
 * products with columns of the images (im2col) by cuBLASLt, for some images at a time so that the
 * columns have a limited size. One tap with stride 1 needs no columns, and no cuDNN. Few channels in
 * each of several groups, and dtypes that are not floats, are loops over the taps.
 *
 * Columns have a row for each channel and tap, in which the outputs of all images are adjacent.
 */
#include "kernels/cuda/dnn/convolve.h"
#include "kernels/cuda/linalg/mm.h"
#include "kernels/cuda/nn/windows.h"

#include "kernels/cuda/kernels.h"

#define COLUMNS_BYTES (256ll << 20)
#define LOOP_CHANNELS 4 /* most channels of a group for loops over the taps */

struct conv {
	struct cuda_call call;
	struct cuda_conv c;
	enum tensor_dtype from, to; /* of operands and result */
	bool pointwise;		    /* the image is its own columns */
	int64_t rows;		    /* of the columns of one group */
	int64_t chunk;		    /* images whose columns are made together */
};

static bool is_reduced(enum tensor_dtype d)
{
	return d == TENSOR_BF16 || d == TENSOR_F16;
}

/* Few channels of a group in both images are summed by loops, in f32. */
enum tensor_dtype cuda_convolution_reduced(const tensor *a, const tensor *b, const int64_t *sizes,
					   const struct conv_params *p, bool of_weight)
{
	const int64_t few = LOOP_CHANNELS * p->groups;
	const int64_t channels = of_weight ? b->sizes[1] : sizes[1];

	if (!is_reduced(a->dtype) || !a->numel || !b->numel ||
	    (p->groups > 1 && a->sizes[1] <= few && channels <= few))
		return TENSOR_DTYPE_NONE;
	/* Without cuDNN most results are sums of columns, or of several products. */
	return cudnn() ? a->dtype : TENSOR_F32;
}

/* y: the output or its gradient, x: the input or its gradient, w: the weight or its gradient. */
static int begin(struct conv *c, const char *op, const tensor *result, const tensor *operand,
		 const tensor *y, const tensor *x, const tensor *w, const struct conv_params *p)
{
	const int spatial = x->ndim - 2;
	struct cuda_windows *v = &c->c.w;
	int64_t kernel[3] = { 1, 1, 1 };
	int err;

	*c = (struct conv){ .c = { .batch = x->sizes[0],
				   .groups = p->groups,
				   .in = x->sizes[1] / p->groups,
				   .out = y->sizes[1] / p->groups },
			    .from = operand->dtype,
			    .to = result->dtype };
	for (int d = 0; d < spatial; d++)
		kernel[3 - spatial + d] = w->sizes[2 + d];
	err = cuda_windows_of(v, op, x, y, spatial, kernel, p->stride, p->padding, p->dilation,
			      c->c.batch * (x->sizes[1] > y->sizes[1] ? x->sizes[1] : y->sizes[1]));
	if (!err && (w->numel > INT32_MAX || c->c.batch > INT32_MAX))
		err = tensor_fail(EOPNOTSUPP, "%s: cuda: weight %lld elements, at most 2^31 - 1",
				  op, (long long)w->numel);
	if (err)
		return err;
	c->rows = c->c.in * v->taps;
	c->pointwise = v->taps == 1;
	for (int d = 0; d < 3; d++)
		c->pointwise &= v->stride[d] == 1 && !v->padding[d];
	return cuda_begin_with(&c->call, op, result->device.index, y, x, w);
}

static bool by_loops(const struct conv *c)
{
	if (is_reduced(c->from))
		return false;
	return (c->from != TENSOR_F32 && c->from != TENSOR_F64) ||
	       (c->c.groups > 1 && c->c.in <= LOOP_CHANNELS && c->c.out <= LOOP_CHANNELS);
}

static int launched(const struct conv *c, int err)
{
	return cuda_launched(&c->call, err, c->from);
}

static void *at(const void *data, int64_t elements, enum tensor_dtype dtype)
{
	return (char *)data + elements * (int64_t)tensor_itemsize(dtype);
}

/* result[n, k, :] = bias[k], or 0. */
static int fill(const struct conv *c, const tensor *result, const tensor *bias)
{
	const int64_t size = (int64_t)tensor_itemsize(c->to);
	const int64_t channels = result->sizes[1];
	const int64_t plane = result->numel / (result->sizes[0] * channels);
	struct cuda_pointwise p = { .data = { result->data, bias ? bias->data : NULL } };

	if (!bias)
		return cuda_check(c->call.op,
				  cudaMemsetAsync(result->data, 0, (size_t)(result->numel * size),
						  c->call.stream));
	cuda_use(&c->call, bias);
	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 2, plane, (const int64_t[]){ size, 0 });
	cuda_dims_add(&p.dims, 2, channels, (const int64_t[]){ plane * size, size });
	cuda_dims_add(&p.dims, 2, result->sizes[0],
		      (const int64_t[]){ plane * channels * size, 0 });
	return cuda_copy_within(&c->call, &p, c->to, c->to);
}

/* ---- columns ---- */

/* Describes the columns of n images, which are planes of x. */
static struct cuda_columns columns_of(const struct conv *c, int64_t n)
{
	const int64_t channels = c->c.groups * c->c.in;

	return (struct cuda_columns){ .w = c->c.w,
				      .images = n,
				      .planes = channels,
				      .planes_step = channels * c->c.w.in_plane,
				      .image_step = c->c.w.out_plane,
				      .row_step = n * c->c.w.out_plane };
}

/* Memory for the columns of c->chunk images. */
static int make_columns(struct conv *c, enum tensor_dtype dtype, void **columns)
{
	const int64_t image =
		c->c.groups * c->rows * c->c.w.out_plane * (int64_t)tensor_itemsize(dtype);

	c->chunk = COLUMNS_BYTES / image;
	c->chunk = c->chunk < 1 ? 1 : c->chunk < c->c.batch ? c->chunk : c->c.batch;
	return cuda_scratch(&c->call, (size_t)(c->chunk * image), columns);
}

static int im2col(const struct conv *c, void *columns, const void *x, int64_t first, int64_t n)
{
	const struct cuda_columns d = columns_of(c, n);

	return launched(c, cuda_launch_im2col(&d, columns, at(x, first * d.planes_step, c->from),
					      (int)tensor_itemsize(c->from), c->call.stream));
}

/* ---- products for images and groups ---- */

/* Operands of a product for each image and group: m[i] moves by image[i] and group[i]. */
struct products {
	struct cuda_matrix m[3];
	int64_t image[3], group[3];
};

/* One call has all groups, or all images, whichever are more. */
static int multiply(const struct conv *c, const struct products *p, int64_t images, double beta)
{
	const bool by_image = images >= c->c.groups;
	const int64_t calls = by_image ? c->c.groups : images;
	int err = 0;

	for (int64_t k = 0; k < calls && !err; k++) {
		struct cuda_matrix m[3];

		for (int i = 0; i < 3; i++) {
			m[i] = p->m[i];
			m[i].data = at(m[i].data, k * (by_image ? p->group[i] : p->image[i]),
				       m[i].dtype);
			m[i].step = by_image ? p->image[i] : p->group[i];
			m[i].batch = by_image ? images : c->c.groups;
		}
		err = cuda_multiply(&c->call, m, tensor_scalar_int(1), tensor_scalar_float(beta));
	}
	return err;
}

static struct cuda_matrix rows_of(const void *data, enum tensor_dtype dtype, int64_t rows,
				  int64_t cols, int64_t row)
{
	return (struct cuda_matrix){ .data = (void *)data,
				     .dtype = dtype,
				     .rows = rows,
				     .cols = cols,
				     .row = row,
				     .col = 1 };
}

static struct cuda_matrix turned(struct cuda_matrix m)
{
	const struct cuda_matrix t = m;

	m.rows = t.cols;
	m.cols = t.rows;
	m.row = t.col;
	m.col = t.row;
	return m;
}

/* Images first to first + n: `columns` has their columns, or is the image itself. */
static int forward_of(const struct conv *c, const tensor *out, const void *columns,
		      const tensor *weight, int64_t first, int64_t n, bool add)
{
	const int64_t places = c->c.w.out_plane, image = c->c.groups * c->c.out * places;
	const int64_t row = c->pointwise ? places : n * places;
	const struct products p = {
		.m = { rows_of(weight->data, c->from, c->c.out, c->rows, c->rows),
		       rows_of(columns, c->from, c->rows, places, row),
		       rows_of(at(out->data, first * image, c->to), c->to, c->c.out, places,
			       places) },
		.image = { 0, c->pointwise ? c->c.groups * c->rows * places : places, image },
		.group = { c->c.out * c->rows, c->rows * row, c->c.out * places },
	};

	return multiply(c, &p, n, add);
}

static int forward_by_products(struct conv *c, const tensor *out, const tensor *x,
			       const tensor *weight, const tensor *bias)
{
	void *columns = NULL;
	int err = bias || !c->rows ? fill(c, out, bias) : 0;

	if (err || !c->rows)
		return err;
	if (c->pointwise)
		return forward_of(c, out, x->data, weight, 0, c->c.batch, bias);
	err = make_columns(c, c->from, &columns);
	for (int64_t i = 0; i < c->c.batch && !err; i += c->chunk) {
		const int64_t n = c->c.batch - i < c->chunk ? c->c.batch - i : c->chunk;

		err = im2col(c, columns, x->data, i, n);
		if (!err)
			err = forward_of(c, out, columns, weight, i, n, bias);
	}
	cuda_scratch_free(&c->call, columns);
	return err;
}

/* ---- cuDNN, or products ---- */

/* By cuDNN: 1, or 0 if it does not compute this convolution, or -errno. */
static int by_library(const struct conv *c, enum dnn_kind kind, const tensor *out, const tensor *a,
		      const tensor *b, const tensor *bias)
{
	const tensor *x = kind == DNN_FORWARD ? a : kind == DNN_INPUT ? out : b;
	const tensor *w = kind == DNN_WEIGHT ? out : b, *y = kind == DNN_FORWARD ? out : a;
	const struct dnn_operands o = { x->data, w->data, y->data, cuda_data(bias), c->to };

	/* cuDNN has no engine that reads a reduced float and writes f32. */
	if (c->from != c->to || !x->numel || !w->numel || !y->numel ||
	    (c->pointwise && kind != DNN_WEIGHT))
		return 0;
	if (bias)
		cuda_use(&c->call, bias);
	return dnn_convolve(&c->call, kind, &c->c, &o);
}

typedef int (*products_fn)(struct conv *c, const tensor *out, const tensor *a, const tensor *b,
			   const tensor *bias);

/* n adjacent elements. */
static int convert(const struct conv *c, void *to, enum tensor_dtype d, const void *from,
		   enum tensor_dtype s, int64_t n)
{
	struct cuda_pointwise p = { .data = { to, (void *)from } };

	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 2, n,
		      (const int64_t[]){ (int64_t)tensor_itemsize(d),
					 (int64_t)tensor_itemsize(s) });
	return cuda_copy_within(&c->call, &p, d, s);
}

/* A result that is a sum of several products is computed in f32 and rounded once. */
static int products_in_f32(struct conv *c, products_fn products, const tensor *out, const tensor *a,
			   const tensor *b, const tensor *bias)
{
	const enum tensor_dtype to = c->to;
	const int64_t more = bias ? bias->numel : 0;
	tensor wide = *out, wide_bias;
	void *scratch = NULL;
	int err = cuda_scratch(&c->call, (size_t)(out->numel + more) * sizeof(float), &scratch);

	if (err)
		return err;
	c->to = wide.dtype = TENSOR_F32;
	wide.data = scratch;
	if (bias) {
		cuda_use(&c->call, bias);
		wide_bias = *bias;
		wide_bias.dtype = TENSOR_F32;
		wide_bias.data = (float *)scratch + out->numel;
		err = convert(c, wide_bias.data, TENSOR_F32, bias->data, to, more);
	}
	if (!err)
		err = products(c, &wide, a, b, bias ? &wide_bias : NULL);
	c->to = to;
	if (!err)
		err = convert(c, out->data, to, scratch, TENSOR_F32, out->numel);
	cuda_scratch_free(&c->call, scratch);
	return err;
}

static int convolve(struct conv *c, enum dnn_kind kind, products_fn products, const tensor *out,
		    const tensor *a, const tensor *b, const tensor *bias)
{
	const int done = by_library(c, kind, out, a, b, bias);

	if (done)
		return done < 0 ? done : 0;
	return is_reduced(c->to) && (!c->pointwise || kind == DNN_WEIGHT) ?
		       products_in_f32(c, products, out, a, b, bias) :
		       products(c, out, a, b, bias);
}

static int loops(const struct conv *c, const tensor *result, const tensor *a, const tensor *weight,
		 const tensor *bias, bool input)
{
	if (bias)
		cuda_use(&c->call, bias);
	return launched(c, (input ? cuda_launch_conv_input : cuda_launch_conv)(
				   &c->c, result->data, a->data, weight->data,
				   bias ? bias->data : NULL, c->from, c->call.stream));
}

int cuda_convolution(tensor *out, const tensor *input, const tensor *weight, const tensor *bias,
		     const struct conv_params *p)
{
	struct conv c;
	int err;

	if (!out->numel)
		return 0;
	err = begin(&c, "convolution", out, input, out, input, weight, p);
	if (err)
		return err;
	err = by_loops(&c) ?
		      loops(&c, out, input, weight, bias, false) :
		      convolve(&c, DNN_FORWARD, forward_by_products, out, input, weight, bias);
	return cuda_end(&c.call, err);
}

/* ---- the gradient of the input ---- */

static int gradient_of(const struct conv *c, const void *columns, const tensor *grad,
		       const tensor *weight, int64_t first, int64_t n, bool add)
{
	const int64_t places = c->c.w.out_plane, image = c->c.groups * c->c.out * places;
	const int64_t row = c->pointwise ? places : n * places;
	const struct products p = {
		.m = { turned(rows_of(weight->data, c->from, c->c.out, c->rows, c->rows)),
		       rows_of(at(grad->data, first * image, c->from), c->from, c->c.out, places,
			       places),
		       rows_of(columns, c->to, c->rows, places, row) },
		.image = { 0, image, c->pointwise ? c->c.groups * c->rows * places : places },
		.group = { c->c.out * c->rows, c->c.out * places, c->rows * row },
	};

	return multiply(c, &p, n, add);
}

static int input_by_products(struct conv *c, const tensor *out, const tensor *grad,
			     const tensor *weight, const tensor *bias)
{
	const bool empty = !grad->numel || !weight->numel;
	void *columns = NULL;
	int err = empty || (c->pointwise && bias) ? fill(c, out, bias) : 0;

	if (err || empty)
		return err;
	if (c->pointwise)
		return gradient_of(c, out->data, grad, weight, 0, c->c.batch, bias);
	if (bias)
		cuda_use(&c->call, bias);
	err = make_columns(c, c->to, &columns);
	for (int64_t i = 0; i < c->c.batch && !err; i += c->chunk) {
		const int64_t n = c->c.batch - i < c->chunk ? c->c.batch - i : c->chunk;
		const struct cuda_columns d = columns_of(c, n);

		err = gradient_of(c, columns, grad, weight, i, n, false);
		if (!err)
			err = launched(
				c, cuda_launch_col2im(&d, at(out->data, i * d.planes_step, c->to),
						      columns, bias ? bias->data : NULL, c->to,
						      c->call.stream));
	}
	cuda_scratch_free(&c->call, columns);
	return err;
}

int cuda_convolution_input(tensor *out, const tensor *grad, const tensor *weight,
			   const tensor *bias, const struct conv_params *p)
{
	struct conv c;
	int err;

	if (!out->numel)
		return 0;
	err = begin(&c, "convolution_input", out, grad, grad, out, weight, p);
	if (err)
		return err;
	err = by_loops(&c) ? loops(&c, out, grad, weight, bias, true) :
			     convolve(&c, DNN_INPUT, input_by_products, out, grad, weight, bias);
	return cuda_end(&c.call, err);
}

/* ---- the gradient of the weight ---- */

/* Copies the gradient of n images to [channels, images, places]: one product sums over all. */
static int turn_images(const struct conv *c, void *to, const void *grad, int64_t n)
{
	const int64_t size = (int64_t)tensor_itemsize(c->from), places = c->c.w.out_plane * size;
	const int64_t channels = c->c.groups * c->c.out;
	struct cuda_pointwise p = { .data = { to, (char *)grad } };

	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 2, c->c.w.out_plane, (const int64_t[]){ size, size });
	cuda_dims_add(&p.dims, 2, n, (const int64_t[]){ places, channels * places });
	cuda_dims_add(&p.dims, 2, channels, (const int64_t[]){ n * places, places });
	return cuda_copy_within(&c->call, &p, c->from, c->from);
}

/* Adds the sum over n images, whose columns and gradients are [rows, n * places]. */
static int weight_of(const struct conv *c, const tensor *out, const void *columns, const void *grad,
		     int64_t n, bool add)
{
	const int64_t width = n * c->c.w.out_plane;
	const struct products p = {
		.m = { rows_of(grad, c->from, c->c.out, width, width),
		       turned(rows_of(columns, c->from, c->rows, width, width)),
		       rows_of(out->data, c->to, c->c.out, c->rows, c->rows) },
		.group = { c->c.out * width, c->rows * width, c->c.out * c->rows },
	};

	return multiply(c, &p, 1, add);
}

static int weight_by_products(struct conv *c, const tensor *out, const tensor *grad,
			      const tensor *x, const tensor *none)
{
	const int64_t image = c->c.groups * c->c.out * c->c.w.out_plane;
	void *columns = NULL, *turned_grad = NULL;
	int err = make_columns(c, c->from, &columns);

	if (!err && c->chunk > 1)
		err = cuda_scratch(&c->call, (size_t)(c->chunk * image) * tensor_itemsize(c->from),
				   &turned_grad);
	for (int64_t i = 0; i < c->c.batch && !err; i += c->chunk) {
		const int64_t n = c->c.batch - i < c->chunk ? c->c.batch - i : c->chunk;
		void *g = at(grad->data, i * image, c->from);

		err = im2col(c, columns, x->data, i, n);
		if (!err && n > 1)
			err = turn_images(c, turned_grad, g, n);
		if (!err)
			err = weight_of(c, out, columns, n > 1 ? turned_grad : g, n, i > 0);
	}
	cuda_scratch_free(&c->call, turned_grad);
	cuda_scratch_free(&c->call, columns);
	return err;
}

static int weight_by_loops(const struct conv *c, const tensor *out, const tensor *grad,
			   const tensor *x)
{
	const int split = cuda_conv_weight_split(&c->c);
	void *partial = NULL;
	int err = 0;

	if (split > 1)
		err = cuda_scratch(&c->call,
				   (size_t)out->numel * (size_t)split * tensor_itemsize(c->to),
				   &partial);
	if (!err)
		err = launched(c, cuda_launch_conv_weight(&c->c, out->data, grad->data, x->data,
							  partial, split, c->from, c->call.stream));
	cuda_scratch_free(&c->call, partial);
	return err;
}

int cuda_convolution_weight(tensor *out, const tensor *grad, const tensor *input,
			    const tensor *none, const struct conv_params *p)
{
	struct conv c;
	int err;

	if (!out->numel)
		return 0;
	err = begin(&c, "convolution_weight", out, grad, grad, input, out, p);
	if (err)
		return err;
	if (!grad->numel || !input->numel)
		err = fill(&c, out, NULL);
	else
		err = by_loops(&c) ?
			      weight_by_loops(&c, out, grad, input) :
			      convolve(&c, DNN_WEIGHT, weight_by_products, out, grad, input, NULL);
	return cuda_end(&c.call, err);
}
