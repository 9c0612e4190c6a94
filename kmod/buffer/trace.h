/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: every transition of an object, with the ids that INFO and netlink show.
 *
 *	echo 1 > /sys/kernel/tracing/events/tensor/enable
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tensor

#if !defined(TENSOR_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TENSOR_TRACE_H

#include <linux/device.h>
#include <linux/mm_types.h>
#include <linux/tracepoint.h>

#include "buf.h"

/* Laid out by hand: clang-format does not know the macros of tracepoints. */
/* clang-format off */
DECLARE_EVENT_CLASS(tensor_buf,
		    TP_PROTO(const struct tensor_buf *buf),
		    TP_ARGS(buf),
		    TP_STRUCT__entry(__field(u64, id)
				     __field(u64, bytes)
				     __field(u64, huge)),
		    TP_fast_assign(__entry->id = buf->id;
				   __entry->bytes = buf->bytes;
				   __entry->huge = buf->huge_bytes;),
		    TP_printk("buf=%llu bytes=%llu huge=%llu", __entry->id, __entry->bytes,
			      __entry->huge)
);

DEFINE_EVENT(tensor_buf, tensor_buf_new,
	     TP_PROTO(const struct tensor_buf *buf),
	     TP_ARGS(buf)
);

DEFINE_EVENT(tensor_buf, tensor_buf_evict,
	     TP_PROTO(const struct tensor_buf *buf),
	     TP_ARGS(buf)
);

DECLARE_EVENT_CLASS(tensor_handle,
		    TP_PROTO(u64 client, u32 handle, const struct tensor_hold *hold),
		    TP_ARGS(client, handle, hold),
		    TP_STRUCT__entry(__field(u64, client)
				     __field(u64, buf)
				     __field(u32, handle)
				     __field(u32, rights)),
		    TP_fast_assign(__entry->client = client;
				   __entry->buf = hold->buf->id;
				   __entry->handle = handle;
				   __entry->rights = hold->rights;),
		    TP_printk("client=%llu handle=%u buf=%llu rights=%x", __entry->client,
			      __entry->handle, __entry->buf, __entry->rights)
);

DEFINE_EVENT(tensor_handle, tensor_handle_publish,
	     TP_PROTO(u64 client, u32 handle, const struct tensor_hold *hold),
	     TP_ARGS(client, handle, hold)
);

DEFINE_EVENT(tensor_handle, tensor_handle_retire,
	     TP_PROTO(u64 client, u32 handle, const struct tensor_hold *hold),
	     TP_ARGS(client, handle, hold)
);

DECLARE_EVENT_CLASS(tensor_hold,
		    TP_PROTO(const struct tensor_hold *hold),
		    TP_ARGS(hold),
		    TP_STRUCT__entry(__field(u64, buf)
				     __field(u64, first)
				     __field(u64, count)
				     __field(u32, rights)),
		    TP_fast_assign(__entry->buf = hold->buf->id;
				   __entry->first = hold->first;
				   __entry->count = hold->count;
				   __entry->rights = hold->rights;),
		    TP_printk("buf=%llu rights=%x pages %llu+%llu", __entry->buf,
			      __entry->rights, __entry->first, __entry->count)
);

DEFINE_EVENT(tensor_hold, tensor_file_open,
	     TP_PROTO(const struct tensor_hold *hold),
	     TP_ARGS(hold)
);

DEFINE_EVENT(tensor_hold, tensor_file_release,
	     TP_PROTO(const struct tensor_hold *hold),
	     TP_ARGS(hold)
);

DEFINE_EVENT(tensor_hold, tensor_dmabuf_open,
	     TP_PROTO(const struct tensor_hold *hold),
	     TP_ARGS(hold)
);

DEFINE_EVENT(tensor_hold, tensor_dmabuf_release,
	     TP_PROTO(const struct tensor_hold *hold),
	     TP_ARGS(hold)
);

TRACE_EVENT(tensor_map,
	    TP_PROTO(const struct tensor_buf *buf, const struct vm_area_struct *vma),
	    TP_ARGS(buf, vma),
	    TP_STRUCT__entry(__field(u64, buf)
			     __field(unsigned long, start)
			     __field(unsigned long, end)
			     __field(unsigned long, first)),
	    TP_fast_assign(__entry->buf = buf->id;
			   __entry->start = vma->vm_start;
			   __entry->end = vma->vm_end;
			   __entry->first = vma->vm_pgoff;),
	    TP_printk("buf=%llu %lx-%lx from page %lu", __entry->buf, __entry->start, __entry->end,
		      __entry->first)
);

TRACE_EVENT(tensor_unmap,
	    TP_PROTO(const struct tensor_buf *buf, const struct vm_area_struct *vma),
	    TP_ARGS(buf, vma),
	    TP_STRUCT__entry(__field(u64, buf)
			     __field(unsigned long, start)
			     __field(unsigned long, end)),
	    TP_fast_assign(__entry->buf = buf->id;
			   __entry->start = vma->vm_start;
			   __entry->end = vma->vm_end;),
	    TP_printk("buf=%llu %lx-%lx", __entry->buf, __entry->start, __entry->end)
);

TRACE_EVENT(tensor_state,
	    TP_PROTO(const struct tensor_buf *buf),
	    TP_ARGS(buf),
	    TP_STRUCT__entry(__field(u64, buf)
			     __field(u32, seals)
			     __field(u32, state)),
	    TP_fast_assign(__entry->buf = buf->id;
			   __entry->seals = buf->seals;
			   __entry->state = buf->state;),
	    TP_printk("buf=%llu seals=%x%s%s%s", __entry->buf, __entry->seals,
		      __entry->state & TENSOR_STATE_REVOKED ? " revoked" : "",
		      __entry->state & TENSOR_STATE_PURGEABLE ? " purgeable" : "",
		      __entry->state & TENSOR_STATE_PURGED ? " purged" : "")
);

TRACE_EVENT(tensor_device,
	    TP_PROTO(const struct tensor_buf *buf, bool write, bool begin),
	    TP_ARGS(buf, write, begin),
	    TP_STRUCT__entry(__field(u64, buf)
			     __field(bool, write)
			     __field(bool, begin)),
	    TP_fast_assign(__entry->buf = buf->id;
			   __entry->write = write;
			   __entry->begin = begin;),
	    TP_printk("buf=%llu %s %s", __entry->buf, __entry->write ? "write" : "read",
		      __entry->begin ? "begin" : "end")
);

TRACE_EVENT(tensor_attach,
	    TP_PROTO(const struct tensor_buf *buf, struct device *dev, bool begin),
	    TP_ARGS(buf, dev, begin),
	    TP_STRUCT__entry(__field(u64, buf)
			     __field(bool, begin)
			     __string(dev, dev_name(dev))),
	    TP_fast_assign(__entry->buf = buf->id;
			   __entry->begin = begin;
			   tensor_assign_str(dev, dev_name(dev));),
	    TP_printk("buf=%llu %s %s", __entry->buf, __get_str(dev),
		      __entry->begin ? "attach" : "detach")
);

TRACE_EVENT(tensor_sync,
	    TP_PROTO(const struct tensor_buf *buf, u32 flags),
	    TP_ARGS(buf, flags),
	    TP_STRUCT__entry(__field(u64, buf)
			     __field(u32, flags)),
	    TP_fast_assign(__entry->buf = buf->id;
			   __entry->flags = flags;),
	    TP_printk("buf=%llu %s%s %s", __entry->buf,
		      __entry->flags & TENSOR_SYNC_READ ? "r" : "",
		      __entry->flags & TENSOR_SYNC_WRITE ? "w" : "",
		      __entry->flags & TENSOR_SYNC_END ? "end" : "begin")
);

#endif /* TENSOR_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
