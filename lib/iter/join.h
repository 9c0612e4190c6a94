/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Concatenate pieces of several blocks of host memory into rows: cat and roll of dense tensors. */
#ifndef TENSOR_JOIN_H
#define TENSOR_JOIN_H

#include <stdint.h>

struct join_piece {
	const char *from; /* row r's piece is at from + r * step */
	int64_t bytes, step;
};

/* Write `rows` consecutive rows to `to`, each the n pieces in order. */
void join_rows(char *to, int64_t rows, const struct join_piece *piece, int n);

#endif
