// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Devices, streams and events of CUDA (include/tensor/cuda.h), which are in the plugin. */
#include "storage/devices.h"

#include "base/error.h"

#include <tensor/cuda.h>

static int is_null(const char *call, const char *argument)
{
	return tensor_fail(EINVAL, "%s: %s is NULL", call, argument);
}

/* The plugin's function with that name, called with the other arguments, or -ENODEV. */
#define CALL(function, ...)                                               \
	({                                                                \
		const struct cuda_stream_calls *f_ = cuda_stream_calls(); \
                                                                          \
		f_ ? f_->function(__VA_ARGS__) : -ENODEV;                 \
	})

/* ---- devices ---- */

TENSOR_EXPORT int tensor_cuda_set_device(int device)
{
	return CALL(set_device, device);
}

TENSOR_EXPORT int tensor_cuda_current_device(void)
{
	return CALL(current_device);
}

TENSOR_EXPORT int tensor_cuda_device_properties(int device,
						struct tensor_cuda_properties *properties)
{
	return properties ? CALL(properties, device, properties) :
			    is_null("cuda_device_properties", "properties");
}

TENSOR_EXPORT int tensor_cuda_memory_info(int device, uint64_t *unused, uint64_t *total)
{
	uint64_t rest, all;
	int err = CALL(memory_info, device, &rest, &all);

	if (err)
		return err;
	if (unused)
		*unused = rest;
	if (total)
		*total = all;
	return 0;
}

/* ---- streams ---- */

TENSOR_EXPORT void *tensor_cuda_stream(int device, int priority)
{
	void *stream = NULL;

	return CALL(stream, device, priority, &stream) ? NULL : stream;
}

TENSOR_EXPORT int tensor_cuda_stream_synchronize(int device, void *stream)
{
	return CALL(synchronize, device, stream);
}

TENSOR_EXPORT int tensor_cuda_stream_query(int device, void *stream)
{
	return CALL(query, device, stream);
}

TENSOR_EXPORT int tensor_cuda_stream_wait(int device, void *stream, tensor_cuda_event *event)
{
	return event ? CALL(wait, device, stream, event) : is_null("cuda_stream_wait", "the event");
}

TENSOR_EXPORT int tensor_cuda_record_stream(tensor *t, void *stream)
{
	return t ? CALL(record_stream, t, stream) : is_null("cuda_record_stream", "the tensor");
}

/* ---- events ---- */

TENSOR_EXPORT tensor_cuda_event *tensor_cuda_event_new(int device, unsigned int flags)
{
	tensor_cuda_event *event = NULL;

	return CALL(event, device, flags, &event) ? NULL : event;
}

TENSOR_EXPORT int tensor_cuda_event_record(tensor_cuda_event *event, void *stream)
{
	return event ? CALL(event_record, event, stream) :
		       is_null("cuda_event_record", "the event");
}

TENSOR_EXPORT int tensor_cuda_event_query(tensor_cuda_event *event)
{
	return event ? CALL(event_query, event) : is_null("cuda_event_query", "the event");
}

TENSOR_EXPORT int tensor_cuda_event_synchronize(tensor_cuda_event *event)
{
	return event ? CALL(event_synchronize, event) :
		       is_null("cuda_event_synchronize", "the event");
}

TENSOR_EXPORT int tensor_cuda_event_elapsed(tensor_cuda_event *from, tensor_cuda_event *to,
					    float *milliseconds)
{
	if (!from || !to || !milliseconds)
		return is_null("cuda_event_elapsed", "an argument");
	return CALL(event_elapsed, from, to, milliseconds);
}

TENSOR_EXPORT void tensor_cuda_event_release(tensor_cuda_event *event)
{
	if (event)
		cuda_stream_calls()->event_release(event);
}
