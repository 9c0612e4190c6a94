/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Priorities of the library's constructors; lower ones run first. Several of them register fork
 * handlers, and fork() runs the prepare handlers in reverse order of registration. The order here
 * is therefore the lock order from the inside out: a lock with a higher number is taken first.
 */
#ifndef TENSOR_BASE_INIT_H
#define TENSOR_BASE_INIT_H

#define INIT_TABLES	   101 /* generated: entries of the dispatcher */
#define INIT_KERNELS	   102 /* kernel tables of the CPU and of LAPACK */
#define INIT_AUTOGRAD	   103 /* generated: entries of the autograd key */
#define INIT_TRACE	   109 /* the file of TENSOR_TRACE */
#define INIT_MEMORY	   110 /* arenas and mappings of private memory */
#define INIT_CACHE	   111
#define INIT_DEVICE_FILE   112
#define INIT_HOOKS	   113 /* functions of higher layers that lower ones call */
#define INIT_DEVICE_QUEUES 114
#define INIT_GROUP	   119
#define INIT_IMPORT	   120
#define INIT_LABEL	   121
#define INIT_SHARE	   122
#define INIT_WIRE	   123
#define INIT_BUFFER	   124
#define INIT_SHAREABLE	   125
#define INIT_AUTOGRAD_LOCK 126
#define INIT_LOADER	   127
#define INIT_LEASE	   128
#define INIT_POOL	   129
#define INIT_CHANNEL	   130
#define INIT_PROCESS_GROUP 131
#define INIT_GROUP_JOIN	   132
#define INIT_REMOTE	   133

#define INIT(priority) __attribute__((constructor(priority)))

#endif
