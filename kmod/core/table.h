/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of objects by id.
 */
#ifndef TENSOR_TABLE_H
#define TENSOR_TABLE_H

#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/**
 * struct tensor_entry - the entry of an object in a table
 * @id: its id; 0: it is in no table
 * @node: node in the tree
 */
struct tensor_entry {
	u64 id;
	struct rb_node node;
};

/**
 * struct tensor_table - objects by id
 * @lock: guards @root; an object is removed before it is freed, so a reader holds the lock
 * @root: the entries
 */
struct tensor_table {
	spinlock_t lock; /* guards root */
	struct rb_root root;
};

#define TENSOR_TABLE(name)                                               \
	{                                                                \
		.lock = __SPIN_LOCK_UNLOCKED(name.lock), .root = RB_ROOT \
	}

void tensor_table_init(struct tensor_table *table);
void tensor_table_add(struct tensor_table *table, struct tensor_entry *entry, u64 id);
void tensor_table_del(struct tensor_table *table, struct tensor_entry *entry);
struct tensor_entry *tensor_table_next(const struct tensor_table *table, u64 id);

#endif /* TENSOR_TABLE_H */
