/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers of the tests of ADVISE: a mapped buffer, and shrinkers that run on request. */
#ifndef TENSOR_KSELFTEST_ADVISE_H
#define TENSOR_KSELFTEST_ADVISE_H

#include "../include/fixture.h"
#include "../include/touch.h"
#include "kselftest_harness.h"

#define BYTES (2 * HUGE)
#define PAGES (BYTES / PAGE)
#define RW    (PROT_READ | PROT_WRITE)

FIXTURE(advise)
{
	int dev;
	uint64_t used;
	struct tensor_alloc buf;
	char *at;
};

FIXTURE_SETUP(advise)
{
	self->at = setup_mapped_buf(&self->dev, &self->used, &self->buf, BYTES);
	ASSERT_NE(MAP_FAILED, self->at);
	memset(self->at, 0x55, BYTES);
	touch_begin();
}

FIXTURE_TEARDOWN(advise)
{
	munmap(self->at, BYTES);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

HELPER int purgeable(FIXTURE_DATA(advise) * self)
{
	return buf_advise(self->dev, self->buf.handle, TENSOR_ADVISE_PURGEABLE);
}

HELPER int willneed(FIXTURE_DATA(advise) * self)
{
	return buf_advise(self->dev, self->buf.handle, TENSOR_ADVISE_WILLNEED);
}

HELPER uint32_t state(FIXTURE_DATA(advise) * self)
{
	struct tensor_info info;

	return buf_info(self->dev, self->buf.handle, &info) ? UINT32_MAX : info.state;
}

/* Runs the shrinkers, as a machine that is short of memory does. */
HELPER void shrink(int times)
{
	while (times--)
		write_text("/proc/sys/vm/drop_caches", "2");
}

/* Retries until the buffer is purged. */
HELPER bool purge(FIXTURE_DATA(advise) * self)
{
	int tries;

	if (purgeable(self))
		return false;
	for (tries = 0; tries < 100 && !(state(self) & TENSOR_STATE_PURGED); tries++) {
		shrink(1);
		/* references that were dropped may be freed with a delay */
		sleep_ms(tries);
	}
	return state(self) == (TENSOR_STATE_PURGEABLE | TENSOR_STATE_PURGED);
}

#endif /* TENSOR_KSELFTEST_ADVISE_H */
