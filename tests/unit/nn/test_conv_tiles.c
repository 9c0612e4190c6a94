// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The tests of test_conv_bf16.c with a C model of AMX, on every processor that adds products of pairs. */
#define TILES "model"
#define NAME  "conv_tiles"

#include "test_conv_bf16.c"
