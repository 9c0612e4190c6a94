// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Joining and leaving a process group, and the choice of its engine. */
#include "group/group.h"

#include "base/init.h"
#include "base/plugin.h"
#include "sharing/link.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define OPENMPI	   "libtensor_mpi_openmpi.so.0"
#define MPICH	   "libtensor_mpi_mpich.so.0"
#define TIMEOUT_NS INT64_C(600000000000)
#define SPIN_NS	   INT64_C(50000)

unsigned group_process;

static void in_child(void)
{
	group_process++;
}

INIT(INIT_PROCESS_GROUP) static void groups_init(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* ---- engines ---- */

static const struct group_engine *plugin;
static char why_no_plugin[TENSOR_ERROR_TEXT];
static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;

/* Called by the constructor of the plugin, inside of plugin_open(). */
TENSOR_EXPORT void tensor_register_group_engine(const struct group_engine *engine,
						const char *why_not)
{
	plugin = engine;
	if (!engine)
		snprintf(why_no_plugin, sizeof(why_no_plugin), "%s", why_not);
}

/*
 * The plugin of the MPI that is loaded, since its symbols would be used by the other plugin, too; else that of the program
 * that has started the process.
 */
static const char *plugin_file(void)
{
	int (*version)(char *, int *) =
		(int (*)(char *, int *))dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
	char text[8192] = ""; /* MPI_MAX_LIBRARY_VERSION_STRING, the larger of both */
	int n;

	if (version && version(text, &n) == 0)
		return strstr(text, "Open MPI") ? OPENMPI : MPICH;
	if (secure_getenv("OMPI_COMM_WORLD_SIZE"))
		return OPENMPI;
	return secure_getenv("PMI_SIZE") || secure_getenv("PMI_RANK") ? MPICH : OPENMPI;
}

static const struct group_engine *mpi_engine(void)
{
	static bool tried;

	pthread_mutex_lock(&plugin_lock);
	if (!tried && !plugin)
		plugin_open(plugin_file(), "TENSOR_MPI_PLUGIN", why_no_plugin,
			    sizeof(why_no_plugin));
	tried = true;
	pthread_mutex_unlock(&plugin_lock);
	if (!plugin)
		tensor_fail(ENOTSUP, "group_open: mpi: %s", why_no_plugin);
	return plugin;
}

/* Whether mpirun of Open MPI, or of MPICH and its relatives, has started the process. */
static bool is_under_mpirun(void)
{
	return secure_getenv("OMPI_COMM_WORLD_SIZE") || secure_getenv("PMI_SIZE") ||
	       secure_getenv("PMIX_RANK");
}

static const struct group_engine *engine_of(const char *name)
{
	if (!name)
		name = secure_getenv("TENSOR_GROUP");
	if (!name || !*name)
		name = !secure_getenv("TENSOR_SIZE") && is_under_mpirun() ? "mpi" : "local";
	if (!strcmp(name, "local"))
		return &group_local;
	if (!strcmp(name, "mpi"))
		return mpi_engine();
	tensor_fail(ENOTSUP, "group_open: there is no engine %s: local and mpi are", QUOTED(name));
	return NULL;
}

/* ---- groups ---- */

static int init_locks(tensor_group *g)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&g->lock, NULL);
	pthread_mutex_init(&g->running, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->changed, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static void free_group(tensor_group *g)
{
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->running);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

/* Ranks that share processors would spin in each other's way. */
static int64_t spin_of(int size)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < size ? 0 : SPIN_NS;
}

TENSOR_EXPORT tensor_group *tensor_group_open(const char *name,
					      const struct tensor_group_options *options)
{
	static const struct tensor_group_options none;
	const struct group_engine *engine = engine_of(name);
	tensor_group *g;

	if (!engine)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g) {
		tensor_fail(ENOMEM, "group_open: no memory");
		return NULL;
	}
	options = options ? options : &none;
	g->engine = engine;
	g->process = group_process;
	g->timeout_ns = options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
	g->stats.failed = -1;
	g->refs = 1;
	g->last = &g->first;
	g->messages_last = &g->messages;
	g->spin_ns = -1;
	init_locks(g);
	if (engine->open(g, options) < 0) {
		free_group(g);
		return NULL;
	}
	if (g->spin_ns < 0)
		g->spin_ns = spin_of(g->size);
	return g;
}

void group_put(tensor_group *g)
{
	bool last;

	pthread_mutex_lock(&g->lock);
	last = !--g->refs;
	pthread_mutex_unlock(&g->lock);
	if (last)
		free_group(g);
}

TENSOR_EXPORT void tensor_group_close(tensor_group *g)
{
	/* In a child of fork() the locks may be held by threads that do not exist here. */
	if (!g || group_is_parents(g))
		return;
	requests_stop(g);
	g->engine->close(g);
	group_put(g);
}

int group_ended(tensor_group *g)
{
	char text[TENSOR_ERROR_TEXT];
	int err;

	pthread_mutex_lock(&g->lock);
	err = g->err;
	if (err)
		snprintf(text, sizeof(text), "%s", g->text);
	else if (g->stop) {
		err = -EPIPE;
		snprintf(text, sizeof(text), "the group was closed");
	}
	pthread_mutex_unlock(&g->lock);
	return err ? tensor_fail(-err, "%s", text) : 0;
}

int group_check(tensor_group *g, const char *what)
{
	int err;

	if (!g)
		return tensor_fail(EINVAL, "%s: the group is NULL", what);
	if (group_is_parents(g))
		return tensor_fail(EBUSY, "%s: the group is the parent's", what);
	err = group_ended(g);
	if (err < 0)
		error_in(what);
	return err;
}

TENSOR_EXPORT int tensor_group_rank(const tensor_group *g)
{
	return g ? g->rank : tensor_fail(EINVAL, "group_rank: the group is NULL");
}

TENSOR_EXPORT int tensor_group_size(const tensor_group *g)
{
	return g ? g->size : tensor_fail(EINVAL, "group_size: the group is NULL");
}

TENSOR_EXPORT const char *tensor_group_engine(const tensor_group *g)
{
	return g ? g->engine->name : NULL;
}

TENSOR_EXPORT int tensor_group_stats(tensor_group *g, struct tensor_group_stats *stats)
{
	if (!g || !stats)
		return tensor_fail(EINVAL, "group_stats: an argument is NULL");
	if (group_is_parents(g))
		return tensor_fail(EBUSY, "group_stats: the group is the parent's");
	pthread_mutex_lock(&g->lock);
	*stats = g->stats;
	pthread_mutex_unlock(&g->lock);
	return 0;
}
