/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loop of max_pool_backward for elements of type T (no include guard; see each_float.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Planes begin to end: adds each gradient to the element that was the maximum. */
static void F(max_backward)(int64_t begin, int64_t end, void *ctx)
{
	struct max_backward *m = ctx;
	int64_t in = m->s.in_plane, n = m->s.out_plane;

	memset((T *)m->out + begin * in, 0, (end - begin) * in * sizeof(T));
	for (int64_t i = begin; i < end; i++) {
		T *out = (T *)m->out + i * in;
		const T *grad = (const T *)m->grad + i * n;
		const int64_t *at = m->indices + i * n;

		for (int64_t k = 0; k < n; k++) {
			if (unlikely((uint64_t)at[k] >= (uint64_t)in)) {
				m->wrong = at[k];
				m->failed = true;
				return;
			}
			out[at[k]] += grad[k];
		}
	}
}

#undef F
