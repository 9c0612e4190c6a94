/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Macros and headers that every file of the library uses. */
#ifndef TENSOR_COMPILER_H
#define TENSOR_COMPILER_H

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#define TENSOR_WITHOUT_OPS
#include <tensor/dispatch.h>
#include <tensor/tensor.h>

#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define TENSOR_EXPORT __attribute__((visibility("default")))

#endif
