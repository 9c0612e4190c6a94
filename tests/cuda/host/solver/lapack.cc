// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Calls of the LAPACK that the library loads, too. Workspaces are as large as LAPACK says. */
#include "lapack.hpp"

#include "host.hpp"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* real and complex: the names without the letter of the dtype. */
static void *function(int kind, const char *real, const char *complex)
{
	const char *file = getenv("TENSOR_LAPACK");
	static void *library =
		dlopen(file && *file ? file : "liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
	char name[16];

	snprintf(name, sizeof(name), "%c%s_", "sdcz"[kind], kind < 2 ? real : complex);
	void *f = library ? dlsym(library, name) : nullptr;
	if (!f)
		host_fatal("cuSOLVER: the stand-in needs LAPACK: %s", dlerror());
	return f;
}

/* Memory for `n` elements of a size that LAPACK has stored as a number of that kind. */
static int stored(int kind, const char *answer)
{
	return kind % 2 ? (int)*(const double *)answer : (int)*(const float *)answer;
}

int lapack_getrf(int kind, int m, int n, void *a, int lda, int *pivots)
{
	typedef void (*fn)(const int *, const int *, void *, const int *, int *, int *);
	int info = 0;

	((fn)function(kind, "getrf", "getrf"))(&m, &n, a, &lda, pivots, &info);
	return info;
}

int lapack_getrs(int kind, char trans, int n, int columns, void *a, int lda, const int *pivots,
		 void *b, int ldb)
{
	typedef void (*fn)(const char *, const int *, const int *, void *, const int *, const int *,
			   void *, const int *, int *, size_t);
	int info = 0;

	((fn)function(kind, "getrs", "getrs"))(&trans, &n, &columns, a, &lda, pivots, b, &ldb,
					       &info, 1);
	return info;
}

int lapack_potrf(int kind, char uplo, int n, void *a, int lda)
{
	typedef void (*fn)(const char *, const int *, void *, const int *, int *, size_t);
	int info = 0;

	((fn)function(kind, "potrf", "potrf"))(&uplo, &n, a, &lda, &info, 1);
	return info;
}

int lapack_potrs(int kind, char uplo, int n, int columns, void *a, int lda, void *b, int ldb)
{
	typedef void (*fn)(const char *, const int *, const int *, void *, const int *, void *,
			   const int *, int *, size_t);
	int info = 0;

	((fn)function(kind, "potrs", "potrs"))(&uplo, &n, &columns, a, &lda, b, &ldb, &info, 1);
	return info;
}

int lapack_geqrf(int kind, int m, int n, void *a, int lda, void *tau)
{
	typedef void (*fn)(const int *, const int *, void *, const int *, void *, void *,
			   const int *, int *);
	const fn f = (fn)function(kind, "geqrf", "geqrf");
	char answer[64] = {};
	int info = 0, size = -1;

	f(&m, &n, a, &lda, tau, answer, &size, &info);
	size = stored(kind, answer);
	std::vector<char> work((size_t)size * item_of(kind));
	f(&m, &n, a, &lda, tau, work.data(), &size, &info);
	return info;
}

int lapack_orgqr(int kind, int m, int n, int k, void *a, int lda, void *tau)
{
	typedef void (*fn)(const int *, const int *, const int *, void *, const int *, void *,
			   void *, const int *, int *);
	const fn f = (fn)function(kind, "orgqr", "ungqr");
	char answer[64] = {};
	int info = 0, size = -1;

	f(&m, &n, &k, a, &lda, tau, answer, &size, &info);
	size = stored(kind, answer);
	std::vector<char> work((size_t)size * item_of(kind));
	f(&m, &n, &k, a, &lda, tau, work.data(), &size, &info);
	return info;
}

int lapack_eigh(int kind, char jobz, char uplo, int n, void *a, int lda, void *w)
{
	typedef void (*real)(const char *, const char *, const int *, void *, const int *, void *,
			     void *, const int *, int *, size_t, size_t);
	typedef void (*complex)(const char *, const char *, const int *, void *, const int *,
				void *, void *, const int *, void *, int *, size_t, size_t);
	void *f = function(kind, "syev", "heev");
	std::vector<double> reals((size_t)n * 3 + 1);
	int info = 0, size = (n + 2) * 34;
	std::vector<char> work((size_t)size * item_of(kind));

	if (kind < 2)
		((real)f)(&jobz, &uplo, &n, a, &lda, w, work.data(), &size, &info, 1, 1);
	else
		((complex)f)(&jobz, &uplo, &n, a, &lda, w, work.data(), &size, reals.data(), &info,
			     1, 1);
	return info;
}

int lapack_gesvd(int kind, char job, int m, int n, void *a, int lda, void *s, void *u, int ldu,
		 void *vt, int ldvt)
{
	typedef void (*real)(const char *, const char *, const int *, const int *, void *,
			     const int *, void *, void *, const int *, void *, const int *, void *,
			     const int *, int *, size_t, size_t);
	typedef void (*complex)(const char *, const char *, const int *, const int *, void *,
				const int *, void *, void *, const int *, void *, const int *,
				void *, const int *, void *, int *, size_t, size_t);
	void *f = function(kind, "gesvd", "gesvd");
	std::vector<double> reals((size_t)n * 5 + 1);
	int info = 0, size = (m + 5 * n + 2) * 34;
	std::vector<char> work((size_t)size * item_of(kind));

	if (kind < 2)
		((real)f)(&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size,
			  &info, 1, 1);
	else
		((complex)f)(&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size,
			     reals.data(), &info, 1, 1);
	return info;
}

void lapack_trsm(int kind, char side, char uplo, char trans, char diag, int m, int n,
		 const void *alpha, void *a, int lda, void *b, int ldb)
{
	typedef void (*fn)(const char *, const char *, const char *, const char *, const int *,
			   const int *, const void *, void *, const int *, void *, const int *,
			   size_t, size_t, size_t, size_t);

	((fn)function(kind, "trsm", "trsm"))(&side, &uplo, &trans, &diag, &m, &n, alpha, a, &lda, b,
					     &ldb, 1, 1, 1, 1);
}
