/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers for all messages of the family. */
#ifndef TENSOR_NETLINK_MESSAGE_H
#define TENSOR_NETLINK_MESSAGE_H

#include <net/genetlink.h>

/**
 * tensor_message_end() - finish a message, or cancel it
 * @skb: the message is the last in it
 * @message: the header from genlmsg_put(); NULL: there was no room for it
 * @err: 0, or the error of adding its attributes
 *
 * Return: 0; or an error and @skb is as before.
 */
static inline int tensor_message_end(struct sk_buff *skb, void *message, int err)
{
	if (!message)
		return -EMSGSIZE;
	if (err)
		genlmsg_cancel(skb, message);
	else
		genlmsg_end(skb, message);
	return err;
}

#endif /* TENSOR_NETLINK_MESSAGE_H */
