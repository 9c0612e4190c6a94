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
 * struct tensor_entry - an object's place in a table
 * @id: its id, never 0; 0: it is in none
 * @node: the place
 */
struct tensor_entry {
	u64 id;
	struct rb_node node;
};

/**
 * struct tensor_table - objects by id
 * @lock: guards all of it; an object leaves before it is destroyed, so a reader has the lock
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
