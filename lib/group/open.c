// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Joining and leaving a process group, and the choice of its engine. */
#include "group/group.h"

#include "base/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define OPENMPI	   "libtensor_mpi_openmpi.so.0"
#define MPICH	   "libtensor_mpi_mpich.so.0"
#define NCCL	   "libtensor_nccl.so.0"
#define TIMEOUT_NS INT64_C(600000000000)

/* ---- engines ---- */

/* An engine of a plugin, which is loaded when a first group needs it. */
struct plugin {
	const struct group_engine *engine;
	bool tried;
	char why_not[TENSOR_ERROR_TEXT];
};

static struct plugin mpi, nccl;
static struct plugin *loading; /* whose constructor runs */
static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;

/* Called by the constructor of a plugin, inside of plugin_open(), or when the program that has linked it is loaded. */
TENSOR_EXPORT void tensor_register_group_engine(const struct group_engine *engine,
						const char *why_not)
{
	struct plugin *p = loading				   ? loading :
			   engine && !strcmp(engine->name, "nccl") ? &nccl :
								     &mpi;

	p->engine = engine;
	if (!engine)
		snprintf(p->why_not, sizeof(p->why_not), "%s", why_not);
}

/* NULL with the error set. */
static const struct group_engine *group_plugin_open(struct plugin *p, const char *name,
						    const char *file, const char *variable)
{
	pthread_mutex_lock(&plugin_lock);
	loading = p;
	if (!p->tried && !p->engine)
		plugin_open(file, variable, p->why_not, sizeof(p->why_not));
	p->tried = true;
	loading = NULL;
	pthread_mutex_unlock(&plugin_lock);
	if (!p->engine)
		tensor_fail(ENOTSUP, "group_open: %s: %s", name, p->why_not);
	return p->engine;
}

/*
 * The plugin of the MPI that is loaded, since its symbols would be used by the other plugin, too; else that of the program
 * that has started the process.
 */
static const char *mpi_file(void)
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

/* Whether mpirun of Open MPI, or of MPICH and its relatives, has started the process. */
static bool is_under_mpirun(void)
{
	return secure_getenv("OMPI_COMM_WORLD_SIZE") || secure_getenv("PMI_SIZE") ||
	       secure_getenv("PMIX_RANK");
}

/* The engine of the host for the ranks that the launcher has started. */
static const char *launched_engine(void)
{
	return !secure_getenv("TENSOR_SIZE") && is_under_mpirun() ? "mpi" : "local";
}

static const struct group_engine *engine_of(const char *name)
{
	if (!name)
		name = secure_getenv("TENSOR_GROUP");
	if (!name || !*name)
		name = launched_engine();
	if (!strcmp(name, "local"))
		return &group_local;
	if (!strcmp(name, "mpi"))
		return group_plugin_open(&mpi, name, mpi_file(), "TENSOR_MPI_PLUGIN");
	if (!strcmp(name, "nccl"))
		return group_plugin_open(&nccl, name, NCCL, "TENSOR_NCCL_PLUGIN");
	tensor_fail(ENOTSUP, "group_open: there is no engine %s: local, mpi and nccl are",
		    QUOTED(name));
	return NULL;
}

/* ---- groups ---- */

TENSOR_EXPORT tensor_group *tensor_group_open(const char *name,
					      const struct tensor_group_options *options)
{
	static const struct tensor_group_options none;
	const struct group_engine *engine = engine_of(name);
	tensor_group *g;

	if (!engine)
		return NULL;
	options = options ? options : &none;
	g = group_new(engine, options->timeout_ns ? options->timeout_ns : TIMEOUT_NS);
	if (!g)
		return NULL;
	if (engine->open(g, options) < 0) {
		group_put(g);
		return NULL;
	}
	if (messages_prepare(g) < 0) {
		g->engine->close(g);
		group_put(g);
		return NULL;
	}
	return g;
}

TENSOR_EXPORT tensor_group *group_open_host(const struct tensor_group_options *options)
{
	return tensor_group_open(options->size ? "local" : launched_engine(), options);
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
