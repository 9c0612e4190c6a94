// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Collectives of plain MPI, and of process groups with the engines "mpi" and "local", the latter also on tensors in shared
 * buffers, in the same processes: one batch of calls of each after the other. Rank 0 prints a line for each: operation, bytes, contender, microseconds of a
 * call (the fastest quarter of the batches, and the median).    usage: mpirun -np N group [BYTES...]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensor/group.h>
#include <tensor/tensor.h>

enum { ALL_REDUCE, BROADCAST, ALL_GATHER, SEND_RECV, OPS };
enum { PLAIN, MPI, LOCAL, SHARED, CONTENDERS };

static const char *const op_names[] = { "all_reduce", "broadcast", "all_gather", "send_recv" };
static const char *const contenders[] = { "plain", "mpi", "local", "shared" };

#define ROUNDS	 25
#define BATCH_US 1500.0
#define ROW_US	 300000.0 /* of all batches of one row */

static int rank, ranks;
static tensor_group *groups[CONTENDERS];
/* In private memory, and in shared buffers. */
static struct operands {
	tensor *in, *out, *part;
} operands[2];
static float *in_data, *out_data;
static int bytes;

static void need(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%s: %s\n", what, tensor_last_error()->text);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void plain(int op)
{
	const int peer = 1 - rank, n = bytes / 4;

	switch (op) {
	case ALL_REDUCE:
		MPI_Allreduce(in_data, out_data, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case BROADCAST:
		MPI_Bcast(in_data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
		break;
	case ALL_GATHER:
		MPI_Allgather(in_data, bytes / ranks, MPI_BYTE, out_data, bytes / ranks, MPI_BYTE,
			      MPI_COMM_WORLD);
		break;
	default:
		if (rank == 0)
			MPI_Send(in_data, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
		MPI_Recv(out_data, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(in_data, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
	}
}

static void by_group(int op, int who)
{
	const struct operands *o = &operands[who == SHARED];
	tensor_group *g = groups[who];
	int err = 0;

	switch (op) {
	case ALL_REDUCE:
		err = tensor_group_all_reduce(g, o->out, o->in, TENSOR_GROUP_SUM, NULL);
		break;
	case BROADCAST:
		err = tensor_group_broadcast(g, o->in, 0, NULL);
		break;
	case ALL_GATHER:
		err = tensor_group_all_gather(g, o->out, o->part, NULL);
		break;
	default:
		if (rank == 0)
			err = tensor_group_send(g, o->in, 1, NULL);
		if (!err)
			err = tensor_group_recv(g, o->out, 1 - rank, NULL);
		if (rank == 1 && !err)
			err = tensor_group_send(g, o->in, 0, NULL);
	}
	need(!err, op_names[op]);
}

static double batch(int op, int who, int calls)
{
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int i = 0; i < calls; i++)
		if (who == PLAIN)
			plain(op);
		else
			by_group(op, who);
	return (MPI_Wtime() - begin) / calls * 1e6 / (op == SEND_RECV ? 2 : 1);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int agreed(int number)
{
	MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return number;
}

static void row(int op)
{
	double times[CONTENDERS][ROUNDS], us[CONTENDERS];
	int calls[CONTENDERS], rounds;
	double begin;

	for (int who = 0; who < CONTENDERS; who++) {
		batch(op, who, 1);
		us[who] = batch(op, who, bytes > 1 << 20 ? 1 : 5);
	}
	/* As many calls of each as of the fastest: what the first call of a batch costs weighs the same. */
	for (int who = 0; who < CONTENDERS; who++) {
		double least = us[PLAIN] < us[MPI] ? us[PLAIN] : us[MPI];
		double n = BATCH_US / (least < 0.5 ? 0.5 : least);

		if (n * us[who] > 10 * BATCH_US)
			n = 10 * BATCH_US / us[who];
		calls[who] = agreed(n < 1 ? 1 : (int)n);
	}
	begin = MPI_Wtime();
	for (rounds = 0;
	     rounds < ROUNDS && agreed(rounds < 3 || (MPI_Wtime() - begin) * 1e6 < ROW_US);
	     rounds++)
		for (int who = 0; who < CONTENDERS; who++)
			times[who][rounds] = batch(op, who, calls[who]);
	for (int who = 0; rank == 0 && who < CONTENDERS; who++) {
		qsort(times[who], (size_t)rounds, sizeof(double), compare);
		printf("%s %d %s %.3f %.3f\n", op_names[op], bytes, contenders[who],
		       times[who][rounds / 4], times[who][rounds / 2]);
	}
	fflush(stdout);
}

static void rows(void)
{
	int64_t n[] = { bytes / 4 };

	tensor_scope {
		for (int i = 0; i < 2; i++) {
			tensor_options options = { .shareable = i };
			struct operands *o = &operands[i];

			o->in = tensor_zeros((tensor_ints){ n, 1 }, options);
			o->out = tensor_zeros((tensor_ints){ n, 1 }, options);
			need(o->in && o->out, "tensor_zeros");
			o->part = tensor_narrow(o->in, 0, 0, n[0] / ranks);
		}
		in_data = tensor_mutable_data(operands[0].in);
		out_data = tensor_mutable_data(operands[0].out);
		for (int op = 0; op < OPS; op++)
			if ((op != SEND_RECV || ranks == 2) && (op != ALL_GATHER || n[0] >= ranks))
				row(op);
	}
}

int main(int argc, char **argv)
{
	int level;
	char address[64];

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	snprintf(address, sizeof(address), "bench-group-%d",
		 agreed((int)(MPI_Wtime() * 1e3) & 0xffffff));
	groups[MPI] = tensor_group_open("mpi", NULL);
	need(groups[MPI], "mpi");
	groups[LOCAL] = tensor_group_open("local", TENSOR_GROUP_OPTIONS(.rank = rank, .size = ranks,
									.address = address));
	need(groups[LOCAL], "local");
	groups[SHARED] = groups[LOCAL];
	for (int i = 1; i < argc; i++) {
		bytes = atoi(argv[i]);
		rows();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	tensor_group_close(groups[LOCAL]);
	tensor_group_close(groups[MPI]);
	return MPI_Finalize();
}
