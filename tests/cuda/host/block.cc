// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Runs kernels: the blocks one after the other, the threads of a block as contexts with stacks of
 * their own. A fiber runs one thread after the other until one waits; then another fiber takes the
 * threads that have not begun. So a kernel without barriers needs one fiber. Under ThreadSanitizer
 * each thread has a fiber, and blocks that are neighbours have different ones: no two of these
 * threads are ordered, except by barriers. Blocks with barriers are ordered after each other, and
 * kernels after those with barriers in other streams, because they share the addresses of the
 * __shared__ variables.
 *
 * The order of threads and blocks is that of their numbers, reversed with lazy streams, and one of
 * both with random ones.
 */
#include "host.hpp"

#include <cstdio>
#include <cstdlib>
#include <link.h>
#include <sys/mman.h>

#ifdef CUDA_HOST_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

enum { MAX_THREADS = 1024, WARP = 32, STACK = 128 << 10 };
enum thread_state { RUNS, AT_BARRIER, AT_WARP, RETURNED };

struct fiber {
	void *sp;
	char *stack;
	void *context; /* of ThreadSanitizer */
	void *fake;    /* of AddressSanitizer */
};

/* Addresses that stand for an order of threads (host_acquire). */
struct orders {
	char launched, finished, blocks;
	char barrier[2][2], warp[2][MAX_THREADS / WARP][2];
};

struct host_fibers {
	fiber *all[2 * MAX_THREADS];
	fiber *spare[2 * MAX_THREADS];
	int nspare, made;
	struct orders orders;
};

struct kernel_thread : cuda_host_thread {
	thread_state state;
	fiber *on;
	unsigned mask;	      /* of the warp's threads that it waits for */
	uint64_t value[2];    /* that it exchanges; the other one may still be read */
	unsigned turn, waits; /* exchanges, barriers */
};

static struct {
	const cuda_host_kernel *launch;
	const char *name;
	CUstream_st *stream;
	host_fibers *fibers;
	unsigned nthreads, next, returned;
	unsigned parity; /* of the block */
	bool backward, barriers, ordered, any_barriers;
	kernel_thread thread[MAX_THREADS];
	fiber *running;
	fiber scheduler;
	const void *scheduler_stack;
	size_t scheduler_size;
	char *shared; /* the __shared__ variables of all kernels of the library */
	size_t shared_size;
} b;

/* Whether this thread of the process runs a kernel. */
static __thread bool inside __attribute__((tls_model("initial-exec")));

/* Of this thread of the process, whose kernels have the same __shared__ variables. */
static __thread char shared_order __attribute__((tls_model("initial-exec")));
static __thread CUstream_st *shared_by __attribute__((tls_model("initial-exec")));
cuda_host_thread *cuda_host_self;

/* ---- switches ---- */

/* Saves the registers that a function must keep, and continues where `to` was saved. */
extern "C" void host_switch(void **from, void *to) __attribute__((visibility("hidden")));
asm(".text\n"
    ".globl host_switch\n"
    ".hidden host_switch\n"
    ".type host_switch, @function\n"
    "host_switch:\n"
    "	pushq %rbp\n"
    "	pushq %rbx\n"
    "	pushq %r12\n"
    "	pushq %r13\n"
    "	pushq %r14\n"
    "	pushq %r15\n"
    "	movq %rsp, (%rdi)\n"
    "	movq %rsi, %rsp\n"
    "	popq %r15\n"
    "	popq %r14\n"
    "	popq %r13\n"
    "	popq %r12\n"
    "	popq %rbx\n"
    "	popq %rbp\n"
    "	ret\n"
    ".size host_switch, .-host_switch\n");

static void begin_switch(fiber *from, const void *stack, size_t size)
{
#ifdef CUDA_HOST_ASAN
	__sanitizer_start_switch_fiber(&from->fake, stack, size);
#endif
}

static void end_switch(fiber *self)
{
#ifdef CUDA_HOST_ASAN
	const void *stack;
	size_t size;

	__sanitizer_finish_switch_fiber(self->fake, &stack, &size);
	if (self != &b.scheduler) {
		b.scheduler_stack = stack;
		b.scheduler_size = size;
	}
#endif
}

/* Runs a fiber until it returns to the scheduler. */
static void resume(fiber *f)
{
	b.running = f;
	begin_switch(&b.scheduler, f->stack, STACK);
	host_context_switch(f->context);
	host_switch(&b.scheduler.sp, f->sp);
	end_switch(&b.scheduler);
}

static void return_to_scheduler(fiber *f)
{
	begin_switch(f, b.scheduler_stack, b.scheduler_size);
	host_context_switch(b.stream->context);
	host_switch(&f->sp, b.scheduler.sp);
	end_switch(f);
}

/* ---- fibers ---- */

static void run_thread(kernel_thread *t, fiber *f)
{
	struct orders *o = &b.fibers->orders;

	host_acquire(&o->launched);
	if (b.ordered)
		host_acquire(&o->blocks);
	t->on = f;
	cuda_host_self = t;
	b.launch->call(b.launch->arguments);
	t->state = RETURNED;
	b.returned++;
	if (b.barriers)
		host_release(&o->blocks);
	host_release(&o->finished);
}

static kernel_thread *next_thread(void)
{
	unsigned n = b.next++;

	return &b.thread[b.backward ? b.nthreads - 1 - n : n];
}

/* The first function on a fiber's stack. */
static void fiber_main(void)
{
	fiber *f = b.running;

	end_switch(f);
	for (;;) {
#ifdef CUDA_HOST_TSAN
		run_thread(next_thread(), f);
#else
		while (b.next < b.nthreads)
			run_thread(next_thread(), f);
		b.fibers->spare[b.fibers->nspare++] = f;
#endif
		return_to_scheduler(f);
	}
}

static fiber *new_fiber(void)
{
	fiber *f = new fiber();
	void **sp;

	f->stack = (char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->stack == MAP_FAILED)
		host_fatal("no memory for the stack of a thread");
	f->context = host_context_new();
	/* Six registers, the address of fiber_main, and a return address that is never used: the
	 * stack is aligned as after a call. */
	sp = (void **)(f->stack + STACK - 64);
	*--sp = nullptr;
	*--sp = (void *)fiber_main;
	f->sp = sp - 6;
	return f;
}

static fiber *take_fiber(void)
{
	host_fibers *p = b.fibers;
#ifdef CUDA_HOST_TSAN
	fiber **at = &p->all[b.parity * MAX_THREADS + b.next];

	if (!*at)
		*at = new_fiber();
	return *at;
#else
	if (!p->nspare)
		p->spare[p->nspare++] = p->all[p->made++] = new_fiber();
	return p->spare[--p->nspare];
#endif
}

/* ---- barriers and exchanges, called by threads ---- */

static kernel_thread *self_thread(void)
{
	return static_cast<kernel_thread *>(cuda_host_self);
}

static unsigned number_of(const kernel_thread *t)
{
	return (unsigned)(t - b.thread);
}

static void wait_in(kernel_thread *t, thread_state state, char *order)
{
	t->state = state;
	host_release(order);
	return_to_scheduler(t->on);
	host_acquire(order);
	cuda_host_self = t;
}

void cuda_host_barrier(void)
{
	kernel_thread *t = self_thread();

	b.barriers = b.any_barriers = true;
	wait_in(t, AT_BARRIER, &b.fibers->orders.barrier[b.parity][t->waits++ & 1]);
}

/* Waits for the lanes of mask; *turn is the index of their values. */
static kernel_thread *wait_for_warp(unsigned mask, uint64_t value, unsigned *turn)
{
	kernel_thread *t = self_thread();
	unsigned n = number_of(t);

	if (!(mask & 1u << n % WARP))
		host_fatal("lane %u is not in the mask %#x of its warp primitive", n % WARP, mask);
	b.barriers = b.any_barriers = true;
	*turn = t->turn++ & 1;
	t->value[*turn] = value;
	t->mask = mask;
	wait_in(t, AT_WARP, &b.fibers->orders.warp[b.parity][n / WARP][*turn]);
	return &b.thread[n / WARP * WARP];
}

uint64_t cuda_host_exchange(unsigned mask, uint64_t value, int lane)
{
	unsigned turn;
	kernel_thread *lanes = wait_for_warp(mask, value, &turn);

	if (!(mask & 1u << lane) || number_of(&lanes[lane]) >= b.nthreads)
		return value;
	return lanes[lane].value[turn];
}

unsigned cuda_host_ballot(unsigned mask, bool value)
{
	unsigned turn, bits = 0;
	kernel_thread *lanes = wait_for_warp(mask, value, &turn);

	for (unsigned l = 0; l < WARP && number_of(&lanes[l]) < b.nthreads; l++)
		if (mask & 1u << l && lanes[l].value[turn])
			bits |= 1u << l;
	return bits;
}

int cuda_host_lane(void)
{
	return (int)(number_of(self_thread()) % WARP);
}

/* ---- a block ---- */

static void resume_thread(kernel_thread *t)
{
	t->state = RUNS;
	cuda_host_self = t;
	resume(t->on);
}

/* Whether all threads that t waits for have come; others that have returned do not count. */
static bool warp_is_complete(const kernel_thread *t)
{
	unsigned first = number_of(t) / WARP * WARP;

	for (unsigned l = 0; l < WARP && first + l < b.nthreads; l++) {
		const kernel_thread *o = &b.thread[first + l];

		if (t->mask & 1u << l && o->state != RETURNED &&
		    (o->state != AT_WARP || o->mask != t->mask || o->turn != t->turn))
			return false;
	}
	return true;
}

static bool release_warps(void)
{
	bool any = false;
	unsigned char go[MAX_THREADS];

	for (unsigned i = 0; i < b.nthreads; i++)
		go[i] = b.thread[i].state == AT_WARP && warp_is_complete(&b.thread[i]);
	for (unsigned i = 0; i < b.nthreads; i++) {
		unsigned n = b.backward ? b.nthreads - 1 - i : i;

		if (go[n])
			resume_thread(&b.thread[n]);
		any |= go[n];
	}
	return any;
}

static void release_barrier(void)
{
	unsigned waiting = 0, in_warp = 0;

	for (unsigned i = 0; i < b.nthreads; i++) {
		waiting += b.thread[i].state == AT_BARRIER;
		in_warp += b.thread[i].state == AT_WARP;
	}
	cuda_host_self = nullptr;
	if (in_warp)
		host_fatal(
			"threads of a warp diverge: %u wait in a warp primitive, %u at a barrier, "
			"%u have returned, in block %u of kernel %s",
			in_warp, waiting, b.returned, b.thread[0].block.x, b.name);
	if (waiting < b.nthreads)
		host_fatal(
			"threads of a block diverge: %u wait in __syncthreads(), %u have returned, "
			"in block %u of kernel %s",
			waiting, b.returned, b.thread[0].block.x, b.name);
	for (unsigned i = 0; i < b.nthreads; i++)
		resume_thread(&b.thread[b.backward ? b.nthreads - 1 - i : i]);
}

extern "C" void *__tls_get_addr(size_t *module_and_offset);

/* If the kernel is in this library, its thread-local memory is that of the __shared__ variables. */
static int find_shared(dl_phdr_info *info, size_t size, void *kernel)
{
	size_t tls[2] = { info->dlpi_tls_modid, 0 }, nbytes = 0;
	bool here = false;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_TLS)
			nbytes = h->p_memsz;
		else if (h->p_type == PT_LOAD)
			here |= (uintptr_t)kernel - info->dlpi_addr - h->p_vaddr < h->p_memsz;
	}
	if (!here)
		return 0;
	b.shared_size = nbytes;
	b.shared = nbytes ? (char *)__tls_get_addr(tls) : nullptr;
	return 1;
}

/* Volatile: ThreadSanitizer must not see this as an access. */
static void fill_with_garbage(volatile char *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (char)0xf7;
}

static void run_block(uint3 at, unsigned parity)
{
	const dim3 size = b.launch->block;

	b.next = b.returned = 0;
	b.parity = parity;
	b.ordered = b.barriers;
	b.barriers = false;
	for (unsigned i = 0; i < b.nthreads; i++) {
		kernel_thread *t = &b.thread[i];

		*t = kernel_thread();
		t->thread = { i % size.x, i / size.x % size.y, i / size.x / size.y };
		t->block = at;
		t->block_dim = size;
		t->grid_dim = b.launch->grid;
	}
	fill_with_garbage(b.shared, b.shared_size);
	while (b.next < b.nthreads)
		resume(take_fiber());
	while (b.returned < b.nthreads)
		if (!release_warps())
			release_barrier();
}

void host_run_kernel(const cuda_host_kernel *launch, const char *name, CUstream_st *stream)
{
	const dim3 grid = launch->grid;
	const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
	enum cuda_host_streams mode = cuda_host_streams();

	if (!stream->fibers)
		stream->fibers = new host_fibers();
	b.launch = launch;
	b.name = name;
	b.stream = stream;
	b.fibers = stream->fibers;
	b.nthreads = launch->block.x * launch->block.y * launch->block.z;
	b.backward = mode == CUDA_HOST_LAZY || (mode == CUDA_HOST_RANDOM && host_random(2));
	b.barriers = b.any_barriers = false;
	if (shared_by && shared_by != stream)
		host_acquire(&shared_order);
	dl_iterate_phdr(find_shared, (void *)launch->kernel);
	host_release(&b.fibers->orders.launched);
	inside = true;
	for (uint64_t i = 0; i < blocks; i++) {
		uint64_t n = b.backward ? blocks - 1 - i : i;

		run_block({ (unsigned)(n % grid.x), (unsigned)(n / grid.x % grid.y),
			    (unsigned)(n / grid.x / grid.y) },
			  (unsigned)(i & 1));
	}
	inside = false;
	cuda_host_self = nullptr;
	host_acquire(&b.fibers->orders.finished);
	if (b.any_barriers) {
		host_release(&shared_order);
		shared_by = stream;
	}
	b.launch = nullptr;
}

bool host_kernel_position(char *text, size_t size)
{
	const cuda_host_thread *t = cuda_host_self;

	if (!inside || !t)
		return false;
	snprintf(text, size, "block (%u,%u,%u) thread (%u,%u,%u) of kernel %s", t->block.x,
		 t->block.y, t->block.z, t->thread.x, t->thread.y, t->thread.z, b.name);
	return true;
}

/* ---- accesses of kernels that were compiled with -fsanitize=kernel-address ---- */

#if !defined(CUDA_HOST_ASAN) && !defined(CUDA_HOST_TSAN)

static bool within(uintptr_t p, size_t n, const void *from, size_t size)
{
	return p - (uintptr_t)from <= size - n && size >= n;
}

/* Besides memory of its device a thread accesses its stack and arguments, __shared__ variables, and
 * its position in the grid. */
static void check_access(uintptr_t p, size_t n, bool write)
{
	if (!inside || within(p, n, b.running->stack, STACK) || within(p, n, &b, sizeof(b)) ||
	    within(p, n, b.launch->arguments, b.launch->size) ||
	    within(p, n, b.shared, b.shared_size) ||
	    within(p, n, &cuda_host_self, sizeof(cuda_host_self)) ||
	    within(p, n, &cuda_host_narrow_limit, sizeof(cuda_host_narrow_limit)))
		return;
	if (host_device_of((void *)p) != b.stream->device && host_device_of((void *)p) >= 0)
		host_fatal("a kernel %s memory of cuda:%d on cuda:%d", write ? "writes" : "reads",
			   host_device_of((void *)p), b.stream->device);
	host_check((const void *)p, n, write, "a kernel");
}

#define CHECKS(N)                                              \
	extern "C" void __asan_load##N##_noabort(uintptr_t p)  \
	{                                                      \
		check_access(p, N, false);                     \
	}                                                      \
	extern "C" void __asan_store##N##_noabort(uintptr_t p) \
	{                                                      \
		check_access(p, N, true);                      \
	}
CHECKS(1)
CHECKS(2)
CHECKS(4)
CHECKS(8)
CHECKS(16)

extern "C" void __asan_loadN_noabort(uintptr_t p, size_t n)
{
	check_access(p, n, false);
}

extern "C" void __asan_storeN_noabort(uintptr_t p, size_t n)
{
	check_access(p, n, true);
}

extern "C" void __asan_handle_no_return(void)
{
}

#endif
