/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The data model, seen from inside: struct tensor, struct tensor_storage, and the state that
 * belongs to a thread. Nothing here knows operators, autograd or where memory comes from.
 *
 * Ownership inside the library: a function that returns a tensor gives the caller a reference
 * ("owned"); only the generated public functions hand it to the open scope. Arguments are
 * borrowed.
 */
#ifndef TENSOR_INTERNAL_H
#define TENSOR_INTERNAL_H

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/single_threaded.h>
#define TENSOR_WITHOUT_OPS
#include <tensor/dispatch.h>
#include <tensor/tensor.h>

#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define TENSOR_EXPORT __attribute__((visibility("default")))

#define KEY_BIT(key) (1u << (key))
#define KEYS_BACKEND (KEY_BIT(TENSOR_KEY_AUTOGRAD) - 1)
/* Above all keys, and of tensor_none alone: every operator refuses what has it. */
#define KEY_NONE TENSOR_KEY_COUNT

struct tensor_thread;
struct autograd_meta;
struct tensor_storage;

/* ---- storage ---- */

struct moved;

/* What becomes of the memory when the last tensor on it is gone. */
struct storage_ops {
	void (*free)(struct tensor_storage *s);
	/* Says what is to be done at the end with memory that a buffer takes the place of; NULL for
	 * what is not private memory of the library. */
	void (*lend)(struct tensor_storage *s, struct moved *m);
	/* Other processes may write to it: what is read twice may differ. */
	bool shared;
};

struct tensor_storage {
	atomic_int refs;
	atomic_int version; /* in-place changes, whichever view made them */
	void *data;
	size_t nbytes; /* what a tensor may use; the block behind may be larger */
	const struct storage_ops *ops;
	void *owner; /* of ops: a buffer, an arena, an allocator */
	tensor_device device;
	uint8_t size_class; /* of ops */
	bool readonly;
	/* Bytes that its tensors have had, now or before: in private memory, what lies behind them up to
	 * nbytes may be what other tensors left there. */
	uint64_t used : 48;
	/* What a tensor that grew had before: views made then still look at it. Usually NULL. */
	struct tensor_storage *previous;
};

/* A tensor has the first n bytes of s from now on. */
static inline void storage_reach(struct tensor_storage *s, size_t n)
{
	if (n > s->used)
		s->used = n;
}

/* New storage of at least nbytes (0 is fine) on the device; NULL with the error set. */
struct tensor_storage *storage_alloc(tensor_device device, size_t nbytes, bool shareable);
struct tensor_storage *storage_alloc_struct(void);
void storage_free_struct(struct tensor_storage *s);
void storage_free(struct tensor_storage *s);

/*
 * Reference counts. While the process has one thread (the C library knows) a locked instruction
 * would be most of the cost of making a view.
 */
static inline void ref_get(atomic_int *refs)
{
	if (__libc_single_threaded)
		atomic_store_explicit(refs, atomic_load_explicit(refs, memory_order_relaxed) + 1,
				      memory_order_relaxed);
	else
		atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

/* True when that was the last reference. A count of one can be read instead of written: nobody
 * else can have a reference to add. */
static inline bool ref_put(atomic_int *refs)
{
	int n = atomic_load_explicit(refs, memory_order_acquire);

	if (n == 1)
		return true;
	if (__libc_single_threaded) {
		atomic_store_explicit(refs, n - 1, memory_order_relaxed);
		return false;
	}
	return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

static inline void storage_get(struct tensor_storage *s)
{
	ref_get(&s->refs);
}

static inline void storage_put(struct tensor_storage *s)
{
	if (ref_put(&s->refs))
		storage_free(s);
}

/* ---- tensor ---- */

/*
 * What a tensor has where sizes and strides do not say it all: the parts of a sparse one, the
 * scale of a quantised one, the format of a blocked one. The first member of a struct of its
 * owner's. Tensors share it; it never changes while one has it. Such a tensor has a key of
 * KEYS_EXTENSION, so that only functions that know it ever see it.
 */
struct tensor_extension {
	atomic_int refs;
	const struct extension_ops *ops;
};

struct extension_ops {
	void (*free)(struct tensor_extension *x);
	/* For printing: an owned strided tensor and its name, "" for the tensor's own numbers;
	 * NULL after the last of them. */
	tensor *(*part)(const tensor *t, int i, const char **name);
	/* ... and what follows them: ", nnz=3, layout=sparse_coo" */
	void (*describe)(const tensor *t, char *buf, size_t size);
	bool views; /* tensor_new_view() of such a tensor has the same extension, or else fails */
};

struct tensor {
	_Atomic int64_t refs; /* see REF_HOLDER */
	uint32_t keys;
	uint8_t dtype, layout, ndim;
	bool contiguous; /* row-major without gaps; true for numel <= 1 */
	tensor_device device;
	/* A view of `base` borrows the base's storage reference; other tensors own theirs. */
	bool owns_storage;
	bool differentiable_view; /* base is there for autograd, not only for its storage */
	void *data;		  /* storage->data + offset * itemsize; NULL without strides */
	struct tensor_storage *storage;
	int64_t offset, numel;
	tensor *base;		    /* owned; the root of the chain of views, never a view itself */
	struct autograd_meta *grad; /* autograd's own, see tensor_autograd_hooks */
	struct tensor_extension *ext; /* owned; NULL for a strided tensor of plain numbers */
	const char *made_by;	      /* with TENSOR_DEBUG: the function that was called */
	int64_t sizes[TENSOR_MAX_DIMS];
	int64_t strides[TENSOR_MAX_DIMS];
};

/* Autograd's side of a tensor's life; lib/autograd sets it at load. */
struct tensor_autograd_hooks {
	void (*free_meta)(struct autograd_meta *meta);
	bool (*requires_grad)(const tensor *t);
	void (*thread_exit)(struct tensor_thread *th);
	/* ", requires_grad=True" or ", grad_fn=<AddBackward>" for printing; optional */
	void (*describe)(const tensor *t, char *buf, size_t size);
};
extern struct tensor_autograd_hooks tensor_autograd_hooks;

void tensor_free(tensor *t);

static inline void extension_put(struct tensor_extension *x)
{
	if (x && ref_put(&x->refs))
		x->ops->free(x);
}

/* One more reference to t's, which may be NULL. */
static inline struct tensor_extension *extension_get(const tensor *t)
{
	if (unlikely(t->ext))
		ref_get(&t->ext->refs);
	return t->ext;
}

/*
 * A tensor's count: holders, and in the upper half how many of them are views, so that a base
 * knows how many views of it are alive at the price of one addition.
 */
#define REF_HOLDER ((int64_t)1)
#define REF_VIEW   (((int64_t)1 << 32) + 1)

static inline void tensor_ref_add(tensor *t, int64_t unit)
{
	if (__libc_single_threaded)
		atomic_store_explicit(&t->refs,
				      atomic_load_explicit(&t->refs, memory_order_relaxed) + unit,
				      memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&t->refs, unit, memory_order_relaxed);
}

/* As ref_put(): the last reference is not written. */
static inline void tensor_ref_drop(tensor *t, int64_t unit)
{
	int64_t n = atomic_load_explicit(&t->refs, memory_order_acquire);

	if (n <= unit) /* less: it was released before */
		tensor_free(t);
	else if (__libc_single_threaded)
		atomic_store_explicit(&t->refs, n - unit, memory_order_relaxed);
	else if (atomic_fetch_sub_explicit(&t->refs, unit, memory_order_acq_rel) == unit)
		tensor_free(t);
}

static inline tensor *tensor_get(tensor *t)
{
	tensor_ref_add(t, REF_HOLDER);
	return t;
}

static inline void tensor_put(tensor *t)
{
	if (t)
		tensor_ref_drop(t, REF_HOLDER);
}

/* Not cold: the caller stays in one piece, in which debug_caller() finds its name. */
void debug_released(const tensor *t);

/* False for NULL. Public functions check their arguments with it: with TENSOR_DEBUG=1 it ends the program if t
 * was released. */
static inline bool tensor_given(const tensor *t)
{
	if (unlikely(t && atomic_load_explicit(&t->refs, memory_order_relaxed) <= 0))
		debug_released(t);
	return t;
}

static inline int64_t tensor_live_views(const tensor *t)
{
	return atomic_load_explicit(&t->refs, memory_order_relaxed) >> 32;
}

/* All return owned tensors, or NULL with the error set. */
/* Contiguous, on new storage, uninitialised. */
tensor *tensor_new(tensor_device device, enum tensor_dtype dtype, const int64_t *sizes, int ndim);
tensor *tensor_new_opt(tensor_options options, const int64_t *sizes, int ndim);
/* With strides of its own choosing (>= 0), on new storage just large enough. */
tensor *tensor_new_strided(tensor_options options, const int64_t *sizes, const int64_t *strides,
			   int ndim);
/* Takes over one reference to the storage, also on failure. */
tensor *tensor_new_on_storage(struct tensor_storage *s, enum tensor_dtype dtype,
			      const int64_t *sizes, const int64_t *strides, int ndim,
			      int64_t offset);
/* The same memory seen otherwise. The caller has checked that it stays within the storage. */
tensor *tensor_new_view(tensor *self, const int64_t *sizes, const int64_t *strides, int ndim,
			int64_t offset);
/* Like self in geometry, without history and not a view: what autograd saves. */
tensor *tensor_new_detached(tensor *self);
/* Of another layout: data is NULL, strides are 0, storage has nbytes (0 is fine). Takes over the
 * reference to ext, also on failure. */
tensor *tensor_new_unstrided(tensor_options options, const int64_t *sizes, int ndim, size_t nbytes,
			     struct tensor_extension *ext);
/* An uninitialised tensor of self's device and dtype and the given shape. */
static inline tensor *tensor_new_like(const tensor *self, const int64_t *sizes, int ndim)
{
	return tensor_new(self->device, self->dtype, sizes, ndim);
}
/* Gives out another shape, keeping its memory when that is large enough (out= arguments). */
int tensor_resize(tensor *t, const int64_t *sizes, int ndim);

static inline void tensor_bump_version(tensor *t)
{
	ref_get(&t->storage->version);
}

uint32_t device_key(tensor_device device, enum tensor_layout layout);

/* numel of sizes, or -1 with the error set (negative size, overflow) */
int64_t sizes_numel(const char *op, const int64_t *sizes, int ndim);
static inline bool sizes_equal(const tensor *a, const tensor *b)
{
	if (a->ndim != b->ndim)
		return false;
	for (int i = 0; i < a->ndim; i++)
		if (a->sizes[i] != b->sizes[i])
			return false;
	return true;
}
void contiguous_strides(const int64_t *sizes, int ndim, int64_t *strides);
/* t's elements without gaps, and once where a stride is 0: how many there are, the sizes that they have
 * in memory, and the strides that give them t's sizes. */
int64_t packed_geometry(const tensor *t, int64_t *sizes, int64_t *strides);
/* A dimension counted from the end becomes one counted from the front; -1 with the error set. */
int wrap_dim(const char *op, int64_t dim, int ndim);
/* "[2, 3]" into buf; returns buf. */
const char *format_sizes(const int64_t *sizes, int ndim, char *buf, size_t size);

#define SHAPE_TEXT   128
#define SHAPE_STR(t) format_sizes((t)->sizes, (t)->ndim, (char[SHAPE_TEXT]){ 0 }, SHAPE_TEXT)

/* ---- dtype and scalar ---- */

extern const uint8_t dtype_sizes[TENSOR_DTYPE_COUNT];

static inline size_t itemsize(const tensor *t)
{
	return dtype_sizes[t->dtype];
}

static inline bool dtype_is_float(unsigned d)
{
	return (d >= TENSOR_F16 && d <= TENSOR_F64) || d == TENSOR_F8_E4M3FN || d == TENSOR_F8_E5M2;
}

/* Floats of 8 bits: for storage. Elementwise operators compute them as f32; nothing promotes them. */
static inline bool dtype_is_f8(unsigned d)
{
	return d == TENSOR_F8_E4M3FN || d == TENSOR_F8_E5M2;
}

static inline bool dtype_is_complex(unsigned d)
{
	return d == TENSOR_C64 || d == TENSOR_C128;
}

/* The dtype in which kernels compute one of less than 32 bits. */
static inline enum tensor_dtype dtype_wide(unsigned d)
{
	return d == TENSOR_F16 || d == TENSOR_BF16 || dtype_is_f8(d) ? TENSOR_F32 :
								       (enum tensor_dtype)d;
}

static inline bool dtype_is_reduced_float(unsigned d)
{
	return d == TENSOR_F16 || d == TENSOR_BF16;
}

/* The floats and complex numbers that LAPACK and the FFT compute in. */
static inline bool dtype_is_full(unsigned d)
{
	return d >= TENSOR_F32 && d <= TENSOR_C128;
}

/* The dtype of a complex one's parts, and of an absolute value. */
static inline enum tensor_dtype dtype_real(unsigned d)
{
	return d == TENSOR_C64 ? TENSOR_F32 : d == TENSOR_C128 ? TENSOR_F64 : (enum tensor_dtype)d;
}

static inline bool dtype_is_int(unsigned d)
{
	return (d >= TENSOR_U8 && d <= TENSOR_I64) || (d >= TENSOR_U16 && d <= TENSOR_U64);
}

static inline bool dtype_is_unsigned(unsigned d)
{
	return d == TENSOR_U8 || (d >= TENSOR_U16 && d <= TENSOR_U64);
}

/* Of a tensor and a number: the number counts only when it is of a higher category. */
enum tensor_dtype promote_scalar(const tensor *t, tensor_scalar s);
/* a with something of lower rank: b counts only when its category is higher. */
enum tensor_dtype promote_lower_rank(enum tensor_dtype a, enum tensor_dtype b);
/* What a number is when nothing else says. */
enum tensor_dtype scalar_dtype(tensor_scalar s);
/* The range of an integer dtype, as far as i64 has it: u64 ends at INT64_MAX here. */
int64_t dtype_least(enum tensor_dtype d);
int64_t dtype_greatest(enum tensor_dtype d);
/* Ints and bools become the default float type, others stay. */
enum tensor_dtype dtype_to_float(enum tensor_dtype d);

/* Ints and bools: nothing after the point. */
static inline bool dtype_is_integral(unsigned d)
{
	return d == TENSOR_BOOL || dtype_is_int(d);
}

static inline double scalar_double(tensor_scalar s)
{
	return s.kind >= TENSOR_SCALAR_FLOAT ? s.d : (double)s.i;
}

static inline int64_t scalar_int(tensor_scalar s)
{
	return s.kind >= TENSOR_SCALAR_FLOAT ? (int64_t)s.d : s.i;
}

static inline double scalar_imag(tensor_scalar s)
{
	return s.kind == TENSOR_SCALAR_COMPLEX ? s.imag : 0;
}

/* One element at p, as a number and back. -EOPNOTSUPP for what is no dtype. */
int element_load(const void *p, enum tensor_dtype dtype, tensor_scalar *value);
int element_store(void *p, enum tensor_dtype dtype, tensor_scalar value);

/* ---- the thread ---- */

#define MAGAZINE 64

/* A stack of free objects that needs no lock. */
struct magazine {
	unsigned n;
	void *slot[MAGAZINE];
};

#define BLOCK_CLASSES 64
/* Tensors and storages have classes of their own, so that referrers.c can find them. */
#define CLASS_TENSOR  62u
#define CLASS_STORAGE 63u

extern uint8_t magazine_limit[BLOCK_CLASSES];
/* What is to be done with one that has no block, and with a block that has no place in it. */
void *magazine_empty(unsigned class, struct magazine *m);
void magazine_full(unsigned class, struct magazine *m, void *p);

struct tensor_thread {
	uint32_t include, exclude; /* dispatch keys */
	bool grad_enabled;
	uint32_t scope_depth, scope_n, scope_cap;
	tensor **scope;
	struct magazine blocks[BLOCK_CLASSES];
	void *autograd; /* state of lib/autograd */
	struct tensor_error error;
};

extern __thread struct tensor_thread *tensor_thread_ptr __attribute__((tls_model("initial-exec")));
struct tensor_thread *tensor_thread_init(void);

static inline struct tensor_thread *thread(void)
{
	struct tensor_thread *th = tensor_thread_ptr;

	return likely(th) ? th : tensor_thread_init();
}

static inline void *block_take(unsigned class)
{
	struct magazine *m = &thread()->blocks[class];

	return likely(m->n) ? m->slot[--m->n] : magazine_empty(class, m);
}

static inline void block_give(unsigned class, void *p)
{
	struct magazine *m = &thread()->blocks[class];

	if (likely(m->n < magazine_limit[class]))
		m->slot[m->n++] = p;
	else
		magazine_full(class, m, p);
}

/* At thread exit: what the allocating layer does with the thread's free objects. */
void storage_thread_exit(struct tensor_thread *th);

/* Gives an owned result to the open scope, if there is one; returns it. NULL passes, and takes its place when there is
 * no memory to note it. */
tensor *scope_push_slow(struct tensor_thread *th, tensor *t);

static inline tensor *scope_own(struct tensor_thread *th, tensor *t)
{
	if (t && th->scope_depth) {
		if (unlikely(th->scope_n >= th->scope_cap))
			return scope_push_slow(th, t);
		th->scope[th->scope_n++] = t;
	}
	return t;
}

/* The same for n results, of which some may be NULL: -ENOMEM with the error set, all released and NULL. */
int scope_own_list(tensor **results, int64_t n);
int scope_own_results(tensor **const *results, int n);

/* Closes a scope but lets one result survive, owned by the caller. */
tensor *scope_leave_with(struct tensor_scope_guard *guard, tensor *result);

/* ---- errors ---- */

/* Records "text" for the thread; returns -code. */
int tensor_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
/* The same for functions that return a tensor. */
#define tensor_fail_null(code, ...) ((void)tensor_fail(code, __VA_ARGS__), (tensor *)NULL)
/* An operator got NULL: keeps the record of what failed before. */
tensor *null_argument(const char *op) __attribute__((cold));
int null_argument_code(const char *op) __attribute__((cold));

#endif
