// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The tests of test_quantized.c with a C model of AMX. */
#define TILES "model"
#define NAME  "quantized_tiles"

#include "test_quantized.c"
