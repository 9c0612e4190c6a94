/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Scaling of a complex matrix with parts of type T (no include guard; see each_float.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

/* c times (re, im), in place. The strides of c are in real numbers. */
static void F(scale_complex)(const struct product *p, double re, double im)
{
	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++) {
			T *c = (T *)p->c + i * p->rsc + j * p->csc, x = c[0], y = c[1];

			c[0] = (T)(re * x - im * y);
			c[1] = (T)(re * y + im * x);
		}
}

#undef F
