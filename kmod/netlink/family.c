// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family, which lists clients, buffers, handles, exports and users. Its ABI is
 * documented in <linux/tensor_netlink.h>.
 *
 * The family is available in every network namespace: buffers belong to no network namespace, and a
 * container with its own can list its buffers. The visibility of a row depends on the user and pid
 * namespace, see tensor_owner_visible().
 */
#include <linux/tensor_netlink.h>
#include <net/genetlink.h>

#include "../buffer/registry.h"
#include "../client/client.h"
#include "../core/owner.h"
#include "dump.h"
#include "family.h"
#include "message.h"
#include "notify.h"
#include "row.h"

static struct genl_family netlink_family;

/* Reply with one message, which @fill writes; an error of @fill, also -EMSGSIZE, is returned. */
static int reply(struct sk_buff *request, struct genl_info *info, u8 cmd,
		 int (*fill)(struct sk_buff *skb, struct genl_info *info, struct sk_buff *request))
{
	struct sk_buff *skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	void *row;
	int err;

	if (!skb)
		return -ENOMEM;
	row = genlmsg_put_reply(skb, info, &netlink_family, 0, cmd);
	err = tensor_message_end(skb, row, row ? fill(skb, info, request) : 0);
	if (err) {
		nlmsg_free(skb);
		return err;
	}
	return genlmsg_reply(skb, info);
}

/* The same error for an object that does not exist and one that the caller may not see. */
static int no_object(struct genl_info *info, int attr)
{
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[attr],
			    "No such object is visible to the caller");
	return -ENOENT;
}

/* Reject attributes that are filters of dumps. */
static int only_id(struct genl_info *info, int id, int last)
{
	int attr;

	if (GENL_REQ_ATTR_CHECK(info, id)) {
		GENL_SET_ERR_MSG(info, "An id or NLM_F_DUMP is required");
		return -EINVAL;
	}
	for (attr = 1; attr <= last; attr++) {
		if (attr == id || !info->attrs[attr])
			continue;
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[attr],
				    "Filters are accepted with NLM_F_DUMP only");
		return -EINVAL;
	}
	return 0;
}

static int put_client(struct sk_buff *skb, struct genl_info *info, struct sk_buff *request)
{
	u64 id = nla_get_u64(info->attrs[TENSOR_A_CLIENT_ID]);
	struct tensor_client_row row;
	int err = -ENOENT;

	if (!tensor_client_next(id, &row))
		return no_object(info, TENSOR_A_CLIENT_ID);
	if (row.id == id && tensor_owner_visible(row.owner, request))
		err = tensor_row_client(skb, &row);
	tensor_owner_put(row.owner);
	return err == -ENOENT ? no_object(info, TENSOR_A_CLIENT_ID) : err;
}

static int get_client(struct sk_buff *request, struct genl_info *info)
{
	int err = only_id(info, TENSOR_A_CLIENT_ID, TENSOR_A_CLIENT_PID);

	return err ?: reply(request, info, TENSOR_CMD_CLIENT_GET, put_client);
}

static int put_buf(struct sk_buff *skb, struct genl_info *info, struct sk_buff *request)
{
	u64 id = nla_get_u64(info->attrs[TENSOR_A_BUF_ID]);
	struct tensor_buf_row row;
	int err = -ENOENT;

	if (!tensor_buf_next(id, &row))
		return no_object(info, TENSOR_A_BUF_ID);
	if (row.id == id && tensor_owner_visible(row.owner, request))
		err = tensor_row_buf(skb, &row);
	tensor_owner_put(row.owner);
	return err == -ENOENT ? no_object(info, TENSOR_A_BUF_ID) : err;
}

static int get_buf(struct sk_buff *request, struct genl_info *info)
{
	int err = only_id(info, TENSOR_A_BUF_ID, TENSOR_A_BUF_PID);

	return err ?: reply(request, info, TENSOR_CMD_BUF_GET, put_buf);
}

static int put_stat(struct sk_buff *skb, struct genl_info *info, struct sk_buff *request)
{
	return tensor_row_stat(skb);
}

static int get_stat(struct sk_buff *request, struct genl_info *info)
{
	return reply(request, info, TENSOR_CMD_STAT_GET, put_stat);
}

static const struct nla_policy client_policy[] = {
	[TENSOR_A_CLIENT_ID] = NLA_POLICY_MIN(NLA_U64, 1),
	[TENSOR_A_CLIENT_PID] = NLA_POLICY_MIN(NLA_U32, 1),
};

static const struct nla_policy buf_policy[] = {
	[TENSOR_A_BUF_ID] = NLA_POLICY_MIN(NLA_U64, 1),
	[TENSOR_A_BUF_CLIENT] = NLA_POLICY_MIN(NLA_U64, 1),
	[TENSOR_A_BUF_PID] = NLA_POLICY_MIN(NLA_U32, 1),
};

static const struct nla_policy handle_policy[] = {
	[TENSOR_A_HANDLE_CLIENT] = NLA_POLICY_MIN(NLA_U64, 1),
	[TENSOR_A_HANDLE_BUF] = NLA_POLICY_MIN(NLA_U64, 1),
};

static const struct nla_policy export_policy[] = {
	[TENSOR_A_EXPORT_BUF] = NLA_POLICY_MIN(NLA_U64, 1),
	[TENSOR_A_EXPORT_PID] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* A policy that rejects all attributes; without a policy they would not be checked. */
static const struct nla_policy no_attrs[] = {
	[1] = { .type = NLA_REJECT },
};

static const struct genl_ops netlink_ops[] = {
	{
		.cmd = TENSOR_CMD_CLIENT_GET,
		.doit = get_client,
		.start = tensor_dump_client_start,
		.dumpit = tensor_dump_clients,
		.policy = client_policy,
		.maxattr = ARRAY_SIZE(client_policy) - 1,
	},
	{
		.cmd = TENSOR_CMD_BUF_GET,
		.doit = get_buf,
		.start = tensor_dump_buf_start,
		.dumpit = tensor_dump_bufs,
		.policy = buf_policy,
		.maxattr = ARRAY_SIZE(buf_policy) - 1,
	},
	{
		.cmd = TENSOR_CMD_STAT_GET,
		.doit = get_stat,
		.policy = no_attrs,
		.maxattr = ARRAY_SIZE(no_attrs) - 1,
	},
	{
		.cmd = TENSOR_CMD_HANDLE_GET,
		.start = tensor_dump_handle_start,
		.dumpit = tensor_dump_handles,
		.policy = handle_policy,
		.maxattr = ARRAY_SIZE(handle_policy) - 1,
	},
	{
		.cmd = TENSOR_CMD_EXPORT_GET,
		.start = tensor_dump_export_start,
		.dumpit = tensor_dump_exports,
		.policy = export_policy,
		.maxattr = ARRAY_SIZE(export_policy) - 1,
	},
	{
		.cmd = TENSOR_CMD_USER_GET,
		.dumpit = tensor_dump_users,
		.policy = no_attrs,
		.maxattr = ARRAY_SIZE(no_attrs) - 1,
	},
};

static const struct genl_multicast_group netlink_groups[] = {
	{
		.name = TENSOR_GENL_EVENTS,
		.flags = GENL_MCAST_CAP_NET_ADMIN,
	},
};

/* parallel_ops: the registry has its own locks, and a long dump must not block other families. */
static struct genl_family netlink_family __ro_after_init = {
	.name = TENSOR_GENL_NAME,
	.version = TENSOR_GENL_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.parallel_ops = true,
	.ops = netlink_ops,
	.n_ops = ARRAY_SIZE(netlink_ops),
	.mcgrps = netlink_groups,
	.n_mcgrps = ARRAY_SIZE(netlink_groups),
};

/**
 * tensor_netlink_init() - register the family
 *
 * Return: 0 or -errno.
 */
int __init tensor_netlink_init(void)
{
	tensor_notify_init(&netlink_family);
	tensor_dump_init(&netlink_family);
	return genl_register_family(&netlink_family);
}

/**
 * tensor_netlink_exit() - unregister the family; no request is in progress on return
 */
void tensor_netlink_exit(void)
{
	genl_unregister_family(&netlink_family);
}
