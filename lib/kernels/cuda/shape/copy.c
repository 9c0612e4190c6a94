// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Copies. Within a device: one kernel. Between device and host: one contiguous transfer; an operand
 * on the host that is not contiguous is gathered or scattered by the CPU, in the iterator's order,
 * and a kernel handles strides and conversions on the device, through a scratch block. Between
 * devices: the same with two scratch blocks, and events that order the two streams.
 */
#include "kernels/cuda/cuda.h"

#include <stdlib.h>

/* Whether operand i is contiguous in the iterator's order. */
static bool dense(const struct tensor_iter *it, int i, int64_t itemsize)
{
	for (int d = 0; d < it->ndim; d++) {
		if (it->shape[d] != 1 && it->strides[i][d] != itemsize)
			return false;
		itemsize *= it->shape[d];
	}
	return true;
}

/* An iterator with operand i of `it`; its other operand is contiguous, at `piece`. */
static void piece_iter(struct tensor_iter *p, const struct tensor_iter *it, int i, void *piece,
		       int64_t itemsize)
{
	*p = (struct tensor_iter){
		.ndim = it->ndim,
		.nops = 2,
		.numel = it->numel,
		.dtype = it->dtype,
		.direct = true,
	};
	p->data[i] = it->data[i];
	p->data[1 - i] = piece;
	for (int d = 0; d < it->ndim; d++) {
		p->shape[d] = it->shape[d];
		p->strides[i][d] = it->strides[i][d];
		p->strides[1 - i][d] = itemsize;
		itemsize *= it->shape[d];
	}
}

/* Copies on the host between operand `side` and a piece of its dtype by the CPU's kernel, which moves bits. */
static int host_copy(struct tensor_iter *piece, const tensor *side)
{
	copy_kernel fn = (copy_kernel)tensor_kernel_table_get("copy", TENSOR_KEY_CPU);
	const tensor *const op[] = { side, side };
	int err;

	piece->op = op;
	err = fn(piece, side->dtype, side->dtype);
	piece->op = NULL;
	return err;
}

static int device_copy(const struct cuda_call *c, const struct tensor_iter *it,
		       enum tensor_dtype to, enum tensor_dtype from)
{
	struct cuda_pointwise p = { .data = { it->data[0], it->data[1] } };

	p.dims.ndim = it->ndim;
	p.dims.numel = it->numel;
	for (int d = 0; d < it->ndim; d++) {
		p.dims.size[d] = it->shape[d];
		p.dims.stride[0][d] = it->strides[0][d];
		p.dims.stride[1][d] = it->strides[1][d];
	}
	return cuda_copy_within(c, &p, to, from);
}

/* A graph copies pinned memory of the host only, without a staging buffer. */
static int check_capture(const struct cuda_call *c, const struct tensor_iter *it, int side,
			 int64_t itemsize)
{
	if (!cuda_capturing(c) || (dense(it, side, itemsize) && cuda_pinned(it->op[side])))
		return 0;
	return cuda_refuse(c, side ? "reads memory of the host that is not pinned" :
				     "waits for a copy to the host");
}

/* Waits for a copy between host and device, or keeps the host's memory alive until it is done. read: it is one to the host. */
static int settle(const struct cuda_call *c, const tensor *host, bool staged, bool read)
{
	int err;

	if (cuda_capturing(c)) {
		cuda_capture_hold(c->capture, host->storage);
		return 0;
	}
	if (staged || !cuda_nonblocking() || !cuda_pinned(host))
		return read ? cuda_wait(c) : cuda_drain(c);
	err = cuda_keep(c, host);
	cuda_reap();
	return err;
}

/* ---- host to device ---- */

/* Copies `piece`, contiguous in the iterator's order, to operand 0 on the device. */
static int send_piece(struct cuda_call *c, const struct tensor_iter *it, const void *piece,
		      enum tensor_dtype to, enum tensor_dtype from)
{
	int64_t size = (int64_t)tensor_itemsize(from);
	bool straight = to == from && dense(it, 0, size);
	size_t nbytes = it->numel * size;
	struct tensor_iter unpack;
	void *target = it->data[0], *scratch = NULL;
	int err = 0;

	if (!straight) {
		err = cuda_scratch(c, nbytes, &scratch);
		if (err)
			return err;
		target = scratch;
	}
	err = cuda_check(c->op,
			 cudaMemcpyAsync(target, piece, nbytes, cudaMemcpyHostToDevice, c->stream));
	if (!err && !straight) {
		piece_iter(&unpack, it, 0, scratch, size);
		err = device_copy(c, &unpack, to, from);
	}
	cuda_scratch_free(c, scratch);
	return err;
}

static int copy_in(struct cuda_call *c, const struct tensor_iter *it, enum tensor_dtype to,
		   enum tensor_dtype from)
{
	int64_t size = (int64_t)tensor_itemsize(from);
	struct tensor_iter gather;
	void *staging = NULL;
	int err = check_capture(c, it, 1, size), waited;

	if (err)
		return err;
	cuda_use(c, it->op[0]);
	if (dense(it, 1, size)) {
		cuda_pinned(it->op[1]); /* pinned memory is transferred by DMA */
		err = send_piece(c, it, it->data[1], to, from);
	} else {
		staging = malloc(it->numel * size);
		if (!staging)
			return tensor_fail(ENOMEM, "%s: no memory for %lld bytes to stage a copy",
					   c->op, (long long)(it->numel * size));
		piece_iter(&gather, it, 1, staging, size);
		err = host_copy(&gather, it->op[1]);
		if (!err)
			err = send_piece(c, it, staging, to, from);
	}
	/* Also after an error: queued work may still read the host's memory. */
	waited = settle(c, it->op[1], staging || err, false);
	free(staging);
	return err ? err : waited;
}

/* ---- device to host ---- */

/* Copies operand 1 to `piece` on the host, converted, contiguous in the iterator's order. */
static int fetch_piece(struct cuda_call *c, const struct tensor_iter *it, void *piece,
		       enum tensor_dtype to, enum tensor_dtype from)
{
	int64_t size = (int64_t)tensor_itemsize(to);
	bool straight = to == from && dense(it, 1, size);
	size_t nbytes = it->numel * size;
	const void *source = it->data[1];
	struct tensor_iter pack;
	void *scratch = NULL;
	int err = 0;

	if (!straight) {
		err = cuda_scratch(c, nbytes, &scratch);
		if (err)
			return err;
		source = scratch;
		piece_iter(&pack, it, 1, scratch, size);
		err = device_copy(c, &pack, to, from);
	}
	if (!err)
		err = cuda_check(c->op, cudaMemcpyAsync(piece, source, nbytes,
							cudaMemcpyDeviceToHost, c->stream));
	cuda_scratch_free(c, scratch);
	return err;
}

static int copy_out(struct cuda_call *c, const struct tensor_iter *it, enum tensor_dtype to,
		    enum tensor_dtype from)
{
	int64_t size = (int64_t)tensor_itemsize(to);
	struct tensor_iter scatter;
	void *staging = NULL;
	int err = check_capture(c, it, 0, size), waited;

	if (err)
		return err;
	cuda_use(c, it->op[1]);
	if (dense(it, 0, size)) {
		cuda_pinned(it->op[0]);
		err = fetch_piece(c, it, it->data[0], to, from);
		waited = settle(c, it->op[0], err, true);
		return err ? err : waited;
	}
	staging = malloc(it->numel * size);
	if (!staging)
		return tensor_fail(ENOMEM, "%s: no memory for %lld bytes to stage a copy", c->op,
				   (long long)(it->numel * size));
	err = fetch_piece(c, it, staging, to, from);
	waited = cuda_wait(c);
	if (!err)
		err = waited;
	if (!err) {
		piece_iter(&scatter, it, 0, staging, size);
		err = host_copy(&scatter, it->op[0]);
	}
	free(staging);
	return err;
}

/* ---- device to device ---- */

/* Makes future work of `later` wait for the work queued in `earlier`, whose device is current. A
 * default stream is that of the current device. */
static int order(const struct cuda_call *earlier, const struct cuda_call *later)
{
	cudaEvent_t event;
	int err;

	err = cuda_check(later->op, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	if (err)
		return err;
	err = cuda_check(later->op, cudaEventRecord(event, earlier->stream));
	if (!err)
		err = cuda_check(later->op, cudaSetDevice(later->device));
	if (!err) {
		err = cuda_check(later->op, cudaStreamWaitEvent(later->stream, event, 0));
		cudaSetDevice(earlier->device);
	}
	cudaEventDestroy(event);
	return err;
}

/* Packs the source into far_piece on its device, copies that to piece, unpacks it here. */
static int cross(struct cuda_call *c, struct cuda_call *far, const struct tensor_iter *it,
		 enum tensor_dtype to, enum tensor_dtype from, void *piece, void *far_piece)
{
	int64_t size = (int64_t)tensor_itemsize(to);
	struct tensor_iter pack, unpack;
	int err;

	/* piece may still be in use by work queued in the stream of c. */
	err = order(c, far);
	if (err)
		return err;
	if (cuda_begin(far, c->op, far->device) < 0)
		return -tensor_last_error()->code;
	piece_iter(&pack, it, 1, far_piece, size);
	err = device_copy(far, &pack, to, from);
	if (!err)
		err = cuda_check(c->op,
				 cudaMemcpyPeerAsync(piece, c->device, far_piece, far->device,
						     it->numel * size, far->stream));
	if (!err)
		err = order(far, c);
	/* Both pieces are freed for reuse in the order of their own stream. */
	if (err)
		cudaStreamSynchronize(far->stream);
	cuda_end(far, 0);
	if (err)
		return err;
	piece_iter(&unpack, it, 0, piece, size);
	return device_copy(c, &unpack, to, to);
}

static int copy_peer(struct cuda_call *c, const struct tensor_iter *it, enum tensor_dtype to,
		     enum tensor_dtype from)
{
	size_t nbytes = it->numel * tensor_itemsize(to);
	void *piece = NULL, *far_piece = NULL;
	struct cuda_call far;
	int err;

	err = cuda_begin(&far, c->op, it->op[1]->device.index);
	if (err)
		return err;
	if (cuda_capturing(c) || cuda_capturing(&far)) {
		err = cuda_refuse(cuda_capturing(c) ? c : &far, "copies between devices");
		return cuda_end(&far, err);
	}
	cuda_use(c, it->op[0]);
	cuda_use(&far, it->op[1]);
	err = cuda_scratch(&far, nbytes, &far_piece);
	cuda_end(&far, 0);
	if (!err)
		err = cuda_scratch(c, nbytes, &piece);
	if (!err)
		err = cross(c, &far, it, to, from, piece, far_piece);
	cuda_scratch_free(&far, far_piece);
	cuda_scratch_free(c, piece);
	return err;
}

/* ---- the kernel ---- */

static int copy(struct cuda_call *c, struct tensor_iter *it, enum tensor_dtype to,
		enum tensor_dtype from)
{
	const tensor *dst = it->op[0], *src = it->op[1];

	if (src->device.type == TENSOR_CPU)
		return copy_in(c, it, to, from);
	if (dst->device.type == TENSOR_CPU)
		return copy_out(c, it, to, from);
	if (dst->device.index != src->device.index)
		return copy_peer(c, it, to, from);
	cuda_use(c, dst);
	cuda_use(c, src);
	return device_copy(c, it, to, from);
}

int cuda_copy(struct tensor_iter *it, enum tensor_dtype to, enum tensor_dtype from)
{
	const tensor *dst = it->op[0], *src = it->op[1];
	const tensor *on = dst->device.type == TENSOR_CUDA ? dst : src;
	struct cuda_call c;
	int err;

	if (dst->device.type == TENSOR_PRIVATE || src->device.type == TENSOR_PRIVATE)
		return tensor_fail(EOPNOTSUPP, "copy: from %s to %s, copy through the CPU",
				   src->device.type == TENSOR_CUDA ? "cuda" : "another backend",
				   dst->device.type == TENSOR_CUDA ? "cuda" : "another backend");
	if (!it->numel)
		return 0;
	err = cuda_begin(&c, "copy", on->device.index);
	return err ? err : cuda_end(&c, copy(&c, it, to, from));
}
