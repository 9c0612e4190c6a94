// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Results of checks on a device: a kernel stores the lowest position that is refused in a flag, and
 * the host reads it. The copy goes to pinned memory and is followed by an event, so that the
 * kernels that use the checked values are queued before the host waits, and run while it does. A flag that
 * no other kernel reads is the pinned word itself, which needs neither the copy nor a kernel that sets it.
 */
#include "kernels/cuda/cuda.h"

#include "kernels/cuda/launch_graph.h"

#include <pthread.h>

enum { WORDS = 64 };

/* A page of pinned words, registered at the first use. */
static _Alignas(4096) unsigned long long words[512];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t used = ~0ull;	   /* a bit for each word */
static unsigned long long *mapped; /* the words in the address space of all devices, or NULL */

static void pin_words(void)
{
	const enum cudaStreamCaptureMode before = cuda_relax();

	if (cudaHostRegister(words, sizeof(words),
			     cudaHostRegisterPortable | cudaHostRegisterMapped) == cudaSuccess)
		used = 0;
	if (used || cudaHostGetDevicePointer((void **)&mapped, words, 0) != cudaSuccess)
		cudaGetLastError();
	cuda_unrelax(before);
}

/* A pinned word, or k->own, to which a copy waits. */
static void take_word(struct cuda_check *k)
{
	pthread_once(&once, pin_words);
	pthread_mutex_lock(&lock);
	k->word = ~used ? __builtin_ctzll(~used) : -1;
	if (k->word >= 0)
		used |= 1ull << k->word;
	pthread_mutex_unlock(&lock);
	k->seen = k->word >= 0 ? &words[k->word] : &k->own;
}

static void give_word(const struct cuda_check *k)
{
	pthread_mutex_lock(&lock);
	if (k->word >= 0)
		used &= ~(1ull << k->word);
	pthread_mutex_unlock(&lock);
}

static int make_event(const struct cuda_call *c, struct cuda_check *k)
{
	return cuda_check(c->op, cudaEventCreateWithFlags(&k->done, cudaEventDisableTiming));
}

/* Makes a pinned word the flag. False without one, or if devices cannot write to it. */
static bool use_word(struct cuda_check *k)
{
	take_word(k);
	if (k->word < 0 || !mapped) {
		give_word(k);
		return false;
	}
	*(volatile unsigned long long *)k->seen = UINT64_MAX;
	k->flag = mapped + k->word;
	k->direct = k->sent = true;
	return true;
}

int cuda_check_open_unread(const struct cuda_call *c, struct cuda_check *k)
{
	int err;

	*k = (struct cuda_check){ .captured = cuda_capturing(c) };
	if (k->captured || !use_word(k))
		return cuda_check_open(c, k);
	err = make_event(c, k);
	if (err)
		cuda_check_close(c, k);
	return err;
}

int cuda_check_open(const struct cuda_call *c, struct cuda_check *k)
{
	void *flag = NULL;
	int err;

	*k = (struct cuda_check){ .captured = cuda_capturing(c) };
	if (k->captured) {
		k->flag = cuda_capture_check(c);
		return !k->flag ? -tensor_last_error()->code :
				  cuda_check(c->op, cudaMemsetAsync(k->flag, 0xff, sizeof(*k->flag),
								    c->stream));
	}
	err = cuda_scratch(c, sizeof(*k->flag), &flag);
	if (err)
		return err;
	k->flag = flag;
	take_word(k);
	err = make_event(c, k);
	if (!err)
		err = cuda_check(c->op, cudaMemsetAsync(flag, 0xff, sizeof(*k->flag), c->stream));
	if (err)
		cuda_check_close(c, k);
	return err;
}

int cuda_check_send(const struct cuda_call *c, struct cuda_check *k)
{
	int err;

	if (k->captured)
		return cuda_check(c->op, cuda_launch_keep_flag(k->flag, c->stream));
	err = k->direct ? 0 :
			  cuda_check(c->op, cudaMemcpyAsync(k->seen, k->flag, sizeof(*k->flag),
							    cudaMemcpyDeviceToHost, c->stream));
	k->sent = k->direct || !err;
	if (!err)
		err = cuda_check(c->op, cudaEventRecord(k->done, c->stream));
	return err;
}

int cuda_check_wait(const struct cuda_call *c, struct cuda_check *k, uint64_t *bad)
{
	int err = 0;

	*bad = UINT64_MAX;
	if (k->captured)
		return 0;
	err = cuda_check(c->op, cudaEventSynchronize(k->done));
	if (err)
		return err;
	k->sent = false;
	*bad = *(volatile unsigned long long *)k->seen;
	return 0;
}

void cuda_check_close(const struct cuda_call *c, struct cuda_check *k)
{
	/* After an error the copy or the kernel may still write to the word, which is then not used again. */
	bool idle;

	if (k->captured)
		return;
	idle = !k->sent || cudaStreamSynchronize(c->stream) == cudaSuccess;

	if (k->done)
		cudaEventDestroy(k->done);
	if (k->flag) {
		if (idle)
			give_word(k);
		if (!k->direct)
			cuda_scratch_free(c, k->flag);
	}
}
