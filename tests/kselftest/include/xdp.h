/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* AF_XDP, which pins memory long-term and for writing. */
#ifndef TENSOR_KSELFTEST_XDP_H
#define TENSOR_KSELFTEST_XDP_H

#include <linux/if_xdp.h>

#include "device.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

/* A socket with a umem in that memory; -EAFNOSUPPORT if the kernel has no AF_XDP; -errno. */
HELPER int xdp_pin(void *at, uint64_t bytes)
{
	struct xdp_umem_reg reg = { .addr = (unsigned long)at, .len = bytes, .chunk_size = PAGE };
	int sock = socket(AF_XDP, SOCK_RAW, 0), err;

	if (sock < 0)
		return -errno;
	if (!setsockopt(sock, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)))
		return sock;
	err = -errno;
	close(sock);
	return err;
}

#endif /* TENSOR_KSELFTEST_XDP_H */
