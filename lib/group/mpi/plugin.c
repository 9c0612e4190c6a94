// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * libtensor_mpi_openmpi.so, libtensor_mpi_mpich.so: the engine "mpi", compiled for each MPI because their headers have
 * different types. MPI is initialised by the first group if the program has not done it, and then ended at the end of the
 * program.
 */
#include "group/mpi/mpi.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CLOSE_NS INT64_C(100000000)   /* for the other ranks to close the group, too */
#define END_NS	 INT64_C(10000000000) /* the same at the end of the program, before MPI_Finalize() */
#define SPIN_NS	 INT64_C(1000000) /* a wait spins first if the ranks have processors of their own */
#define MOVE_NS	 INT64_C(50000000) /* the same while data moves */
#define YIELD_NS INT64_C(10000000) /* then it yields for this time, then it sleeps, too */
#define NAP_NS	 INT64_C(1000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows, and the end of MPI */
static struct mpi *groups;				 /* that are open */
static struct mpi *leaving;				 /* closed, but not by all ranks yet */
static bool is_broken;					 /* do not wait for other ranks any more */
static pid_t process; /* that began MPI, or opened the first group */

/* Without MPI_THREAD_MULTIPLE threads of groups take turns. */
static bool is_serial;
static pthread_mutex_t serial = PTHREAD_MUTEX_INITIALIZER;

static void enter(void)
{
	if (is_serial)
		pthread_mutex_lock(&serial);
}

static void leave(void)
{
	if (is_serial)
		pthread_mutex_unlock(&serial);
}

static void nap(int64_t waited, int64_t ns)
{
	struct timespec t = { 0, waited / 16 < NAP_NS ? waited / 16 : NAP_NS };

	if (ns < t.tv_nsec)
		t.tv_nsec = ns;
	nanosleep(&t, NULL);
}

/* ---- beginning and end of MPI ---- */

/* Groups that are still open: none of their threads may be in MPI, or enter it. */
static bool stop_groups(void)
{
	bool stopped = true;

	for (struct mpi *m = groups; m; m = m->next)
		stopped &= !pthread_mutex_trylock(&m->group->running);
	return stopped;
}

static void wait_for_leaving(void)
{
	int64_t begin = mpi_now();

	for (struct mpi *m = leaving; m; m = m->next) {
		int done = 0;

		while (MPI_Testall(m->n_pending, m->pending, &done, MPI_STATUSES_IGNORE) ==
			       MPI_SUCCESS &&
		       !done && mpi_now() - begin < END_NS)
			nap(END_NS, NAP_NS);
	}
}

/*
 * At the end of the program. If a rank did not answer, or this one is in the middle of an operation, MPI_Finalize() might
 * wait for ever: without it mpirun ends the other ranks.
 */
static void end_mpi(void)
{
	int ended = 0;

	if (getpid() != process)
		return;
	pthread_mutex_lock(&lock);
	MPI_Finalized(&ended);
	if (!ended && !is_broken && stop_groups()) {
		wait_for_leaving();
		MPI_Finalize();
	}
	pthread_mutex_unlock(&lock);
}

static int begin_mpi(void)
{
	int begun = 0, ended = 0, level = MPI_THREAD_SINGLE, err = MPI_SUCCESS;

	MPI_Finalized(&ended);
	if (ended)
		return tensor_fail(EINVAL, "group_open: mpi: MPI_Finalize was called");
	if (process && process != getpid())
		return tensor_fail(EBUSY, "group_open: mpi: MPI is the parent's");
	MPI_Initialized(&begun);
	if (begun)
		err = MPI_Query_thread(&level);
	else
		err = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
	if (err != MPI_SUCCESS)
		return tensor_fail(EIO, "group_open: mpi: MPI_Init_thread: error %d", err);
	if (!begun)
		atexit(end_mpi);
	process = getpid();
	if (level < MPI_THREAD_SERIALIZED)
		return tensor_fail(ENOTSUP,
				   "group_open: mpi: MPI was initialised for calls of one thread: "
				   "MPI_Init_thread with MPI_THREAD_MULTIPLE is needed");
	is_serial = level < MPI_THREAD_MULTIPLE;
	return 0;
}

/* ---- the group ---- */

static void free_mpi(struct mpi *m)
{
	free(m->counts);
	free(m->places);
	free(m->records);
	free(m->scratch);
	free(m);
}

static struct mpi *new_mpi(tensor_group *g)
{
	struct mpi *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->group = g;
	m->comm = MPI_COMM_NULL;
	m->type = MPI_DATATYPE_NULL;
	m->counts = calloc(2 * (size_t)g->size, sizeof(int));
	m->places = calloc(2 * (size_t)g->size, sizeof(int));
	m->records = calloc(RECORDS_MAX + 1, RECORD);
	if (m->counts && m->places && m->records)
		return m;
	free_mpi(m);
	return NULL;
}

/* Waits for the only request of the group without a limit of MPI. 1; 0: not in time; -errno with the error set. */
static int wait_for(tensor_group *g, int64_t timeout_ns)
{
	int64_t begin = mpi_now(), waited = 0;
	int res;

	for (;;) {
		enter();
		res = collective_test(g);
		leave();
		if (res || (timeout_ns >= 0 && waited >= timeout_ns))
			return res;
		if (waited < YIELD_NS)
			sched_yield();
		else
			nap(waited, NAP_NS);
		waited = mpi_now() - begin;
	}
}

/*
 * Whether the ranks of this machine have a processor each. mpirun may have bound this one to a part of the processors, of
 * which the others then have other ones.
 */
static bool has_processors(const tensor_group *g)
{
	const char *open_mpi = secure_getenv("OMPI_COMM_WORLD_LOCAL_SIZE"),
		   *mpich = secure_getenv("MPI_LOCALNRANKS");
	const char *text = open_mpi ? open_mpi : mpich;
	int here = text ? atoi(text) : g->size;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return true;
	return here <= CPU_COUNT(&set) || (CPU_COUNT(&set) < sysconf(_SC_NPROCESSORS_ONLN) &&
					   here <= sysconf(_SC_NPROCESSORS_ONLN));
}

static int join(tensor_group *g)
{
	struct mpi *m = mpi_of(g);
	int res = mpi_failed(g, MPI_Comm_idup(MPI_COMM_WORLD, &m->comm, m->pending),
			     "group_open: MPI_Comm_idup");

	m->n_pending = 1;
	if (!res)
		res = wait_for(g, g->timeout_ns);
	if (!res) {
		is_broken = m->is_stuck = true;
		return tensor_fail(
			ETIMEDOUT,
			"group_open: mpi: not all ranks have opened the group within %lld ms",
			(long long)(g->timeout_ns / 1000000));
	}
	if (res > 0)
		res = mpi_failed(g, MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN),
				 "group_open: MPI_Comm_set_errhandler");
	return res;
}

static int open_group(tensor_group *g)
{
	struct mpi *m;
	int err = begin_mpi();

	if (err < 0)
		return err;
	MPI_Comm_rank(MPI_COMM_WORLD, &g->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g->size);
	m = g->state = new_mpi(g);
	if (!m)
		return tensor_fail(ENOMEM, "group_open: no memory");
	err = join(g);
	if (err < 0) {
		if (!m->is_stuck)
			free_mpi(m);
		return err;
	}
	g->spin_ns = has_processors(g) ? SPIN_NS : 0;
	m->next = groups;
	groups = m;
	return 0;
}

static int mpi_open(tensor_group *g, const struct tensor_group_options *o)
{
	int err;

	pthread_mutex_lock(&lock);
	err = open_group(g);
	pthread_mutex_unlock(&lock);
	return err;
}

static void mpi_give_up(tensor_group *g)
{
	struct mpi *m = mpi_of(g);

	enter();
	messages_end(g);
	m->is_stuck |= !collective_end(g);
	is_broken |= g->err == -ETIMEDOUT || g->err == -EIO;
	if (!m->is_over)
		check_leave(g);
	m->is_over = true;
	leave();
}

static void mpi_drop(tensor_request *r)
{
	if (!request_is_message(r))
		return;
	enter();
	message_drop(r);
	leave();
}

/* Says that this rank closes the group; true if all others have said so, too. */
static bool leave_together(tensor_group *g)
{
	int err;

	enter();
	err = check_begin(g, NULL, SAYS_CLOSED);
	leave();
	return !err && wait_for(g, CLOSE_NS) > 0;
}

static void mpi_close(tensor_group *g)
{
	struct mpi *m = mpi_of(g), **at = &groups;
	bool is_leaving = false;

	pthread_mutex_lock(&lock);
	if (!m->is_over) {
		is_leaving = !leave_together(g);
		m->is_stuck |= is_leaving;
		enter();
		/* Not before: a late message would be taken for one of the next group, which gets the number of this one. */
		if (!m->is_stuck)
			MPI_Comm_free(&m->comm);
		leave();
	}
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	if (is_leaving) {
		m->next = leaving;
		leaving = m;
	}
	pthread_mutex_unlock(&lock);
	g->state = NULL;
	if (!m->is_stuck)
		free_mpi(m);
}

/* ---- operations ---- */

static int mpi_start(tensor_request *r)
{
	int err;

	enter();
	err = request_is_message(r) ? message_start(r) : collective_start(r);
	leave();
	return err;
}

static int mpi_step(tensor_request *r)
{
	int res;

	enter();
	res = request_is_message(r) ? message_step(r) : collective_step(r);
	leave();
	return res;
}

/* Whether the other rank, or all of them, are in the operation. */
static bool moves(const tensor_request *r)
{
	return request_is_message(r) ? message_moves(r) : mpi_of(r->group)->phase != CHECK;
}

/*
 * MPI moves data only in its functions, and has none that sleeps until a message comes. While data moves, the other ranks are
 * there, and this one spins or yields. While it waits for them it sleeps, too, for a part of the time that it has waited.
 */
static int mpi_sleep(tensor_group *g, tensor_request *r, int64_t ns)
{
	struct mpi *m = mpi_of(g);
	bool moving = r && moves(r);
	int64_t now = mpi_now();

	if (m->asleep != r || m->was_moving != moving)
		m->since = now;
	m->asleep = r;
	m->was_moving = moving;
	if (m->since < m->moved)
		m->since = m->moved;
	if (moving && g->spin_ns && now - m->since < MOVE_NS)
		return 0;
	if (moving || now - m->since < YIELD_NS)
		sched_yield();
	else
		nap(now - m->since, ns);
	return 0;
}

static int mpi_late(tensor_group *g, tensor_request *r)
{
	char ranks[TENSOR_ERROR_TEXT / 2] = "";
	bool called = r && mpi_of(g)->phase != CHECK;

	enter();
	if (r)
		check_missing(g, ranks, sizeof(ranks));
	leave();
	return group_fail_late(g,
			       called ? "the data did not come" :
			       r      ? "not all ranks have called it" :
					"no rank sent or received",
			       ranks);
}

static const struct group_engine engine = {
	.name = "mpi",
	.open = mpi_open,
	.close = mpi_close,
	.start = mpi_start,
	.step = mpi_step,
	.drop = mpi_drop,
	.sleep = mpi_sleep,
	.late = mpi_late,
	.give_up = mpi_give_up,
};

/* ---- the plugin ---- */

#ifdef OPEN_MPI
#define BUILT_FOR "Open MPI"
#else
#define BUILT_FOR "MPICH"
#endif

__attribute__((constructor)) static void load(void)
{
	/* MPI_MAX_LIBRARY_VERSION_STRING of MPICH; that of Open MPI is too little for the other one's text. */
	char version[8192] = "", why[TENSOR_ERROR_TEXT];
	Dl_info info;
	int n;

	MPI_Get_library_version(version, &n);
	if (!strstr(version, BUILT_FOR)) {
		snprintf(why, sizeof(why),
			 "the plugin is for " BUILT_FOR ", the program has loaded %.40s", version);
		tensor_register_group_engine(NULL, why);
		return;
	}
	/* Modules of Open MPI do not name libmpi, whose symbols they use. */
	if (dladdr((void *)MPI_Get_library_version, &info))
		dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
	tensor_register_group_engine(&engine, NULL);
}
