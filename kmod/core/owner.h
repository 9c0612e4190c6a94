/* SPDX-License-Identifier: GPL-2.0-only */
/* The owner of a client or a buffer: the process that made it. */
#ifndef TENSOR_OWNER_H
#define TENSOR_OWNER_H

#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "../alloc/alloc.h"

struct pid;
struct sk_buff;
struct user_namespace;

/**
 * struct tensor_owner - the process that made a client, a buffer or a file; shared and immutable
 * @ref: reference count
 * @pid: its pid; the process may have ended
 * @ns: its user namespace at that time
 * @uid: its effective uid at that time
 * @user: the user who is charged
 * @comm: its name at that time
 */
struct tensor_owner {
	refcount_t ref;
	struct pid *pid;
	struct user_namespace *ns;
	kuid_t uid;
	struct tensor_user *user;
	char comm[TASK_COMM_LEN];
};

struct tensor_owner *tensor_owner_new(void);
struct tensor_owner *tensor_owner_current(struct tensor_owner *hint);
struct tensor_owner *tensor_owner_get(struct tensor_owner *owner);
void tensor_owner_put(struct tensor_owner *owner);
bool tensor_owner_visible(const struct tensor_owner *owner, struct sk_buff *request);

#endif /* TENSOR_OWNER_H */
