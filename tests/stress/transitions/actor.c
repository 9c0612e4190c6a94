// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The threads, and their actions on fds and handles. */
#include <pthread.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "actor.h"

int actor_dev = -1, actor_vgem = -1;

unsigned int actor_random_below(struct actor *a, unsigned int n)
{
	a->state = a->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (a->state >> 33) % n;
}

/* A word to write that contains the tag of this buffer. */
uint64_t actor_word(struct actor *a)
{
	return (uint64_t)a->round->tag << 32 | actor_random_below(a, 1U << 30);
}

/* The first word of a page in a window, mapped or not. */
volatile uint64_t *actor_place(struct actor *a)
{
	char *window = WINDOW(actor_random_below(a, WINDOWS));

	return (volatile uint64_t *)(window + actor_random_below(a, a->round->bytes / PAGE) * PAGE);
}

int actor_prot(struct actor *a)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };

	return prots[actor_random_below(a, 3)];
}

void round_broken(struct round *r, enum promise promise, const char *text, ...)
{
	va_list args;

	if (r->broken[promise]++)
		return;
	va_start(args, text);
	vsnprintf(r->wrong[promise], sizeof(r->wrong[promise]), text, args);
	va_end(args);
}

static bool granted(struct actor *a, bool revoked, const char *what)
{
	if (revoked)
		round_broken(a->round, REVOKE_HOLDS, "%s of a revoked buffer", what);
	return true;
}

bool act_export(struct actor *a)
{
	static const uint32_t rights[] = { TENSOR_RIGHTS_ALL, TENSOR_RIGHTS_RW, TENSOR_RIGHTS_RO };
	struct round *r = a->round;
	bool sealed = r->sealed, revoked = r->revoked;
	uint32_t right = rights[actor_random_below(a, 3)];
	int fd = buf_export_rights(r->dev, r->handle, right,
				   actor_random_below(a, 2) ? TENSOR_EXPORT_DMABUF : 0);

	if (fd < 0)
		return false;
	close(fd);
	if (sealed && right & TENSOR_RIGHT_WRITE)
		round_broken(r, SEAL_HOLDS, "EXPORT with TENSOR_RIGHT_WRITE");
	return granted(a, revoked, "EXPORT");
}

bool act_import(struct actor *a)
{
	struct round *r = a->round;
	int fds[] = { r->fd, r->rofd, r->dmabuf };
	bool revoked = r->revoked;
	struct tensor_import import;

	if (buf_import(actor_dev, fds[actor_random_below(a, 3)], &import))
		return false;
	dev_close(actor_dev, import.handle);
	return granted(a, revoked, "IMPORT");
}

/* Attaches a device that may write. */
bool act_attach(struct actor *a)
{
	struct round *r = a->round;
	bool sealed = r->sealed, revoked = r->revoked;
	uint32_t gem;

	if (r->calm && !sealed)
		return false;
	if (vgem_import(actor_vgem, r->dmabuf, &gem))
		return false;
	vgem_close(actor_vgem, gem);
	if (sealed)
		round_broken(r, SEAL_HOLDS, "a writing device has attached");
	return granted(a, revoked, "attachment");
}

bool act_advise(struct actor *a)
{
	struct round *r = a->round;
	bool revoked = r->revoked;
	int done;

	if (r->calm)
		return false;
	done = buf_advise(r->dev, r->handle, actor_random_below(a, 2));
	return done >= 0 && granted(a, revoked, "ADVISE");
}

bool act_info(struct actor *a)
{
	struct round *r = a->round;
	bool sealed = r->sealed, revoked = r->revoked;
	struct tensor_info info;

	if (buf_info(r->dev, r->handle, &info))
		return false;
	if (revoked && !(info.state & TENSOR_STATE_REVOKED))
		round_broken(r, REVOKE_HOLDS, "INFO says that it was not revoked");
	if (sealed && !(info.seals & TENSOR_SEAL_WRITE))
		round_broken(r, SEAL_HOLDS, "INFO says that it is not sealed");
	return true;
}

static const struct {
	const char *name;
	bool (*act)(struct actor *a);
	unsigned int weight;
} actions[] = {
	{ "read", act_read, 8 },	 { "write", act_write, 8 },
	{ "map", act_map, 6 },		 { "unmap", act_unmap, 2 },
	{ "mprotect", act_protect, 2 },	 { "mremap", act_move, 2 },
	{ "dontneed", act_drop, 1 },	 { "fork", act_fork, 1 },
	{ "proc_mem", act_proc_mem, 1 }, { "vm_writev", act_vm_write, 1 },
	{ "pread", act_pread, 2 },	 { "vmsplice", act_splice, 1 },
	{ "export", act_export, 2 },	 { "import", act_import, 2 },
	{ "attach", act_attach, 1 },	 { "advise", act_advise, 1 },
	{ "info", act_info, 1 },
};

#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

const char *action_name(unsigned int action)
{
	return action < ACTIONS ? actions[action].name : NULL;
}

/* Actions on fds that the round does not have are skipped. */
static bool possible(const struct round *r, unsigned int i)
{
	bool (*act)(struct actor * a) = actions[i].act;

	if (act == act_advise)
		return r->purging;
	if (act == act_export || act == act_import)
		return !r->purging;
	return act != act_attach || (actor_vgem >= 0 && r->dmabuf >= 0);
}

static unsigned int pick_action(struct actor *a)
{
	unsigned int at, i;

	for (;;) {
		at = actor_random_below(a, 42);
		for (i = 0; i < ACTIONS && at >= actions[i].weight; i++)
			at -= actions[i].weight;
		if (i < ACTIONS && possible(a->round, i))
			return i;
	}
}

static void unmap_all(void)
{
	unsigned int i;

	for (i = 0; i < WINDOWS; i++)
		munmap(WINDOW(i), 64 * MIB);
}

static void *actor_run(void *data)
{
	struct actor *a = data;
	struct round *r = a->round;
	bool calmed = false;

	while (!r->stop) {
		unsigned int i = pick_action(a);

		if (r->calm && !calmed) {
			unmap_all();
			r->calmed++;
			calmed = true;
		}
		r->action[a->index] = i;
		if (actions[i].act(a))
			r->done[i]++;
		r->beat[a->index]++;
		if (r->gentle && actor_random_below(a, 3) == 0) {
			unmap_all();
			usleep(actor_random_below(a, 600));
		}
	}
	return NULL;
}

/* Some processes exit early, with all that they hold. */
static void end_early(struct actor *a)
{
	sleep_ms(actor_random_below(a, 12));
	_exit(0);
}

/**
 * actors_start() - start a process of actors
 * @r: the round
 * @proc: number of the process
 *
 * Return: its pid, or -1.
 */
pid_t actors_start(struct round *r, unsigned int proc)
{
	static int maps = -1;
	struct actor actor[THREADS];
	pthread_t thread[THREADS];
	unsigned int i;
	pid_t pid;

	if (maps < 0)
		maps = vgem_maps();
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	actor_dev = dev_open();
	/* a device that only attaches may not write: SEAL does not depend on it */
	actor_vgem = maps ? vgem_open() : -ENODEV;
	for (i = 0; i < THREADS; i++) {
		actor[i] = (struct actor){ r, proc * THREADS + i, r->seed + proc * THREADS + i };
		actor_random_below(&actor[i], 2);
		pthread_create(&thread[i], NULL, actor_run, &actor[i]);
	}
	if (proc && r->seed % 4 == 0)
		end_early(&actor[0]);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	_exit(0);
}
