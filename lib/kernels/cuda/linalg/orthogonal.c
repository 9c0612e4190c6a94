// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* QR factorization into reflectors and a triangle, and the product of reflectors, by cuSOLVER. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/cusolver.h"

int cuda_geqrf(tensor *a, tensor *tau)
{
	struct solver s;
	int m, n, err = cuda_solver_dims("geqrf", a, &m, &n);

	if (!err)
		err = cuda_solver_begin(&s, "geqrf", (const tensor *const[]){ a, tau }, 2);
	if (err)
		return err;
	err = cuda_solver_check(&s, s.of->geqrf_size(s.dense, m, n, a->data, m, &s.lwork));
	if (!err)
		err = cuda_solver_work(&s, a->dtype);
	for (int64_t i = 0; i < cuda_matrices(a) && !err; i++)
		err = cuda_solver_check(&s, s.of->geqrf(s.dense, m, n, cuda_matrix(a, i), m,
							cuda_vector(tau, i), s.work, s.lwork,
							s.ignored));
	return cuda_solver_end(&s, err);
}

int cuda_linalg_householder_product(tensor *a, tensor *tau)
{
	const char *op = "linalg_householder_product";
	const int k = (int)tau->sizes[tau->ndim - 1];
	struct solver s;
	int m, n, err = cuda_solver_dims(op, a, &m, &n);

	if (!err)
		err = cuda_solver_begin(&s, op, (const tensor *const[]){ a, tau }, 2);
	if (err)
		return err;
	err = cuda_solver_check(&s, s.of->orgqr_size(s.dense, m, n, k, a->data, m, tau->data,
						     &s.lwork));
	if (!err)
		err = cuda_solver_work(&s, a->dtype);
	for (int64_t i = 0; i < cuda_matrices(a) && !err; i++)
		err = cuda_solver_check(&s, s.of->orgqr(s.dense, m, n, k, cuda_matrix(a, i), m,
							cuda_vector(tau, i), s.work, s.lwork,
							s.ignored));
	return cuda_solver_end(&s, err);
}
