/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* log(e^x + e^y) of complex numbers. */
#ifndef TENSOR_FORMULA_LOG_COMPLEX_H
#define TENSOR_FORMULA_LOG_COMPLEX_H

#include "kernels/formula/dtypes.h"

#include <math.h>

/*
 * most + log(1 + e^(least - most)), where most has the greater real part: the exponential is at
 * most 1.
 */
FORMULA complex_f64 log_add_complex(complex_f64 x, complex_f64 y)
{
	complex_f64 most, least;

	if (x != x || y != y)
		return CMPLX(NAN, NAN);
	most = creal(x) < creal(y) ? y : x;
	least = creal(x) < creal(y) ? x : y;
	if (creal(most) == creal(least) && isinf(creal(most)))
		return creal(most) < 0 ? least : clog(cexp(least) + cexp(most));
	if (isinf(creal(least)))
		return most;
	return most + clog(1 + cexp(least - most));
}

#endif
