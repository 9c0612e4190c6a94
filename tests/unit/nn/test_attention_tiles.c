// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The first tests of test_attention.c with a C model of AMX, on every processor that adds products of pairs. */
#define TILES "model"
#define NAME  "attention_tiles"
#define TESTS 5

#include "test_attention.c"
