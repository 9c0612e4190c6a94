/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* LAPACK on the host, for the stand-in of cuSOLVER. kind: 0 to 3 for f32, f64, c64 and c128. Returns LAPACK's info. */
#ifndef CUDA_HOST_LAPACK_HPP
#define CUDA_HOST_LAPACK_HPP

#include <stddef.h>

static inline size_t item_of(int kind)
{
	return kind == 0 ? 4 : kind == 3 ? 16 : 8;
}

static inline size_t real_of(int kind)
{
	return kind % 2 ? 8 : 4;
}

int lapack_getrf(int kind, int m, int n, void *a, int lda, int *pivots);
int lapack_getrs(int kind, char trans, int n, int columns, void *a, int lda, const int *pivots,
		 void *b, int ldb);
int lapack_potrf(int kind, char uplo, int n, void *a, int lda);
int lapack_potrs(int kind, char uplo, int n, int columns, void *a, int lda, void *b, int ldb);
int lapack_geqrf(int kind, int m, int n, void *a, int lda, void *tau);
int lapack_orgqr(int kind, int m, int n, int k, void *a, int lda, void *tau);
int lapack_eigh(int kind, char jobz, char uplo, int n, void *a, int lda, void *w);
int lapack_gesvd(int kind, char job, int m, int n, void *a, int lda, void *s, void *u, int ldu,
		 void *vt, int ldvt);
void lapack_trsm(int kind, char side, char uplo, char trans, char diag, int m, int n,
		 const void *alpha, void *a, int lda, void *b, int ldb);

#endif
