// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The list of all channels, the lock of what they know of buffers, and forks. Whoever changes the list holds both locks.
 * No function blocks while it holds the lock of the tables; list_lock is outside of it and of tensor_channel.changing.
 */
#include "sharing/channel.h"

#include "base/init.h"

static tensor_channel *channels;
static pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the list ---- */

void channels_lock_tables(void)
{
	pthread_mutex_lock(&tables_lock);
}

void channels_unlock_tables(void)
{
	pthread_mutex_unlock(&tables_lock);
}

tensor_channel *channels_first(void)
{
	return channels;
}

void channel_publish(tensor_channel *ch)
{
	pthread_mutex_lock(&list_lock);
	channels_lock_tables();
	ch->next = channels;
	ch->link = &channels;
	if (channels)
		channels->link = &ch->next;
	channels = ch;
	channels_unlock_tables();
	pthread_mutex_unlock(&list_lock);
}

void channel_withdraw(tensor_channel *ch)
{
	pthread_mutex_lock(&list_lock);
	channels_lock_tables();
	*ch->link = ch->next;
	if (ch->next)
		ch->next->link = ch->link;
	channels_unlock_tables();
	pthread_mutex_unlock(&list_lock);
}

/* ---- forks ---- */

/*
 * A receiver of a device tensor takes locks of a plugin while it holds `changing`, so a fork takes the locks of channels
 * before those of the plugin: the handlers are registered once more after it has been loaded, and the first of the two
 * that run before a fork does the work, as does the last after it.
 */
static __thread int handlers_run;

static void lock_channels(void)
{
	if (handlers_run++)
		return;
	pthread_mutex_lock(&list_lock);
	for (tensor_channel *ch = channels; ch; ch = ch->next)
		pthread_mutex_lock(&ch->changing);
}

static void unlock_channels(void)
{
	if (--handlers_run)
		return;
	for (tensor_channel *ch = channels; ch; ch = ch->next)
		pthread_mutex_unlock(&ch->changing);
	pthread_mutex_unlock(&list_lock);
}

/* Whether a thread had the lock, which does not exist in the child. The lock is free then. */
static bool take_over(pthread_mutex_t *lock)
{
	if (!pthread_mutex_trylock(lock)) {
		pthread_mutex_unlock(lock);
		return false;
	}
	pthread_mutex_init(lock, NULL);
	return true;
}

static void adopt_channels(void)
{
	for (tensor_channel *ch = channels; ch && handlers_run == 1; ch = ch->next) {
		/* The number of a descriptor that was just received may be of none in the child, or of another file. */
		if (take_over(&ch->receiving)) {
			ch->orphan = true;
			ch->in.fd = -1;
		}
		ch->orphan |= take_over(&ch->sending);
		/* The connection goes on in the parent, whose threads serve it. */
		ch->orphan |= ch->remote != NULL;
	}
	unlock_channels();
}

static void handle_forks(void)
{
	pthread_atfork(lock_channels, unlock_channels, adopt_channels);
}

INIT(INIT_SHARE) static void tables_init(void)
{
	pthread_atfork(channels_lock_tables, channels_unlock_tables, channels_unlock_tables);
}

INIT(INIT_CHANNEL) static void channels_init(void)
{
	handle_forks();
}

void channels_before_plugin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, handle_forks);
}

int channel_orphan(const tensor_channel *ch)
{
	return ch->orphan ? tensor_fail(EBUSY, "the channel is the parent's: %s; close it here",
					ch->remote ? "it leads to another machine" :
						     "another thread used it at fork()") :
			    0;
}
