/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Products of some rows of a and many columns of b, for matmul_float.h: a is packed once, and tasks are panels of b, which
 * each packs block by block into the L1 cache and multiplies with all rows. Chunks of rows would read all panels of b each,
 * and wait for their packing. The sums are those of the other ways.
 */
#ifndef TENSOR_MATMUL_PANELS_H
#define TENSOR_MATMUL_PANELS_H

#define SOME_ROWS	  256 /* rows of a, at most */
#define PANELS_PER_THREAD 3   /* at least */

struct panel_product {
	const struct product *p;
	int64_t blocks; /* of depth */
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

/* Multiplies panel i; buffer has room for its block of b. */
static void multiply_panel(const struct panel_product *s, int64_t i, T *buffer)
{
	const struct product *p = s->p;
	int64_t j = panel_start(p->n, i);
	int vecs = next_vecs(p->n - j);
	int64_t width = vecs * (int64_t)LANES, n = least(p->n - j, width);
	struct tile t = { .b = buffer,
			  .rsb = width,
			  .c = (T *)p->c + j,
			  .rsa = 1,
			  .rsc = p->rsc,
			  .alpha = (T)p->alpha,
			  .grouped = true };

	for (int64_t b = 0, p0 = 0; b < s->blocks; b++, p0 += t.k) {
		t.k = depth_start(p->k, s->blocks, b + 1) - p0;
		t.a = packed_block(s, b, p0);
		t.beta = p0 ? 1 : (T)p->beta;
		pack_panel(buffer, (const T *)p->b + p0 * p->rsb + j * p->csb, p->rsb, p->csb, t.k,
			   n, width);
		compute_tiles(&t, p->m, n, vecs);
	}
}

static void multiply_panels(int64_t begin, int64_t end, void *ctx)
{
	struct panel_product *s = ctx;
	struct tensor_storage *mem =
		storage_alloc(TENSOR_DEVICE_CPU, DEPTH * WIDE * sizeof(T), false);

	if (!mem) {
		s->failed = true;
		return;
	}
	for (int64_t i = begin; i < end; i++)
		multiply_panel(s, i, mem->data);
	storage_put(mem);
}

static bool suits_panels(const struct product *p)
{
	return p->m > CHUNK && p->m <= SOME_ROWS && p->csc == 1 && p->k * p->n >= PACK_SIZE &&
	       panel_count(p->n) >= PANELS_PER_THREAD * (int64_t)tensor_get_num_threads();
}

static int product_by_panels(const struct product *p)
{
	struct panel_product s = { .p = p, .blocks = depth_blocks(p->k) };
	struct tensor_storage *mem = storage_alloc(
		TENSOR_DEVICE_CPU, (p->m * p->k + s.blocks * LANES) * sizeof(T), false);

	if (!mem)
		return -thread()->error.code;
	s.a = mem->data;
	parallel_for(0, s.blocks, 1, pack_depths, &s);
	parallel_for(0, panel_count(p->n), 1, multiply_panels, &s);
	storage_put(mem);
	return s.failed ? tensor_fail(ENOMEM, "mm: no memory for a block") : 0;
}

#endif
