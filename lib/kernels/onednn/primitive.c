// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A cache of primitives, by key. oneDNN takes from 50 us to milliseconds to select and compile an
 * implementation, so the CAPACITY most recently used primitives are kept in a hash table.
 *
 * OpenMP's number of threads is a property of the calling thread. It is restored after each call,
 * because the caller may have parallel regions of its own. A primitive is created and executed
 * with the same number of threads.
 */
#include "kernels/onednn/onednn.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

#define CAPACITY 1024
#define BUCKETS	 512
#define ARGS_MAX 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct primitive *buckets[BUCKETS];
static int count;
static uint64_t clock_now;

/* ---- keys ---- */

static size_t head_size(const struct primitive_key *key)
{
	return offsetof(struct primitive_key, n) + key->numbers * sizeof(*key->n);
}

/* Four independent sums: a single one would be limited by the latency of the multiplication. */
static uint64_t hash_bytes(uint64_t seed, const void *p, size_t size)
{
	static const uint64_t odd = 0x9e3779b97f4a7c15;
	uint64_t sum[4] = { seed, seed + 1, seed + 2, seed + 3 }, word;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		memcpy(&word, (const char *)p + i, 8);
		sum[i / 8 % 4] = (sum[i / 8 % 4] ^ word) * odd;
		sum[i / 8 % 4] ^= sum[i / 8 % 4] >> 29;
	}
	return ((sum[0] * 3 + sum[1]) * 5 + sum[2]) * 7 + sum[3];
}

static uint64_t hash_key(const struct primitive_key *key)
{
	uint64_t h = hash_bytes(0, key, head_size(key));

	return hash_bytes(h, key->md, key->mds * sizeof(*key->md));
}

/* Compares descriptors as bytes: a difference in their padding costs one more primitive. */
static bool same_key(const struct primitive_key *a, const struct primitive_key *b)
{
	return a->numbers == b->numbers && a->mds == b->mds && !memcmp(a, b, head_size(a)) &&
	       !memcmp(a->md, b->md, a->mds * sizeof(*a->md));
}

/* ---- the cache ---- */

void primitive_put(struct primitive *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) > 1)
		return;
	dnnl_primitive_destroy(p->primitive);
	free(p);
}

/* The next three functions run with the lock held. find() takes a reference. */
static struct primitive *find(const struct primitive_key *key, uint64_t hash)
{
	for (struct primitive *p = buckets[hash % BUCKETS]; p; p = p->next)
		if (p->hash == hash && same_key(&p->key, key)) {
			p->used = ++clock_now;
			atomic_fetch_add(&p->refs, 1);
			return p;
		}
	return NULL;
}

static void drop_oldest(void)
{
	struct primitive **oldest = NULL, *p;

	for (int b = 0; b < BUCKETS; b++)
		for (struct primitive **at = &buckets[b]; *at; at = &(*at)->next)
			if (!oldest || (*at)->used < (*oldest)->used)
				oldest = at;
	p = *oldest;
	*oldest = p->next;
	count--;
	primitive_put(p);
}

static void keep(struct primitive *p)
{
	if (count == CAPACITY)
		drop_oldest();
	p->used = ++clock_now;
	p->next = buckets[p->hash % BUCKETS];
	buckets[p->hash % BUCKETS] = p;
	atomic_fetch_add(&p->refs, 1);
	count++;
}

/* ---- creation ---- */

static void query(const_dnnl_primitive_desc_t pd, dnnl_query_t what, dnnl_memory_desc_t *md)
{
	const dnnl_memory_desc_t *found = dnnl_primitive_desc_query_md(pd, what, 0);

	if (found)
		*md = *found;
}

static dnnl_status_t fill(struct primitive *p, const_dnnl_primitive_desc_t pd)
{
	const dnnl_memory_desc_t *scratch;
	const char *name;

	if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success)
		p->slow = strstr(name, "any") || strstr(name, "ref");
	query(pd, dnnl_query_src_md, &p->src);
	query(pd, dnnl_query_weights_md, &p->weights);
	query(pd, dnnl_query_dst_md, &p->dst);
	scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	p->scratch = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
	return dnnl_primitive_create(&p->primitive, pd);
}

/* The caller provides the scratchpad: one that oneDNN allocates can be used by one thread only. */
static dnnl_status_t make(struct primitive *p)
{
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_attr_t attr;
	dnnl_status_t status = dnnl_primitive_attr_create(&attr);

	if (status != dnnl_success)
		return status;
	status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
	if (status == dnnl_success)
		status = p->key.make(&p->key, attr, &pd);
	if (status == dnnl_success)
		status = fill(p, pd);
	if (pd)
		dnnl_primitive_desc_destroy(pd);
	dnnl_primitive_attr_destroy(attr);
	return status;
}

static struct primitive *make_new(const char *op, const struct primitive_key *key, uint64_t hash)
{
	struct primitive *p;
	int before;

	if (onednn_memory_for(op, MEMORY_TO_MAKE) < 0)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p) {
		tensor_fail(ENOMEM, "%s: no memory", op);
		return NULL;
	}
	memcpy(&p->key, key, head_size(key));
	memcpy(p->key.md, key->md, key->mds * sizeof(*key->md));
	p->hash = hash;
	atomic_init(&p->refs, 1);
	before = omp_get_max_threads();
	omp_set_num_threads(key->threads);
	if (onednn_check(op, make(p)) < 0) {
		free(p);
		p = NULL;
	}
	omp_set_num_threads(before);
	return p;
}

struct primitive *primitive_get(const char *op, struct primitive_key *key)
{
	struct primitive *p, *first;
	uint64_t hash;

	key->threads = onednn_threads();
	hash = hash_key(key);
	pthread_mutex_lock(&lock);
	p = find(key, hash);
	pthread_mutex_unlock(&lock);
	if (p)
		return p;
	p = make_new(op, key, hash);
	if (!p)
		return NULL;
	pthread_mutex_lock(&lock);
	first = find(key, hash); /* another thread may have created it meanwhile */
	if (!first)
		keep(p);
	pthread_mutex_unlock(&lock);
	if (!first)
		return p;
	primitive_put(p);
	return first;
}

/* ---- execution ---- */

static dnnl_status_t execute(const struct primitive *p, const struct primitive_arg *args, int nargs,
			     void *scratch)
{
	dnnl_exec_arg_t exec[ARGS_MAX];
	dnnl_stream_t stream = NULL;
	dnnl_memory_desc_t md;
	dnnl_status_t status;
	int n = 0;

	status = dnnl_stream_create(&stream, onednn_engine, dnnl_stream_default_flags);
	for (; status == dnnl_success && n < nargs; n++) {
		exec[n].arg = args[n].index;
		status = dnnl_memory_create(&exec[n].memory, args[n].md, onednn_engine,
					    args[n].data);
	}
	if (status == dnnl_success && scratch) {
		const dnnl_dims_t bytes = { (dnnl_dim_t)p->scratch };

		dnnl_memory_desc_init_by_tag(&md, 1, bytes, dnnl_u8, dnnl_a);
		exec[n].arg = DNNL_ARG_SCRATCHPAD;
		status = dnnl_memory_create(&exec[n].memory, &md, onednn_engine, scratch);
		n += status == dnnl_success;
	} else if (status != dnnl_success && n) {
		n--;
	}
	if (status == dnnl_success)
		status = dnnl_primitive_execute(p->primitive, stream, n, exec);
	if (status == dnnl_success)
		status = dnnl_stream_wait(stream);
	while (n--)
		dnnl_memory_destroy(exec[n].memory);
	if (stream)
		dnnl_stream_destroy(stream);
	return status;
}

int primitive_run(const char *op, const struct primitive *p, const struct primitive_arg *args,
		  int nargs)
{
	tensor *scratch = NULL;
	int64_t size = (int64_t)p->scratch;
	int before, err;

	if (size) {
		scratch = tensor_plugin_new(TENSOR_U8, &size, 1);
		if (!scratch)
			return -tensor_last_error()->code;
	}
	err = onednn_memory_for(op, MEMORY_TO_RUN);
	if (err < 0) {
		tensor_plugin_put(scratch);
		return err;
	}
	before = omp_get_max_threads();
	omp_set_num_threads(p->key.threads);
	err = onednn_check(op, execute(p, args, nargs, scratch ? scratch->data : NULL));
	omp_set_num_threads(before);
	tensor_plugin_put(scratch);
	return err;
}

int primitive_once(const char *op, struct primitive_key *key, const struct primitive_arg *args,
		   int nargs)
{
	struct primitive *p = primitive_get(op, key);
	int err = p ? primitive_run(op, p, args, nargs) : -tensor_last_error()->code;

	primitive_put(p);
	return err;
}
