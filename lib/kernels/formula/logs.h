/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* logaddexp, logaddexp2, xlogy, without overflow of intermediate results. */
VEC_BINARY(logaddexp, logaddexp)
VEC_BINARY(logaddexp2, logaddexp2)
VEC_BINARY(xlogy, xlogy)
BINARY_COMPLEX(logaddexp, log_add_complex((complex_f64)x, (complex_f64)y))
POINTWISE(logaddexp, AT_FLOAT(logaddexp), AT_COMPLEX(logaddexp))
POINTWISE(logaddexp2, AT_FLOAT(logaddexp2))
POINTWISE(xlogy, AT_FLOAT(xlogy))
