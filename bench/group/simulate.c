// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A step of data-parallel training on one rank of 1 to 1,024, with the library's own buckets and engine "mpi". The functions
 * of MPI are those of this program, which take the place of the library's as profilers do: they count, and answer as if all
 * ranks had the same tensors. Prints a line for each number of ranks, and fails if something grows that must not.
 *
 * usage: group_simulate
 */
#include <malloc.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tensor/group.h>
#include <tensor/parallel.h>
#include <tensor/tensor.h>
#include <unistd.h>

enum { LAYERS = 12, WIDTH = 256, SYMBOLS = 1024, MOST = 1024 };
/* Elements of them. */
#define PARAMETERS ((SYMBOLS + 12 * LAYERS * WIDTH) * (int64_t)WIDTH)

static int ranks = 1;
static void *receiving[MOST];

static struct count {
	int64_t messages, collectives; /* that this rank begins */
	int64_t bytes;		       /* that it sends, itself or as its part of a collective */
} count;

static void need(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%d ranks: %s: %s\n", ranks, what, tensor_last_error()->text);
	exit(1);
}

/* ---- MPI ---- */

static int collective(int64_t bytes, MPI_Request *r)
{
	count.collectives++;
	count.bytes += bytes;
	*r = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

int MPI_Initialized(int *flag)
{
	*flag = 1;
	return MPI_SUCCESS;
}

int MPI_Finalized(int *flag)
{
	*flag = 0;
	return MPI_SUCCESS;
}

int MPI_Query_thread(int *level)
{
	*level = MPI_THREAD_MULTIPLE;
	return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
	*rank = 0;
	return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
	*size = ranks;
	return MPI_SUCCESS;
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *to, MPI_Request *r)
{
	*to = comm;
	*r = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

int MPI_Comm_free(MPI_Comm *comm)
{
	*comm = MPI_COMM_NULL;
	return MPI_SUCCESS;
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
	return MPI_SUCCESS;
}

int MPI_Test(MPI_Request *r, int *done, MPI_Status *status)
{
	*done = 1;
	return MPI_SUCCESS;
}

int MPI_Testall(int n, MPI_Request r[], int *done, MPI_Status status[])
{
	*done = 1;
	return MPI_SUCCESS;
}

/* The receives of a rank are begun before its sends; the others send what this rank sends to them. */
int MPI_Irecv(void *to, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *r)
{
	receiving[from] = to;
	*r = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

int MPI_Isend(const void *from, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
	      MPI_Request *r)
{
	count.messages++;
	count.bytes += n;
	memcpy(receiving[to], from, (size_t)n);
	*r = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

/* Two words of each rank, of which the maximum is taken: the check of a call. */
int MPI_Iallreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
		   MPI_Request *r)
{
	memcpy(out, in, (size_t)n * sizeof(uint64_t));
	return collective(n * (int64_t)sizeof(uint64_t), r);
}

int MPI_Ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *r)
{
	return collective(n, r);
}

int MPI_Ialltoallv(const void *in, const int n[], const int at[], MPI_Datatype type, void *out,
		   const int out_n[], const int out_at[], MPI_Datatype out_type, MPI_Comm comm,
		   MPI_Request *r)
{
	int64_t bytes = 0;

	for (int i = 0; i < ranks; i++) {
		memcpy((char *)out + out_at[i], (const char *)in + at[0], (size_t)out_n[i]);
		bytes += i ? n[i] : 0;
	}
	return collective(bytes, r);
}

/* In place: the parts of the other ranks are those that the mean of equal tensors leaves. */
int MPI_Iallgatherv(const void *in, int n, MPI_Datatype type, void *out, const int out_n[],
		    const int out_at[], MPI_Datatype out_type, MPI_Comm comm, MPI_Request *r)
{
	/* A ring passes on the parts of all ranks but one. */
	int64_t bytes = 0;

	for (int i = 0; i < ranks - 1; i++)
		bytes += out_n[i];
	return collective(bytes, r);
}

/* ---- the training ---- */

static tensor *leaves[4 * LAYERS + 1];

static tensor *leaf(int64_t rows, int64_t columns)
{
	tensor *t = tensor_full(TENSOR_INTS(rows, columns), TENSOR_SCALAR(0.01), TENSOR_OPTIONS(0));

	need(t && !tensor_set_requires_grad(t, true), "a parameter");
	return t;
}

/* The parameters of a GPT that count. */
static void make_leaves(void)
{
	int n = 0;

	leaves[n++] = leaf(SYMBOLS, WIDTH);
	for (int i = 0; i < LAYERS; i++) {
		leaves[n++] = leaf(3 * WIDTH, WIDTH);
		leaves[n++] = leaf(WIDTH, WIDTH);
		leaves[n++] = leaf(4 * WIDTH, WIDTH);
		leaves[n++] = leaf(WIDTH, 4 * WIDTH);
	}
}

/* A backward that gives all of them a gradient. */
static void step(tensor_data_parallel *dp)
{
	tensor_scope {
		tensor *loss = tensor_sum(leaves[0]);

		for (int i = 1; i <= 4 * LAYERS; i++) {
			tensor_set_grad(leaves[i], NULL);
			loss = tensor_add(loss, tensor_sum(leaves[i]));
		}
		tensor_set_grad(leaves[0], NULL);
		need(!tensor_data_parallel_backward(dp, loss), "backward");
	}
}

static int64_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return (int64_t)(m.uordblks + m.hblkhd);
}

/* Memory of the process that is resident, bytes. */
static int64_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long long pages = 0;

	need(f && fscanf(f, "%*d %lld", &pages) == 1, "/proc/self/statm");
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/*
 * Counts of one step. memory: bytes that are allocated, gradients and buckets among them; engine: those from malloc(), most of
 * which the engine has.
 */
struct row {
	int64_t operations, messages, collectives, bytes, memory, engine;
};

static struct row measured(void)
{
	struct tensor_group_stats before, after;
	int64_t heap_before, resident_before;
	tensor_data_parallel *dp;
	tensor_group *g;
	struct row row;

	make_leaves();
	heap_before = heap();
	resident_before = resident();
	g = tensor_group_open("mpi", NULL);
	need(g, "group_open");
	dp = tensor_data_parallel_new_of((tensor_list){ leaves, 4 * LAYERS + 1 },
					 (tensor_list){ NULL, 0 }, g, NULL);
	need(dp, "data_parallel_new");
	/* After the first step the buckets have their order. */
	step(dp);
	tensor_group_stats(g, &before);
	count = (struct count){ 0 };
	step(dp);
	tensor_group_stats(g, &after);
	row = (struct row){ (int64_t)(after.operations - before.operations),
			    count.messages,
			    count.collectives,
			    count.bytes,
			    resident() - resident_before,
			    heap() - heap_before };
	tensor_data_parallel_free(dp);
	tensor_group_close(g);
	return row;
}

/* In a process of its own, whose memory is that of this number of ranks alone. */
static struct row measured_apart(void)
{
	struct row row;
	int ends[2], status;
	pid_t pid;

	need(!pipe(ends), "pipe");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		row = measured();
		_exit(write(ends[1], &row, sizeof(row)) != sizeof(row));
	}
	close(ends[1]);
	need(read(ends[0], &row, sizeof(row)) == sizeof(row), "a process failed");
	close(ends[0]);
	need(waitpid(pid, &status, 0) == pid && !status, "a process failed");
	return row;
}

static double mib(int64_t bytes)
{
	return (double)bytes / (1 << 20);
}

int main(void)
{
	struct row one = { 0 }, row;
	bool grows = false;

	setenv("OMPI_COMM_WORLD_SIZE", "1", 0);
	setenv("TENSOR_NUM_THREADS", "1", 0);
	printf("ranks  operations  messages  collectives  sent MiB  memory MiB  of the engine\n");
	for (ranks = 1; ranks <= MOST; ranks *= 2) {
		row = measured_apart();
		if (ranks == 1)
			one = row;
		printf("%5d %11lld %9lld %12lld %9.1f %11.1f %14.1f\n", ranks,
		       (long long)row.operations, (long long)row.messages,
		       (long long)row.collectives, mib(row.bytes), mib(row.memory),
		       mib(row.engine));
		/*
		 * The engine's counts grow by a record for each of up to 8 ranks; scratch memory for parts of 16 KiB of each
		 * rank. A byte is sent at most twice, in pieces of at least 4 MiB.
		 */
		grows |= row.operations != one.operations || row.messages > 7 * row.operations ||
			 row.collectives > 3 * row.operations + one.collectives ||
			 row.bytes > 2 * PARAMETERS * 4 + (1 << 20) ||
			 row.memory > one.memory + (8 << 20) + (int64_t)ranks * (20 << 10);
	}
	if (grows)
		printf("something grows with the number of ranks that must not\n");
	return grows;
}
