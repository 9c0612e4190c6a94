/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The losses of a training: progress.c records them, progress_svg.c draws them. */
#ifndef TENSOR_TRAIN_PROGRESS_H
#define TENSOR_TRAIN_PROGRESS_H

#include "base/compiler.h"

#include <tensor/progress.h>

#define CURVE_POINTS 1024

/* Neighbouring steps. */
struct curve_point {
	double least, most, sum;
	int64_t n; /* finite losses; 0: none */
};

/* All losses in at most CURVE_POINTS points of `width` steps each; the last may have fewer. */
struct curve {
	struct curve_point points[CURVE_POINTS];
	int64_t width, steps;
	int64_t bad; /* first step whose loss was not finite; -1: none */
};

void curve_add(struct curve *c, double loss);
/* Writes the picture; label: of the losses. 0, or -errno with the error set. */
int curve_save(const struct curve *c, const char *path, const char *title, const char *label);

#endif
