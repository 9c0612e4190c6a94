/* SPDX-License-Identifier: GPL-2.0-only */
/* All clients, buffers and exported files, for netlink. */
#ifndef TENSOR_REGISTRY_H
#define TENSOR_REGISTRY_H

#include <linux/types.h>

#include "../core/owner.h"
#include "../core/table.h"
#include "buf.h"

extern struct tensor_table tensor_bufs;
extern struct tensor_table tensor_clients;

/**
 * struct tensor_exported - entry of a file or dma-buf that EXPORT made
 * @listed: its entry in the table of its buffer, with its id
 * @born: time of creation, boot time clock, nanoseconds
 * @kind: enum tensor_export_kind
 * @hold: its range and rights
 * @owner: the process that made it
 */
struct tensor_exported {
	struct tensor_entry listed;
	u64 born;
	u32 kind;
	const struct tensor_hold *hold;
	struct tensor_owner *owner;
};

/**
 * struct tensor_totals - counts of the registry
 * @clients: opens of /dev/tensor
 * @bufs: number of buffers
 * @bytes: bytes of all buffers
 * @huge_bytes: bytes of these in chunks of PMD size
 * @exports: number of files made by EXPORT, by enum tensor_export_kind
 */
struct tensor_totals {
	u64 clients;
	u64 bufs;
	u64 bytes;
	u64 huge_bytes;
	u64 exports[2];
};

u64 tensor_registry_id(void);
void tensor_registry_add_buf(struct tensor_buf *buf);
void tensor_registry_del_buf(struct tensor_buf *buf);
void tensor_registry_add_client(struct tensor_entry *client, u64 id);
void tensor_registry_del_client(struct tensor_entry *client);
int tensor_registry_add_export(struct tensor_exported *exported, const struct tensor_hold *hold,
			       u32 kind);
void tensor_registry_del_export(struct tensor_exported *exported);
u32 tensor_registry_generation(bool exports);
void tensor_registry_totals(struct tensor_totals *totals);

#endif /* TENSOR_REGISTRY_H */
