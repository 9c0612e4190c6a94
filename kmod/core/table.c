// SPDX-License-Identifier: GPL-2.0-only
/*
 * A table of objects by id.
 *
 * The node is embedded in the object, so adding an object allocates nothing and cannot fail.
 */
#include <linux/lockdep.h>

#include "table.h"

/**
 * tensor_table_init() - initialise an empty table
 * @table: filled in
 */
void tensor_table_init(struct tensor_table *table)
{
	spin_lock_init(&table->lock);
	table->root = RB_ROOT;
}

static bool entry_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct tensor_entry, node)->id <
	       rb_entry(b, struct tensor_entry, node)->id;
}

/**
 * tensor_table_add() - add an object
 * @table: the table; its lock is held
 * @entry: entry of the object
 * @id: its id, unique in the table
 */
void tensor_table_add(struct tensor_table *table, struct tensor_entry *entry, u64 id)
{
	lockdep_assert_held(&table->lock);
	entry->id = id;
	rb_add(&entry->node, &table->root, entry_less);
}

/**
 * tensor_table_del() - remove an object
 * @table: the table; its lock is held
 * @entry: entry of the object, which is in the table
 */
void tensor_table_del(struct tensor_table *table, struct tensor_entry *entry)
{
	lockdep_assert_held(&table->lock);
	rb_erase(&entry->node, &table->root);
	entry->id = 0;
}

/**
 * tensor_table_next() - find an object
 * @table: the table; its lock is held
 * @id: any number
 *
 * Return: the object with that id, otherwise the one with the next larger id; NULL: there is none.
 */
struct tensor_entry *tensor_table_next(const struct tensor_table *table, u64 id)
{
	struct rb_node *node = table->root.rb_node;
	struct tensor_entry *entry, *found = NULL;

	lockdep_assert_held(&table->lock);
	while (node) {
		entry = rb_entry(node, struct tensor_entry, node);
		if (entry->id < id) {
			node = node->rb_right;
		} else {
			found = entry;
			node = node->rb_left;
		}
	}
	return found;
}
