// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "values.h"

#include "writer.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

uint64_t chance(struct arguments *a)
{
	uint64_t z = a->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

int64_t below(struct arguments *a, int64_t n)
{
	return (int64_t)(chance(a) % (uint64_t)n);
}

bool one_in(struct arguments *a, int n)
{
	return below(a, n) == 0;
}

/* ---- numbers ---- */

static int64_t any_int(struct arguments *a)
{
	static const int64_t odd[] = {
		INT64_MAX,
		INT64_MIN,
		INT64_MIN + 1,
		INT64_MAX / 2 + 1,
		INT64_MAX / 8,
		(int64_t)1 << 32,
		(int64_t)1 << 40,
		INT32_MAX,
		INT32_MIN,
		UINT32_MAX,
		-1,
		-2,
		63,
		64,
		65,
		1000,
		1 << 20,
	};

	if (one_in(a, a->tame ? a->odds : 2))
		return odd[below(a, COUNT(odd))];
	return one_in(a, 5) ? below(a, 9) - 4 : below(a, 4);
}

static double any_float(struct arguments *a)
{
	static const double odd[] = {
		NAN,	 INFINITY, -INFINITY, -0.0,  DBL_MAX, -DBL_MAX,
		DBL_MIN, 4.9e-324, 1e-30,     -1e30, 1e19,
	};

	if (one_in(a, a->tame ? a->odds : 2))
		return odd[below(a, COUNT(odd))];
	return (double)(below(a, 33) - 16) / 4;
}

static tensor_scalar any_scalar(struct arguments *a)
{
	switch (below(a, 5)) {
	case 0:
		return TENSOR_SCALAR(any_int(a));
	case 1:
		return tensor_scalar_bool(one_in(a, 2));
	case 2:
		return tensor_scalar_complex(any_float(a), any_float(a));
	default:
		return TENSOR_SCALAR(any_float(a));
	}
}

static enum tensor_dtype any_dtype(struct arguments *a)
{
	static const uint8_t usual[] = { TENSOR_F32, TENSOR_F64, TENSOR_I64, TENSOR_BOOL };

	return one_in(a, 2) ? usual[below(a, 4)] : 1 + (int)below(a, TENSOR_DTYPE_COUNT - 1);
}

/* ---- tensors ---- */

static tensor *keep_until_end(struct arguments *a, tensor *t)
{
	if (t && a->nowned < OWNED)
		a->owned[a->nowned++] = t;
	else if (t)
		tensor_release(t);
	return a->nowned < OWNED ? t : NULL;
}

/* Elements are valid indices in most cases; the writer changes some of them. */
static int64_t random_element(struct arguments *a)
{
	return writer_runs ? below(a, 2) : any_int(a);
}

static void fill_elements(struct arguments *a, tensor *t)
{
	int64_t n = tensor_numel(t) * (int64_t)tensor_itemsize(tensor_dtype(t));
	uint8_t *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++) {
		double f = any_float(a);
		float g = (float)f;
		int64_t k = random_element(a);

		switch (tensor_dtype(t)) {
		case TENSOR_F32:
			((float *)p)[i] = g;
			break;
		case TENSOR_F64:
			((double *)p)[i] = f;
			break;
		case TENSOR_I64:
			((int64_t *)p)[i] = k;
			break;
		case TENSOR_I32:
			((int32_t *)p)[i] = (int32_t)k;
			break;
		case TENSOR_BOOL:
			p[i] = k & 1;
			break;
		default:
			i = tensor_numel(t);
			for (int64_t b = 0; b < n; b++)
				p[b] = (uint8_t)chance(a);
		}
	}
}

static tensor *dense_tensor(struct arguments *a, const int64_t *sizes, int ndim,
			    enum tensor_dtype dtype)
{
	tensor_options options = { .dtype = dtype, .shareable = writer_runs };
	tensor *t = keep_until_end(a, tensor_empty((tensor_ints){ sizes, ndim }, options));

	if (t && tensor_data(t)) {
		fill_elements(a, t);
		writer_watch(t);
	}
	return t;
}

/* Usually with the call's common shape and dtype, sometimes with a shape of its own. */
static tensor *new_tensor(struct arguments *a)
{
	int64_t sizes[6];
	int ndim = a->ndim;

	memcpy(sizes, a->sizes, sizeof(a->sizes));
	if (one_in(a, 3)) {
		ndim = (int)below(a, 6);
		for (int i = 0; i < ndim; i++)
			sizes[i] = one_in(a, 8) ? 0 : 1 + below(a, a->longest);
	} else if (ndim && one_in(a, 4)) {
		sizes[below(a, ndim)] = 1;
	}
	if (a->wanted)
		return dense_tensor(a, sizes, ndim, a->wanted);
	return dense_tensor(a, sizes, ndim, one_in(a, 4) ? any_dtype(a) : a->dtype);
}

/* A view of the tensor by a randomly chosen function of the library. */
static tensor *view(struct arguments *a, tensor *t)
{
	int ndim = t ? tensor_dim(t) : 0;
	int64_t sizes[3], strides[3];

	if (!ndim)
		return t;
	switch (below(a, 6)) {
	case 0:
		return keep_until_end(a, tensor_transpose(t, 0, ndim - 1));
	case 1:
		return keep_until_end(a, tensor_slice(t, below(a, ndim), below(a, 2), TENSOR_NONE,
						      1 + below(a, 2)));
	case 2:
		return keep_until_end(a, tensor_select(t, below(a, ndim), 0));
	case 3: /* overlapping elements */
		for (int i = 0; i < 3; i++) {
			sizes[i] = below(a, 3);
			strides[i] = below(a, 2);
		}
		return keep_until_end(a, tensor_as_strided(t, (tensor_ints){ sizes, 3 },
							   (tensor_ints){ strides, 3 }, 0));
	case 4: {
		tensor *one = keep_until_end(a, tensor_slice(t, 0, 0, 1, 1));

		memcpy(sizes, tensor_sizes(t), (size_t)(ndim < 3 ? ndim : 3) * sizeof(*sizes));
		return one && ndim <= 3 ?
			       keep_until_end(a, tensor_expand(one, (tensor_ints){ sizes, ndim })) :
			       one;
	}
	default:
		return keep_until_end(a, tensor_detach(t));
	}
}

/* A copy in read-only memory. */
static tensor *read_only(tensor *t)
{
	tensor *shared = tensor_to_copy(t, TENSOR_OPTIONS(.shareable = true)), *r = NULL;
	int fd = shared ? tensor_buffer_fd(shared, TENSOR_BUFFER_READ) : -1;

	if (fd >= 0) {
		r = tensor_from_buffer_fd(fd, tensor_dtype(t), tensor_shape(t), 0);
		close(fd);
	}
	tensor_release(shared);
	return r;
}

/* A tensor that is sparse, quantized or otherwise not plain strided memory, or read-only. */
static tensor *unusual_tensor(struct arguments *a)
{
	tensor *t = new_tensor(a), *r = NULL;

	if (!t)
		return NULL;
	switch (below(a, 6)) {
	case 0:
		r = tensor_to_sparse(t);
		break;
	case 1:
		r = tensor_dim(t) == 2 ? tensor_to_sparse_csr(t) : NULL;
		break;
	case 2:
		r = tensor_dtype(t) == TENSOR_F32 ?
			    tensor_quantize_per_tensor(t, 0.25, 3, TENSOR_U8) :
			    NULL;
		break;
	case 3:
		r = tensor_to_mkldnn(t, TENSOR_DTYPE_NONE);
		break;
	case 4:
		r = read_only(t);
		break;
	default: /* expanded from a single element */
		r = tensor_empty(TENSOR_INTS(0), TENSOR_OPTIONS(.dtype = tensor_dtype(t)));
	}
	return r ? keep_until_end(a, r) : t;
}

static tensor *any_tensor(struct arguments *a)
{
	tensor *t;

	if (one_in(a, 200))
		return NULL;
	if (one_in(a, 100))
		return tensor_none;
	if (a->nowned && one_in(a, 8)) /* an argument of the call again, or its base */
		return a->owned[below(a, a->nowned)];
	if (one_in(a, 12))
		return unusual_tensor(a);
	t = new_tensor(a);
	if (one_in(a, 4))
		t = view(a, t);
	if (t && one_in(a, a->gradients))
		tensor_set_requires_grad(t, true);
	return t;
}

/* ---- arguments ---- */

void arguments_begin(struct arguments *a, uint64_t seed, bool autograd)
{
	memset(a, 0, offsetof(struct arguments, owned));
	a->random = seed;
	a->nowned = a->nlists = 0;
	a->tame = writer_runs || !one_in(a, autograd ? 16 : 4);
	a->gradients = autograd ? 1 : 6;
	a->odds = writer_runs ? 60 : 12;
	a->longest = writer_runs ? 12 : 4;
	a->wanted = 0;
	a->ndim = (int)below(a, 5);
	for (int i = 0; i < 4; i++)
		a->sizes[i] = one_in(a, 20) ? 0 : 1 + below(a, a->longest);
	a->dtype = one_in(a, 3) ? any_dtype(a) : TENSOR_F32;
}

void arguments_end(struct arguments *a)
{
	writer_forget_all();
	while (a->nowned)
		tensor_release(a->owned[--a->nowned]);
}

static tensor_value value_tensors(struct arguments *a)
{
	tensor **list = a->list[a->nlists++ % 8];
	int64_t n = below(a, LIST_MAX + 1);

	for (int i = 0; i < n; i++)
		list[i] = any_tensor(a);
	return (tensor_value){ .kind = TENSOR_VALUE_TENSOR_LIST,
			       .list = { list, one_in(a, 100) ? -1 : n } };
}

/* Usually the number of dimensions of the tensors. */
static int64_t any_length(struct arguments *a)
{
	if (one_in(a, 200))
		return -1 - below(a, 2);
	return one_in(a, 2) ? a->ndim : below(a, LIST_MAX + 1);
}

static tensor_value value_ints(struct arguments *a)
{
	int64_t *list = a->ints[a->nlists++ % 8];

	for (int i = 0; i < LIST_MAX; i++)
		list[i] = one_in(a, 3) && i < 4 ? a->sizes[i] : any_int(a);
	return (tensor_value){ .kind = TENSOR_VALUE_INTS, .ints = { list, any_length(a) } };
}

static tensor_value value_floats(struct arguments *a)
{
	double *list = a->floats[a->nlists++ % 8];

	for (int i = 0; i < LIST_MAX; i++)
		list[i] = any_float(a);
	return (tensor_value){ .kind = TENSOR_VALUE_FLOATS, .floats = { list, any_length(a) } };
}

static tensor_value value_scalars(struct arguments *a)
{
	tensor_scalar *list = a->scalars[a->nlists++ % 8];

	for (int i = 0; i < LIST_MAX; i++)
		list[i] = any_scalar(a);
	return (tensor_value){ .kind = TENSOR_VALUE_SCALARS, .scalars = { list, any_length(a) } };
}

static tensor_value value_string(struct arguments *a)
{
	static const char *const words[] = {
		"",	    "mean",	"sum",	    "none",	 "tanh",    "linear",
		"floor",    "trunc",	"same",	    "valid",	 "reflect", "ij",
		"xy",	    "constant", "circular", "replicate", "fro",	    "nuc",
		"amax",	    "prod",	"L",	    "U",	 "reduced", "complete",
		"\xff\xfe", "%s%n",	"i,j->ij",  "ii->i",	 "...,->",  "abc,cd->abd",
	};
	const char *s = one_in(a, 50) ? NULL : words[below(a, COUNT(words))];

	return (tensor_value){ .kind = TENSOR_VALUE_STRING, .s = s };
}

#define VALUE(k, member, v) ((tensor_value){ .kind = TENSOR_VALUE_##k, .member = (v) })

static tensor_value value_of_type(struct arguments *a, enum tensor_arg_type type)
{
	switch (type) {
	case TENSOR_ARG_TENSOR:
	case TENSOR_ARG_OPTIONAL_TENSOR:
		return VALUE(TENSOR, t, any_tensor(a));
	case TENSOR_ARG_TENSOR_LIST:
	case TENSOR_ARG_OPTIONAL_TENSOR_LIST:
		return value_tensors(a);
	case TENSOR_ARG_INT:
	case TENSOR_ARG_OPTIONAL_INT:
		return VALUE(INT, i, any_int(a));
	case TENSOR_ARG_INTS:
	case TENSOR_ARG_OPTIONAL_INTS:
		return value_ints(a);
	case TENSOR_ARG_BOOL:
	case TENSOR_ARG_OPTIONAL_BOOL:
		return VALUE(BOOL, b, one_in(a, 2));
	case TENSOR_ARG_FLOAT:
	case TENSOR_ARG_OPTIONAL_FLOAT:
		return VALUE(FLOAT, f, any_float(a));
	case TENSOR_ARG_FLOATS:
	case TENSOR_ARG_OPTIONAL_FLOATS:
		return value_floats(a);
	case TENSOR_ARG_SCALARS:
		return value_scalars(a);
	case TENSOR_ARG_SCALAR:
	case TENSOR_ARG_OPTIONAL_SCALAR:
		return VALUE(SCALAR, scalar, any_scalar(a));
	case TENSOR_ARG_DTYPE:
		return VALUE(INT, i, one_in(a, 10) ? any_int(a) : any_dtype(a));
	case TENSOR_ARG_LAYOUT:
		return VALUE(INT, i, one_in(a, 10) ? any_int(a) : below(a, TENSOR_LAYOUT_COUNT));
	case TENSOR_ARG_MEMORY_FORMAT:
		return VALUE(INT, i,
			     one_in(a, 10) ? any_int(a) : below(a, TENSOR_MEMORY_FORMAT_COUNT));
	case TENSOR_ARG_DEVICE:
		return VALUE(DEVICE, device,
			     one_in(a, 10) ?
				     ((tensor_device){ (int8_t)below(a, 5), (int8_t)any_int(a) }) :
				     TENSOR_DEVICE_CPU);
	case TENSOR_ARG_BOOLS:
		return VALUE(BOOLS, bools, chance(a));
	case TENSOR_ARG_STRING:
	case TENSOR_ARG_OPTIONAL_STRING:
		return value_string(a);
	default:
		return (tensor_value){ 0 };
	}
}

/* The dtype that operators require of an argument of this name; NONE if any dtype is valid. */
static enum tensor_dtype dtype_by_name(struct arguments *a, const char *name)
{
	static const char *const positions[] = {
		"index", "at", "target", "repeats", "offset", "sorter", "crow", "bag", "zero_point",
	};

	if (!writer_runs || one_in(a, 8))
		return TENSOR_DTYPE_NONE;
	if (strstr(name, "mask"))
		return TENSOR_BOOL;
	if (strstr(name, "indices"))
		return TENSOR_I64;
	for (size_t i = 0; i < COUNT(positions); i++)
		if (!strncmp(name, positions[i], strlen(positions[i])))
			return TENSOR_I64;
	return TENSOR_DTYPE_NONE;
}

tensor_value any_value(struct arguments *a, const struct tensor_arg *arg)
{
	a->wanted = dtype_by_name(a, arg->name);
	if (one_in(a, 300))
		return value_of_type(a, 1 + (int)below(a, TENSOR_ARG_SCALARS));
	if (arg->default_text && one_in(a, 2))
		return (tensor_value){ 0 };
	return value_of_type(a, arg->type);
}
