// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the limits, and the users who are charged. */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/user_namespace.h>

#include "test.h"

#define THREADS 4

static struct tensor_user *one, *other;
static const struct cred *saved_cred;
static struct cred *unprivileged;

static int limit_begin(struct kunit *test)
{
	unprivileged = test_unprivileged_cred();
	if (!unprivileged)
		return -ENOMEM;
	saved_cred = override_creds(unprivileged);
	one = tensor_user_get(KUIDT_INIT(70001));
	other = tensor_user_get(KUIDT_INIT(70002));
	return one && other ? 0 : -ENOMEM;
}

static void limit_end(struct kunit *test)
{
	tensor_param_limit = 0;
	tensor_param_user_limit = 0;
	KUNIT_EXPECT_EQ(test, tensor_limit_used(), 0);
	tensor_user_put(other);
	tensor_user_put(one);
	revert_creds(saved_cred);
	put_cred(unprivileged);
}

static void default_is_half_of_memory_and_an_eighth_for_a_user(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, tensor_limit_bytes(), (u64)totalram_pages() / 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, tensor_limit_user_bytes(), (u64)totalram_pages() / 8 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, tensor_limit_user_bytes() + 1), -EDQUOT);
}

static void cap_ipc_lock_exceeds_the_user_limit_only(struct kunit *test)
{
	u64 refused = tensor_limit_refused_user();

	tensor_param_limit = SZ_4M;
	tensor_param_user_limit = SZ_1M;
	KUNIT_EXPECT_FALSE(test, tensor_limit_exempt());
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, SZ_2M), -EDQUOT);
	revert_creds(saved_cred);
	KUNIT_EXPECT_TRUE(test, tensor_limit_exempt());
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, SZ_2M), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&one->used), SZ_2M);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, SZ_2M + 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, U64_MAX), -EDQUOT);
	override_creds(unprivileged);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(other, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, tensor_limit_refused_user() - refused, 3);
	tensor_limit_uncharge(one, SZ_2M);
	tensor_limit_uncharge(other, SZ_1M);
}

static kuid_t charged_in(unsigned int uid, struct user_namespace *ns)
{
	const struct cred cred = { .euid = KUIDT_INIT(uid), .user_ns = ns };

	return tensor_user_charged(&cred);
}

static void expect_charged(struct kunit *test, unsigned int uid, struct user_namespace *ns,
			   unsigned int want_uid)
{
	KUNIT_EXPECT_EQ(test, __kuid_val(charged_in(uid, ns)), want_uid);
}

/* Otherwise every mapped sub-uid would have a limit of its own. */
static void namespace_owner_is_charged_for_sub_uids(struct kunit *test)
{
	struct user_namespace *ns = kunit_kcalloc(test, 3, sizeof(*ns), GFP_KERNEL);
	struct user_namespace *outer = ns, *middle = ns + 1, *inner = ns + 2;

	KUNIT_ASSERT_NOT_NULL(test, ns);
	outer->parent = &init_user_ns;
	middle->parent = outer;
	inner->parent = middle;
	expect_charged(test, 1000, &init_user_ns, 1000);
	expect_charged(test, 0, &init_user_ns, 0);

	/* made by user 1000, who makes the inner ones as a sub-uid */
	outer->owner = KUIDT_INIT(1000);
	middle->owner = KUIDT_INIT(100000);
	inner->owner = KUIDT_INIT(100123);
	expect_charged(test, 100001, outer, 1000);
	expect_charged(test, 1000, outer, 1000);
	expect_charged(test, 100002, middle, 1000);
	expect_charged(test, 100003, inner, 1000);

	/* a container of the administrator: its users are charged themselves */
	outer->owner = GLOBAL_ROOT_UID;
	expect_charged(test, 200001, outer, 200001);
	expect_charged(test, 200002, middle, 100000);
	expect_charged(test, 200003, inner, 100000);
}

static void limit_admits_exactly_its_bytes(struct kunit *test)
{
	u64 refused = tensor_limit_refused();

	tensor_param_limit = SZ_1M;
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, SZ_1M - 1), 0);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, 2), -EDQUOT);
	KUNIT_EXPECT_EQ(test, tensor_limit_used(), SZ_1M - 1);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, 1), 0);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(other, 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, atomic64_read(&other->used), 0);
	KUNIT_EXPECT_EQ(test, tensor_limit_refused() - refused, 2);
	tensor_limit_uncharge(one, SZ_1M);
	KUNIT_EXPECT_EQ(test, atomic64_read(&one->used), 0);
}

static void limit_of_one_user_does_not_affect_another(struct kunit *test)
{
	u64 refused = tensor_limit_refused(), mine = tensor_limit_refused_user();

	tensor_param_limit = SZ_4M;
	tensor_param_user_limit = SZ_1M;
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(other, SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, tensor_limit_used(), SZ_2M);
	KUNIT_EXPECT_EQ(test, tensor_limit_refused_user() - mine, 1);
	KUNIT_EXPECT_EQ(test, tensor_limit_refused() - refused, 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&one->refused), 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&other->refused), 0);
	tensor_limit_uncharge(one, SZ_1M);
	tensor_limit_uncharge(other, SZ_1M);
}

static void lowered_limit_refuses_until_enough_is_freed(struct kunit *test)
{
	tensor_param_user_limit = SZ_4M;
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, SZ_2M), 0);
	tensor_param_limit = SZ_1M;
	KUNIT_EXPECT_EQ(test, tensor_limit_used(), SZ_2M);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, 1), -EDQUOT);
	tensor_limit_uncharge(one, SZ_1M);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, 1), -EDQUOT);
	tensor_limit_uncharge(one, SZ_1M);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, SZ_1M), 0);
	tensor_limit_uncharge(one, SZ_1M);
}

static void sums_do_not_overflow(struct kunit *test)
{
	static const u64 many[] = { U64_MAX, (u64)S64_MAX + 1, U64_MAX - SZ_1M + 1 };
	int i;

	tensor_param_user_limit = U64_MAX;
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, SZ_1M), 0);
	for (i = 0; i < ARRAY_SIZE(many); i++) {
		tensor_param_limit = i & 1 ? U64_MAX : 0;
		KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, many[i]), -EDQUOT);
	}
	tensor_param_limit = U64_MAX;
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, S64_MAX), -EDQUOT);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(one, S64_MAX - SZ_1M), 0);
	KUNIT_EXPECT_EQ(test, tensor_limit_charge(other, 1), -EDQUOT);
	tensor_limit_uncharge(one, S64_MAX);
}

struct racer {
	struct completion done;
	struct tensor_user *user;
	int charged;
	bool exceeded;
};

static int race(void *arg)
{
	struct racer *r = arg;
	const struct cred *old = override_creds(unprivileged);
	int i;

	for (i = 0; i < 20000; i++) {
		if (!tensor_limit_charge(r->user, SZ_1M))
			r->charged++;
		if (tensor_limit_used() > tensor_limit_bytes() ||
		    atomic64_read(&r->user->used) > tensor_limit_user_bytes())
			r->exceeded = true;
		/*
		 * return every other charge, so that the limit is reached while all threads are
		 * running
		 */
		if (r->charged & 1) {
			tensor_limit_uncharge(r->user, SZ_1M);
			r->charged--;
		} else if (i % 1000) {
			cond_resched();
		}
	}
	revert_creds(old);
	complete(&r->done);
	return 0;
}

/* All threads charge until the limit refuses: together exactly as much as the limit. */
static int charge_until_refused(void *arg)
{
	struct racer *r = arg;

	while (!tensor_limit_charge(r->user, SZ_1M))
		r->charged++;
	complete(&r->done);
	return 0;
}

static int run_all(struct kunit *test, int (*work)(void *), struct racer *racers)
{
	int i, sum = 0;

	for (i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){ .user = i & 1 ? one : other };
		init_completion(&racers[i].done);
		KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(work, &racers[i], "tensor-race")));
	}
	for (i = 0; i < THREADS; i++) {
		wait_for_completion(&racers[i].done);
		KUNIT_EXPECT_FALSE(test, racers[i].exceeded);
		sum += racers[i].charged;
	}
	return sum;
}

static void racing_charges_never_exceed_the_limit(struct kunit *test)
{
	struct racer *racers = kunit_kzalloc(test, THREADS * sizeof(*racers), GFP_KERNEL);
	int i, sum;

	KUNIT_ASSERT_NOT_NULL(test, racers);
	tensor_param_limit = 1000ULL * SZ_1M;
	sum = run_all(test, charge_until_refused, racers);
	KUNIT_EXPECT_EQ(test, sum, 1000);
	KUNIT_EXPECT_EQ(test, tensor_limit_used(), 1000ULL * SZ_1M);
	for (i = 0; i < THREADS; i++)
		tensor_limit_uncharge(racers[i].user, (u64)racers[i].charged * SZ_1M);
	tensor_param_limit = 3 * SZ_1M;
	tensor_param_user_limit = 2 * SZ_1M;
	run_all(test, race, racers);
	for (i = 0; i < THREADS; i++)
		tensor_limit_uncharge(racers[i].user, (u64)racers[i].charged * SZ_1M);
	KUNIT_EXPECT_EQ(test, atomic64_read(&one->used), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&other->used), 0);
}

static void user_is_found_again_and_freed(struct kunit *test)
{
	struct tensor_user *again = tensor_user_get(KUIDT_INIT(70001));
	struct tensor_user *third;

	KUNIT_EXPECT_PTR_EQ(test, again, one);
	KUNIT_EXPECT_EQ(test, refcount_read(&one->ref), 2);
	tensor_user_put(again);
	third = tensor_user_get(KUIDT_INIT(70003));
	KUNIT_ASSERT_NOT_NULL(test, third);
	KUNIT_EXPECT_EQ(test, refcount_read(&third->ref), 1);
	tensor_user_put(third);
	KUNIT_EXPECT_PTR_EQ(test, tensor_user_next(70003), NULL);
}

static void users_are_listed_in_order(struct kunit *test)
{
	struct tensor_user *user;
	unsigned long from = 0;
	u32 last = 0;
	int n = 0;

	while ((user = tensor_user_next(from))) {
		KUNIT_EXPECT_GE(test, __kuid_val(user->uid), from);
		last = __kuid_val(user->uid);
		from = (unsigned long)last + 1;
		tensor_user_put(user);
		n++;
	}
	/* the third is the user of all suites */
	KUNIT_EXPECT_EQ(test, n, 3);
	KUNIT_EXPECT_EQ(test, last, 70002);
	KUNIT_EXPECT_EQ(test, refcount_read(&one->ref), 1);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(default_is_half_of_memory_and_an_eighth_for_a_user),
	KUNIT_CASE(cap_ipc_lock_exceeds_the_user_limit_only),
	KUNIT_CASE(namespace_owner_is_charged_for_sub_uids),
	KUNIT_CASE(limit_admits_exactly_its_bytes),
	KUNIT_CASE(limit_of_one_user_does_not_affect_another),
	KUNIT_CASE(lowered_limit_refuses_until_enough_is_freed),
	KUNIT_CASE(sums_do_not_overflow),
	KUNIT_CASE(racing_charges_never_exceed_the_limit),
	KUNIT_CASE(user_is_found_again_and_freed),
	KUNIT_CASE(users_are_listed_in_order),
	{},
};

static struct kunit_suite suite = {
	.name = "tensor_limit",
	TEST_CASES_INIT,
	.init = limit_begin,
	.exit = limit_end,
	.test_cases = cases,
};

kunit_test_suite(suite);
