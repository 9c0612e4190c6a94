/* SPDX-License-Identifier: GPL-2.0-only */
/* The ioctls of the exporter for tests; user space includes this file, too. */
#ifndef TENSOR_TEST_EXPORTER_H
#define TENSOR_TEST_EXPORTER_H

#include <linux/ioctl.h>

/*
 * The argument is a size in bytes, of any value; memory exists up to EXPORTER_MAX_BYTES. Returns a
 * dma-buf fd.
 */
#define EXPORTER_PLAIN	    _IO(0xD8, 0)
#define EXPORTER_NO_MMAP    _IO(0xD8, 1) /* has no mmap() */
#define EXPORTER_MMAP_FAILS _IO(0xD8, 2) /* mmap() returns -ENXIO */
#define EXPORTER_NO_ACCESS  _IO(0xD8, 3) /* begin_cpu_access() returns -EIO */

/* The argument is a dma-buf fd: its memory is gone from now on. */
#define EXPORTER_REVOKE _IO(0xD8, 16)

#define EXPORTER_MAX_BYTES 0x100000UL

#endif /* TENSOR_TEST_EXPORTER_H */
