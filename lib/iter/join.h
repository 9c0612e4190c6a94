/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Rows made of pieces that come from several blocks of host memory: what cat and roll are of dense
 * tensors.
 */
#ifndef TENSOR_JOIN_H
#define TENSOR_JOIN_H

#include <stdint.h>

struct join_piece {
	const char *from; /* row r's piece is at from + r * step */
	int64_t bytes, step;
};

/* Writes `rows` rows to `to`, one after the other, each the n pieces in their order. */
void join_rows(char *to, int64_t rows, const struct join_piece *piece, int n);

#endif
