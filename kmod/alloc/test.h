/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers that the KUnit tests of this folder share.
 *
 * Every suite sets alloc/ up and tears it down: KUnit runs the suites before a module's own init,
 * and the next suite finds what one has leaked. Tests run in a kernel thread, which has all
 * capabilities; tests of the limits of a user drop CAP_IPC_LOCK.
 */
#ifndef TENSOR_ALLOC_TEST_H
#define TENSOR_ALLOC_TEST_H

#include <kunit/test.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "alloc.h"

#define TEST_CASES_INIT .suite_init = test_suite_init, .suite_exit = test_suite_exit

/* The user who is charged for what a test allocates. */
static struct tensor_user *test_user;

static inline int test_suite_init(struct kunit_suite *suite)
{
	int err = tensor_alloc_init();

	if (err)
		return err;
	test_user = tensor_user_get(KUIDT_INIT(70000));
	if (!test_user)
		tensor_alloc_exit();
	return test_user ? 0 : -ENOMEM;
}

static inline void test_suite_exit(struct kunit_suite *suite)
{
	tensor_alloc_exit();
	/* warns if a charge is left */
	tensor_user_put(test_user);
}

/* Credentials of a task without CAP_IPC_LOCK, or NULL. */
static inline struct cred *test_unprivileged_cred(void)
{
	struct cred *cred = prepare_creds();

	if (cred)
		cap_lower(cred->cap_effective, CAP_IPC_LOCK);
	return cred;
}

static inline struct tensor_request test_request(unsigned long pages)
{
	return (struct tensor_request){
		.pages = pages,
		.node = NUMA_NO_NODE,
		.max_order = TENSOR_TOP_ORDER,
	};
}

/* A fixed node, so that the result does not depend on where the scheduler puts the test. */
static inline struct tensor_request test_request_node(unsigned long pages)
{
	struct tensor_request request = test_request(pages);

	request.node = first_node(node_states[N_MEMORY]);
	request.node_only = true;
	return request;
}

static inline void test_fill(const struct tensor_chunks *c, int value)
{
	unsigned long i;

	for (i = 0; i < c->pages; i++)
		memset(page_address(tensor_chunks_page(c, i)), value, PAGE_SIZE);
}

static inline bool test_page_is(struct page *page, int value)
{
	return !memchr_inv(page_address(page), value, PAGE_SIZE);
}

static inline bool test_all_bytes(const struct tensor_chunks *c, int value)
{
	unsigned long i;

	for (i = 0; i < c->pages; i++) {
		if (!test_page_is(tensor_chunks_page(c, i), value))
			return false;
	}
	return true;
}

#ifdef CONFIG_FAIL_PAGE_ALLOC
/* Whether fail_nth works in this kernel and is enabled in debugfs, see tests/kselftest/kunit. */
static inline bool test_can_inject(void)
{
	struct page *page;

	current->fail_nth = 1;
	page = alloc_pages(GFP_HIGHUSER | __GFP_COMP | __GFP_NOWARN, 1);
	current->fail_nth = 0;
	if (page)
		put_page(page);
	return !page;
}
#endif

#endif /* TENSOR_ALLOC_TEST_H */
