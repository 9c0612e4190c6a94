// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Loads LAPACK at the first call of one of its functions: programs that call none do not need the
 * library (docs/decisions/0008-lapack.md). TENSOR_LAPACK names another file. TRSM is a function of
 * BLAS; dlsym() finds it because LAPACK depends on BLAS.
 */
#include "kernels/lapack/lapack.h"

#include "kernels/lapack/openblas.h"

#include "dispatch/dispatch.h"
#include "iter/iter.h"
#include "iter/parallel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Names for real and for complex matrices, without the letter of the dtype and the underscore. */
static const char *const names[LAPACK_ROUTINES][2] = {
	[LAPACK_SYEVD] = { "syevd", "heevd" }, [LAPACK_GEEV] = { "geev", "geev" },
	[LAPACK_GETRF] = { "getrf", "getrf" }, [LAPACK_GETRS] = { "getrs", "getrs" },
	[LAPACK_POTRF] = { "potrf", "potrf" }, [LAPACK_POTRS] = { "potrs", "potrs" },
	[LAPACK_TRSM] = { "trsm", "trsm" },    [LAPACK_GEQRF] = { "geqrf", "geqrf" },
	[LAPACK_ORGQR] = { "orgqr", "ungqr" }, [LAPACK_GESDD] = { "gesdd", "gesdd" },
};

static const struct {
	enum tensor_dtype dtype;
	char letter;
} letters[] = {
	{ TENSOR_F32, 's' }, { TENSOR_F64, 'd' }, { TENSOR_C64, 'c' }, { TENSOR_C128, 'z' }
};

static struct {
	pthread_once_t once;
	void *fn[LAPACK_ROUTINES][TENSOR_DTYPE_COUNT];
	char error[128];
} lapack = { .once = PTHREAD_ONCE_INIT };

static bool load_routine(void *library, int routine)
{
	char name[16];

	for (size_t i = 0; i < ARRAY_SIZE(letters); i++) {
		snprintf(name, sizeof(name), "%c%s_", letters[i].letter,
			 names[routine][dtype_is_complex(letters[i].dtype)]);
		lapack.fn[routine][letters[i].dtype] = dlsym(library, name);
		if (!lapack.fn[routine][letters[i].dtype])
			return false;
	}
	return true;
}

/* ---- loading, and forks meanwhile ---- */

/* A child in which the loader was cut off crashes or hangs in its own dlopen(). */
static struct {
	pthread_mutex_t lock; /* held while the library is loaded, and during forks */
	bool done, cut_off;
} loading = { .lock = PTHREAD_MUTEX_INITIALIZER };
static __thread bool holds_loading;

enum { LOADING_TAKES = 2 }; /* seconds that a fork waits, at most */

static void before_fork(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LOADING_TAKES;
	holds_loading = !pthread_mutex_timedlock(&loading.lock, &until);
}

static void in_parent(void)
{
	if (holds_loading)
		pthread_mutex_unlock(&loading.lock);
}

static void in_child(void)
{
	if (holds_loading) {
		pthread_mutex_unlock(&loading.lock);
		return;
	}
	pthread_mutex_init(&loading.lock, NULL);
	loading.cut_off = true;
}

__attribute__((constructor)) static void wait_in_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static void load_it(void)
{
	const char *name = getenv("TENSOR_LAPACK"), *reason;
	void *library;

	if (!name || !*name)
		name = "liblapack.so.3";
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	for (int i = 0; library && i < LAPACK_ROUTINES; i++)
		if (!load_routine(library, i))
			library = NULL;
	if (library) {
		openblas_find(library);
		return;
	}
	reason = dlerror();
	snprintf(lapack.error, sizeof(lapack.error), "%s", reason ? reason : name);
}

/* A child repeats what pthread_once() had begun in its parent. */
static void load_library(void)
{
	pthread_mutex_lock(&loading.lock);
	if (loading.cut_off)
		snprintf(lapack.error, sizeof(lapack.error),
			 "this process was forked while another thread loaded it");
	else if (!loading.done)
		load_it();
	loading.done = true;
	pthread_mutex_unlock(&loading.lock);
}

void *lapack_function(const char *op, enum lapack_routine routine, enum tensor_dtype dtype)
{
	pthread_once(&lapack.once, load_library);
	if (!lapack.error[0])
		return lapack.fn[routine][dtype];
	tensor_fail(ENOSYS, "%s: needs LAPACK, Debian's libopenblas0-serial or liblapack3: %s", op,
		    lapack.error);
	return NULL;
}

struct batch_run {
	const struct lapack_batch *batch;
	atomic_int err;
};

static void compute_some(int64_t begin, int64_t end, void *ctx)
{
	struct batch_run *r = ctx;
	int64_t bytes = (int64_t)r->batch->work_bytes;
	tensor *work = bytes ? tensor_new(TENSOR_DEVICE_CPU, TENSOR_U8, &bytes, 1) : NULL;
	int err = bytes && !work ? -ENOMEM : openblas_begin();

	if (err) {
		atomic_store(&r->err, err);
	} else {
		for (int64_t i = begin; i < end; i++)
			r->batch->one(r->batch->job, i, work ? work->data : NULL);
		openblas_end();
	}
	tensor_put(work);
}

int lapack_run(const char *op, const struct lapack_batch *batch)
{
	struct batch_run r = { .batch = batch };
	double grain = ITER_GRAIN / (batch->flops + 1);

	parallel_for(0, batch->count, grain < 1 ? 1 : (int64_t)grain, compute_some, &r);
	switch (atomic_load(&r.err)) {
	case 0:
		return 0;
	case -EDEADLK:
		return tensor_fail(
			EDEADLK,
			"%s: this process was forked while another thread was in OpenBLAS, which cannot be "
			"used any more",
			op);
	default:
		return tensor_fail(ENOMEM, "%s: no memory for a workspace", op);
	}
}

int lapack_dims(const char *op, const tensor *a, int *m, int *n)
{
	int64_t rows = a->sizes[a->ndim - 2], columns = a->sizes[a->ndim - 1];

	if (rows > INT32_MAX / 2 || columns > INT32_MAX / 2)
		return tensor_fail(EINVAL, "%s: matrices %s are too large for LAPACK", op,
				   SHAPE_STR(a));
	*m = (int)rows;
	*n = (int)columns;
	return 0;
}

int lapack_answer(const void *element, enum tensor_dtype dtype)
{
	return dtype_real(dtype) == TENSOR_F64 ? (int)*(const double *)element :
						 (int)*(const float *)element;
}

void lapack_register(const struct lapack_kernel *kernels, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tensor_kernel_table_set(kernels[i].name, TENSOR_KEY_CPU, kernels[i].fn);
}
