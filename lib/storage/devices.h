/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Devices other than the CPU: their allocators and plugins. */
#ifndef TENSOR_DEVICES_H
#define TENSOR_DEVICES_H

#include "base/compiler.h"

#include <tensor/dispatch.h>
#include <tensor/random.h>

/* The device's allocator; loads its plugin at first use. NULL with the error set. */
const struct tensor_allocator *device_allocator(tensor_device device);
/* The device's streams; NULL if it has none. Loads no plugin. */
const struct tensor_streams *device_streams(tensor_device device);
const char *device_name(tensor_device device, char *buf, size_t size); /* "cuda:0" */
struct tensor_storage;
/* Whether the storage's memory is of the allocator of a device other than the CPU. */
bool device_storage_is_private(const struct tensor_storage *s);

/*
 * Captures: the work of the calling thread's stream of the device becomes a graph (tensor_cuda_graph), and does not run
 * yet. Devices other than CUDA ones have none.
 */
bool device_captures(tensor_device device);
/* Ends the capture with an error, -EOPNOTSUPP; `why`: "runs on the CPU". 0 if there is none. */
int device_refuse_capture(tensor_device device, const char *op, const char *why);
/* In a capture: the positions of a generator that each replay reserves, and 1. Else 0, or -errno. */
int device_take_random(tensor_device device, tensor_generator *g, uint64_t n,
		       struct tensor_generator_state *at);
/* How many positions of a generator the captures of the calling thread have reserved for a replay. */
struct device_random {
	uint64_t capture; /* the number of the capture; 0: there is none, UINT64_MAX: of several */
	uint64_t used;
};
void device_random_position(tensor_generator *g, struct device_random *at);
/* Continues there if that is the thread's capture. */
void device_random_set(tensor_generator *g, const struct device_random *to);
/* Ends a capture of the calling thread with an error, -EOPNOTSUPP. */
int device_refuse_captures(const char *op, const char *why);
/* In a capture: each replay adds 1 to the count, of one f32 on the CPU. 0 or -errno. */
int device_capture_count(tensor_device device, tensor *count);

struct tensor_cuda_usage;
struct tensor_cuda_stats;
struct tensor_cuda_graph;
struct tensor_cuda_event;
struct tensor_cuda_properties;

/* Devices, streams and events of libtensor_cuda.so. */
struct cuda_stream_calls {
	int (*set_device)(int device);
	int (*current_device)(void);
	int (*properties)(int device, struct tensor_cuda_properties *to);
	int (*memory_info)(int device, uint64_t *unused, uint64_t *total);
	int (*stream)(int device, int priority, void **stream);
	int (*synchronize)(int device, void *stream);
	int (*query)(int device, void *stream);
	int (*wait)(int device, void *stream, struct tensor_cuda_event *event);
	int (*record_stream)(struct tensor *t, void *stream);
	/* 0, or -errno: `data` is not memory of the device. */
	int (*check_memory)(const char *op, int device, const void *data);
	/* Waits for the copy. */
	int (*read)(const char *op, int device, void *to, const void *from, size_t nbytes);
	/* Calls fn when the work that the thread's stream has now is done, from a later call of the plugin; at once in a
	 * child. */
	void (*when_done)(int device, void (*fn)(void *arg), void *arg);
	int (*event)(int device, unsigned int flags, struct tensor_cuda_event **event);
	int (*event_record)(struct tensor_cuda_event *event, void *stream);
	int (*event_query)(struct tensor_cuda_event *event);
	int (*event_synchronize)(struct tensor_cuda_event *event);
	int (*event_elapsed)(struct tensor_cuda_event *from, struct tensor_cuda_event *to,
			     float *ms);
	void (*event_release)(struct tensor_cuda_event *event);
};

/* Graphs of libtensor_cuda.so. */
struct cuda_graph_calls {
	int (*create)(int device, struct tensor_cuda_graph **graph);
	int (*capture_begin)(struct tensor_cuda_graph *graph, struct tensor_cuda_graph *with);
	int (*capture_end)(struct tensor_cuda_graph *graph);
	int (*register_generator)(struct tensor_cuda_graph *graph, tensor_generator *g);
	int (*replay)(struct tensor_cuda_graph *graph);
	int (*wait)(struct tensor_cuda_graph *graph);
	int (*reset)(struct tensor_cuda_graph *graph);
	int (*release)(struct tensor_cuda_graph *graph);
	int (*excludes)(const char *op, int device, const char *why);
	bool (*capturing)(int device);
	int (*random)(int device, tensor_generator *g, uint64_t n,
		      struct tensor_generator_state *at);
	void (*random_position)(tensor_generator *g, struct device_random *at);
	void (*random_set)(tensor_generator *g, const struct device_random *to);
	int (*count)(int device, tensor *count);
};

/* A block of device memory that other processes can map; of libtensor_cuda.so. */
struct cuda_share_block {
	void *data;
	uint64_t size;
	int device;
	unsigned long long handle; /* of the driver, in the process that made the block; else 0 */
	struct cuda_share_block *next; /* for the plugin */
};

/* Such blocks. Functions return 0, a descriptor, or -errno with the error set. */
struct cuda_share_calls {
	int (*uuid)(int device, uint8_t uuid[16]);
	/*
	 * Waits for all work of the device, and calls what waited for its end, functions of the program and other libraries
	 * among it: the caller holds no lock.
	 */
	int (*quiesce)(const char *op, int device);
	/*
	 * A block with the first n bytes at `from`, which is memory of the allocator, as all work of the device has left
	 * them.
	 */
	int (*make)(const char *op, int device, const void *from, size_t n,
		    struct cuda_share_block **to);
	int (*export)(const char *op, const struct cuda_share_block *b);
	/* Maps the memory of a peer's descriptor, which the caller keeps. Neither its size nor its device is trusted. */
	int (*import)(const char *op, const uint8_t uuid[16], uint64_t size, int fd,
		      struct cuda_share_block **to);
	/* A dma-buf of the whole block. */
	int (*dmabuf)(const char *op, const struct cuda_share_block *b);
	/* Waits for the thread's stream. */
	int (*settle)(const char *op, int device);
	/* Unmaps and frees the block when no work of the device can use it. Changes no error record. */
	void (*release)(struct cuda_share_block *b);
};

/* Functions of libtensor_cuda.so besides its kernels; they implement <tensor/cuda.h>. */
struct cuda_plugin {
	const struct tensor_allocator *allocator;
	bool (*usable)(void);
	int (*device_count)(void);
	int (*set_stream)(int device, void *stream);
	void *(*current_stream)(int device);
	int (*synchronize)(int device);
	bool (*set_nonblocking)(bool nonblocking);
	int (*memory)(int device, struct tensor_cuda_usage *memory);
	int (*memory_trim)(int device);
	int (*memory_stats)(int device, struct tensor_cuda_stats *stats);
	int (*memory_reset)(int device, bool accumulated);
	const struct tensor_streams *streams;
	const struct cuda_graph_calls *graphs;
	const struct cuda_stream_calls *stream_calls;
	const struct cuda_share_calls *share_calls;
};

const struct tensor_allocator *cuda_allocator(void);
const struct tensor_streams *cuda_streams(void);
/* NULL: the plugin is not loaded. */
const struct cuda_graph_calls *cuda_graph_calls(void);
/* Load the plugin; NULL with the error set. */
const struct cuda_stream_calls *cuda_stream_calls(void);
const struct cuda_share_calls *cuda_share_calls(void);
/* For the plugin's constructor: its table, or NULL and the reason. */
int tensor_register_cuda(const struct cuda_plugin *plugin, const char *error);

#endif
