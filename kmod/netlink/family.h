/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The generic netlink family.
 */
#ifndef TENSOR_NETLINK_FAMILY_H
#define TENSOR_NETLINK_FAMILY_H

int tensor_netlink_init(void);
void tensor_netlink_exit(void);

#endif /* TENSOR_NETLINK_FAMILY_H */
