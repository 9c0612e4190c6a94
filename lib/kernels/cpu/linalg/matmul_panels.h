/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of some rows of a and many columns of b, for matmul_float.h: a is packed once, and tasks are panels of b, which
 * each packs block by block into the L1 cache and multiplies with all rows. Chunks of rows would read all panels of b each,
 * and wait for their packing. Several panels are packed together if b is large. The sums are those of the other ways.
 */
#ifndef TENSOR_MATMUL_PANELS_H
#define TENSOR_MATMUL_PANELS_H

#define SOME_ROWS 256 /* rows of a, at most, on one thread */
#define SHARED_BYTES \
	(1 << 19) /* and on several, of a block of a: it stays in the L2 cache beside panels of b */
#define PANELS_PER_THREAD 3 /* at least */
#define GROUP		  8 /* panels packed at a time, at most: their blocks fit into the L2 cache */
#define GROUP_LEAST	  (1 << 25) /* bytes of b from which several are */
#define ROWS_AT_ONCE	  8	    /* rows of b read at a time */
#define REREAD_LEAST	  (1 << 27) /* bytes of b times rows of a from which up to CHUNK rows pack b */

struct panel_product {
	const struct product *p;
	int64_t blocks; /* of depth */
	int64_t group;	/* panels that are packed at a time */
	T *a;		/* packed, by block; a vector is written beyond each */
	_Atomic bool failed;
};

/* Blocks of one size have smaller errors than whole ones and a rest. */
static int64_t depth_blocks(int64_t k)
{
	return k > DEPTH ? (k + DEPTH - 1) / DEPTH : 1;
}

static int64_t depth_start(int64_t k, int64_t blocks, int64_t i)
{
	return i * (k / blocks) + least(i, k % blocks);
}

/* The block of a that begins at depth p0. */
static T *packed_block(const struct panel_product *s, int64_t i, int64_t p0)
{
	return s->a + p0 * s->p->m + i * LANES;
}

static void pack_depths(int64_t begin, int64_t end, void *ctx)
{
	const struct panel_product *s = ctx;
	const struct product *p = s->p;

	for (int64_t i = begin; i < end; i++) {
		int64_t p0 = depth_start(p->k, s->blocks, i);
		int64_t k = depth_start(p->k, s->blocks, i + 1) - p0;
		const T *a = (const T *)p->a + p0 * p->csa;
		T *to = packed_block(s, i, p0);

		if (p->rsa == 1)
			pack_columns(to, a, p->csa, p->m, k, tile_rows[VECS]);
		else
			pack_rows(to, a, p->rsa, p->csa, p->m, k, tile_rows[VECS]);
	}
}

/* One panel of b, the block that is being multiplied, and its columns. */
struct panel {
	T *packed;
	int64_t j, n, width;
};

/*
 * Packs the block of b that begins at depth p0 into each panel. If rows are contiguous, some rows of all panels are read
 * at a time: pages of b are touched once for all panels, and runs are long enough for the processor to prefetch them.
 */
static void pack_group(const struct product *p, const struct panel *panels, int count, int64_t p0,
		       int64_t k)
{
	int64_t step = p->csb == 1 ? ROWS_AT_ONCE : k;

	for (int64_t r = 0; r < k; r += step)
		for (int i = 0; i < count; i++) {
			const struct panel *to = panels + i;

			pack_panel(to->packed + r * to->width,
				   (const T *)p->b + (p0 + r) * p->rsb + to->j * p->csb, p->rsb,
				   p->csb, least(k - r, step), to->n, to->width);
		}
}

/* Multiplies `count` panels from panel i on; buffer has room for a block of each. */
static void multiply_group(const struct panel_product *s, int64_t i, int count, T *buffer)
{
	const struct product *p = s->p;
	struct panel panels[GROUP];
	struct tile t = { .rsa = 1, .rsc = p->rsc, .alpha = (T)p->alpha, .grouped = true };

	for (int x = 0; x < count; x++) {
		int64_t j = panel_start(p->n, i + x);
		int64_t width = next_vecs(p->n - j) * (int64_t)LANES;

		panels[x] = (struct panel){ buffer + x * DEPTH * WIDE, j, least(p->n - j, width),
					    width };
	}
	for (int64_t b = 0, p0 = 0; b < s->blocks; b++, p0 += t.k) {
		t.k = depth_start(p->k, s->blocks, b + 1) - p0;
		t.a = packed_block(s, b, p0);
		t.beta = p0 ? 1 : (T)p->beta;
		pack_group(p, panels, count, p0, t.k);
		for (int x = 0; x < count; x++) {
			t.b = panels[x].packed;
			t.rsb = panels[x].width;
			t.c = (T *)p->c + panels[x].j;
			t.add = p0 || !p->bias ? NULL : (const T *)p->bias + panels[x].j;
			compute_tiles(&t, p->m, panels[x].n, (int)(panels[x].width / LANES));
		}
	}
}

/* The activation of panels `from` to `until`. */
static void finish_panels(const struct product *p, int64_t from, int64_t until)
{
	int64_t j = panel_start(p->n, from);
	int64_t end = until < panel_count(p->n) ? panel_start(p->n, until) : p->n;

	product_finish(p, 0, j, p->m, end - j);
}

static void multiply_panels(int64_t begin, int64_t end, void *ctx)
{
	struct panel_product *s = ctx;
	int64_t group = least(s->group, end - begin);
	struct tensor_storage *mem =
		storage_alloc(TENSOR_DEVICE_CPU, group * DEPTH * WIDE * sizeof(T), false);

	if (!mem) {
		s->failed = true;
		return;
	}
	for (int64_t i = begin, next, from = begin; i < end; i = next) {
		next = least(i + group, end);
		multiply_group(s, i, (int)(next - i), mem->data);
		if (next == end || next - from >= FINISH_COLUMNS / WIDE) {
			finish_panels(s->p, from, next);
			from = next;
		}
	}
	storage_put(mem);
}

static int64_t bytes_of_b(const struct product *p)
{
	return p->k * p->n * (int64_t)sizeof(T);
}

/* The most panels that a thread multiplies, if tasks have n of them. */
static int64_t largest_share(int64_t panels, int64_t n)
{
	int64_t threads = tensor_get_num_threads(), tasks = (panels + n - 1) / n;

	return tasks % threads == 1 ? tasks / threads * n + panels - (tasks - 1) * n :
				      (tasks + threads - 1) / threads * n;
}

/* The panels of a task by which threads share all of them most evenly; several tasks for a thread if possible. */
static int64_t even_tasks(int64_t panels)
{
	int64_t threads = tensor_get_num_threads(), most = (panels + threads - 1) / threads,
		best = most;

	for (int64_t n = most / 2; n > most / 5 && n > 1; n--)
		if (largest_share(panels, n) < largest_share(panels, best) ||
		    (best == most && largest_share(panels, n) == largest_share(panels, best)))
			best = n;
	return best;
}

/*
 * Whether threads share the columns of c rather than its rows, so that none reads the panels of b that others have packed,
 * or waits for them in each block.
 */
static __attribute__((noinline)) bool share_panels(const struct product *p)
{
	int64_t threads = tensor_get_num_threads(), panels = panel_count(p->n);

	return threads > 1 && p->m > SOME_ROWS &&
	       p->m * DEPTH * (int64_t)sizeof(T) <= SHARED_BYTES &&
	       largest_share(panels, even_tasks(panels)) * threads * WIDE <= p->n + p->n / 16;
}

/*
 * b is packed in any case if its rows are not contiguous. Up to CHUNK rows it is otherwise only if tiles would read much
 * of it again and again from beyond the L2 cache.
 */
static bool suits_panels(const struct product *p)
{
	if (p->k * p->n < (p->csb == 1 ? PACK_SIZE : PACK_SIZE / 8) || p->csc != 1)
		return false;
	if ((p->m > SOME_ROWS && !share_panels(p)) ||
	    panel_count(p->n) < PANELS_PER_THREAD * (int64_t)tensor_get_num_threads())
		return false;
	return p->m > CHUNK || p->csb != 1 || p->m * bytes_of_b(p) >= REREAD_LEAST;
}

/*
 * More than one only for rows of a large b: columns are read in runs anyway, and packing panels into the L1 cache alone is
 * faster than reading pages of a b that is in a cache. Threads share the panels evenly.
 */
static int64_t panels_at_a_time(const struct product *p)
{
	int64_t threads = tensor_get_num_threads();
	int64_t most = panel_count(p->n) / (threads == 1 ? 1 : 4 * threads);

	return p->csb != 1 || most < 1 || bytes_of_b(p) < GROUP_LEAST ? 1 : least(most, GROUP);
}

static __attribute__((noinline)) int product_by_panels(const struct product *p)
{
	struct panel_product s = { .p = p, .blocks = depth_blocks(p->k) };
	struct tensor_storage *mem = storage_alloc(
		TENSOR_DEVICE_CPU, (p->m * p->k + s.blocks * LANES) * sizeof(T), false);
	int64_t grain;

	if (!mem)
		return -thread()->error.code;
	s.a = mem->data;
	grain = s.group = panels_at_a_time(p);
	if (p->m > SOME_ROWS) {
		grain = even_tasks(panel_count(p->n));
		s.group = least(grain, GROUP);
	} else if (p->activation && tensor_get_num_threads() == 1 && grain == 1) {
		grain = FINISH_COLUMNS / WIDE;
	}
	parallel_for(0, s.blocks, 1, pack_depths, &s);
	parallel_for(0, panel_count(p->n), grain, multiply_panels, &s);
	storage_put(mem);
	return s.failed ? tensor_fail(ENOMEM, "mm: no memory for a block") : 0;
}

#endif
