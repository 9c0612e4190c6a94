// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Connectionist temporal classification; a sequence of the batch is one task. */
#include "kernels/abi/ctc.h"
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

#include <math.h>

/* The class at position s: blanks are at even positions. */
static int64_t ctc_label(const struct ctc *c, const int64_t *labels, int64_t s)
{
	return s & 1 ? labels[s / 2] : c->blank;
}

/* Whether position s may follow position s - 2: its label differs. */
static bool ctc_skips(const struct ctc *c, const int64_t *labels, int64_t s)
{
	return s > 1 && ctc_label(c, labels, s) != ctc_label(c, labels, s - 2);
}

#define T	   float
#define EXP	   expf
#define LOG	   logf
#define LOOP(name) name##_f32
#include "kernels/cpu/nn/ctc_loops.h"
#undef T
#undef EXP
#undef LOG
#undef LOOP
#define T	   double
#define EXP	   exp
#define LOG	   log
#define LOOP(name) name##_f64
#include "kernels/cpu/nn/ctc_loops.h"

static int cpu_ctc_loss(const struct ctc *c)
{
	parallel_for(0, c->batch, 1, c->dtype == TENSOR_F64 ? range_f64 : range_f32, (void *)c);
	return 0;
}

CPU_KERNELS(KERNEL(ctc_loss))
