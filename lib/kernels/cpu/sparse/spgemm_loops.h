/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of spgemm for elements of type T (no include guard; see each_int.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(spgemm_row)(const struct spgemm *p, int64_t i, T *row)
{
	const T *a = p->a->data, *b = p->b->data;
	T *out = p->out->data;

	for (int64_t k = p->crow[i]; k < p->crow[i + 1]; k++)
		row[p->col[k]] = 0;
	for (int64_t k = p->a_crow[i]; k < p->a_crow[i + 1]; k++) {
		int64_t begin = p->b_crow[p->a_col[k]], end = p->b_crow[p->a_col[k] + 1];
		T v = a[k];

		for (int64_t j = begin; j < end; j++)
			row[p->b_col[j]] = (T)(row[p->b_col[j]] + v * b[j]);
	}
	for (int64_t k = p->crow[i]; k < p->crow[i + 1]; k++)
		out[k] = row[p->col[k]];
}

static void F(spgemm)(int64_t begin, int64_t end, void *ctx)
{
	struct spgemm_job *job = ctx;
	struct tensor_storage *memory =
		storage_alloc(TENSOR_DEVICE_CPU, job->p->n * sizeof(T), false);

	if (!memory) {
		atomic_store(&job->err, 1);
		return;
	}
	for (int64_t i = part_begin(job, begin); i < part_begin(job, end); i++)
		F(spgemm_row)(job->p, i, memory->data);
	storage_put(memory);
}

#undef F
