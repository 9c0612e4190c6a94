// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Images and labels of examples/digits/digits.csv. */
#include "common.h"

enum { PIXELS = 64 };

static bool read_row(FILE *f, double *pixels, int64_t *label)
{
	int value;

	for (int i = 0; i < PIXELS; i++) {
		if (fscanf(f, "%d,", &value) != 1)
			return false;
		pixels[i] = value / 16.0;
	}
	if (fscanf(f, "%d", &value) != 1)
		return false;
	*label = value;
	return true;
}

int training_digits(struct training *t, int64_t first, int64_t n, tensor **images, tensor **labels)
{
	double *pixels = calloc((size_t)n * PIXELS, sizeof(*pixels));
	int64_t *label = calloc((size_t)n, sizeof(*label)), row = -first;
	FILE *f = fopen("examples/digits/digits.csv", "r");
	bool done = f && pixels && label;

	for (; done && row < n; row++)
		done = read_row(f, pixels + (row > 0 ? row * PIXELS : 0),
				label + (row > 0 ? row : 0));
	if (!done)
		perror("examples/digits/digits.csv");
	if (f)
		fclose(f);
	*images = done ? tensor_from_data(pixels, TENSOR_SHAPE(n, 1, 8, 8),
					  TENSOR_OPTIONS(.dtype = TENSOR_F64)) :
			 NULL;
	*images = *images ? tensor_to(*images, t->options) : NULL;
	*labels = done ? tensor_from_data(label, TENSOR_SHAPE(n),
					  TENSOR_OPTIONS(.dtype = TENSOR_I64)) :
			 NULL;
	free(pixels);
	free(label);
	return *images && *labels ? 0 : -1;
}
