// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Threads: each has its own scopes and error record; what one hands to another it takes out of its scope. */
#include <pthread.h>
#include <stdio.h>
#include <tensor/tensor.h>

#define THREADS 4
#define ROWS	250

/* A part of the work, and its result, which belongs to who joins the thread. */
struct part {
	pthread_t thread;
	tensor *data; /* borrowed: any number of threads may read it */
	int64_t first;
	tensor *sum;
	struct tensor_error error;
};

static void *work(void *argument)
{
	struct part *p = argument;

	tensor_scope {
		tensor *rows = tensor_narrow(p->data, 0, p->first, ROWS);

		/* Without tensor_keep() the result would end with the scope. */
		p->sum = tensor_keep(tensor_sum(tensor_square(rows)));
		if (!p->sum) /* the record is this thread's */
			p->error = *tensor_last_error();
	}
	return NULL;
}

/* Sums the squares of all rows; false: a part failed, whose error is printed. */
static bool sum_squares(tensor *data, int64_t first, double *total)
{
	struct part parts[THREADS];
	bool ok = true;

	for (int i = 0; i < THREADS; i++) {
		parts[i] = (struct part){ .data = data, .first = first + (int64_t)i * ROWS };
		if (pthread_create(&parts[i].thread, NULL, work, &parts[i])) {
			work(&parts[i]);
			parts[i].thread = pthread_self();
		}
	}
	*total = 0;
	for (int i = 0; i < THREADS; i++) {
		double value = 0;

		if (!pthread_equal(parts[i].thread, pthread_self()))
			pthread_join(parts[i].thread, NULL);
		ok &= tensor_item(parts[i].sum, &value) == 0;
		*total += value;
		if (!parts[i].sum)
			printf("part %d: %s\n", i, parts[i].error.text);
		tensor_release(parts[i].sum); /* NULL is ignored */
	}
	return ok;
}

int main(void)
{
	double total, none;
	int wrong = 1;

	tensor_set_num_threads(1); /* of one operator: here the threads are ours */
	tensor_scope {
		tensor *data = tensor_expand(tensor_arange(TENSOR_SCALAR(4),
							   TENSOR_OPTIONS(.dtype = TENSOR_F64)),
					     TENSOR_SHAPE(THREADS * ROWS, 4));

		wrong = !sum_squares(data, 0, &total) || total != THREADS * ROWS * 14.0;
		printf("the sum of the squares is %g\n", total);
		/* The last part does not exist: one thread fails, the others do not. */
		wrong |= sum_squares(data, ROWS, &none);
	}
	return wrong;
}
