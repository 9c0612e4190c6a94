// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* doctor on who may use the device: its node, the group, the udev rule. */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NODE "/dev/tensor"

static const char mend_rule[] =
	"install 60-tensor.rules into /usr/lib/udev/rules.d, then udevadm control --reload && "
	"udevadm trigger /sys/class/misc/tensor";

/* What udev should have made, as the kernel tells it: "10:123". */
static bool is_the_device(const struct stat *st)
{
	char dev[32];
	unsigned major_nr, minor_nr;

	if (!look_text("/sys/class/misc/tensor/dev", dev, sizeof(dev)) ||
	    sscanf(dev, "%u:%u", &major_nr, &minor_nr) != 2)
		return true; /* nobody tells */
	return major(st->st_rdev) == major_nr && minor(st->st_rdev) == minor_nr;
}

static void check_open(struct list *findings)
{
	struct finding *f = finding_add(findings, "access");
	char full[512];

	if (access(look_path(NODE, full, sizeof(full)), R_OK | W_OK) == 0) {
		finding_says(f, VERDICT_OK, "you may open " NODE " for reading and writing");
		return;
	}
	f->status = STATUS_PERMISSION;
	finding_says(f, VERDICT_FAIL, "you may not open " NODE ": %s", strerror(errno));
	finding_mend(
		f,
		"join its group (see below), or sit at the machine: the udev rule's uaccess lets "
		"in who has the seat");
}

static void check_node(struct list *findings)
{
	struct finding *f;
	char full[512];
	struct stat st;
	struct group *g;

	if (!look_exists("/sys/module/tensor"))
		return;
	f = finding_add(findings, "node");
	if (stat(look_path(NODE, full, sizeof(full)), &st) < 0) {
		finding_says(f, VERDICT_FAIL, NODE ": %s", strerror(errno));
		finding_mend(
			f,
			"udevadm trigger /sys/class/misc/tensor; in a container, give it the device "
			"(--device " NODE ")");
		return;
	}
	if (!S_ISCHR(st.st_mode) || !is_the_device(&st)) {
		finding_says(f, VERDICT_FAIL, NODE " is not the module's device");
		finding_mend(f, "rm " NODE " && udevadm trigger /sys/class/misc/tensor");
		return;
	}
	g = getgrgid(st.st_gid);
	finding_says(f, VERDICT_OK, NODE " is there, group %s, mode %04o", g ? g->gr_name : "?",
		     st.st_mode & 07777);
	if (st.st_mode & 0006) {
		finding_says(f, VERDICT_WARN, NODE " is open to everybody (mode %04o)",
			     st.st_mode & 07777);
		finding_mend(f, "%s", mend_rule);
	}
	check_open(findings);
}

static bool is_listed(const struct group *g, const char *user)
{
	for (char **member = g->gr_mem; *member; member++)
		if (!strcmp(*member, user))
			return true;
	return false;
}

static bool is_active(gid_t gid)
{
	gid_t groups[256];
	int n = getgroups(256, groups);

	for (int i = 0; i < n; i++)
		if (groups[i] == gid)
			return true;
	return getegid() == gid;
}

static void check_group(struct list *findings)
{
	struct finding *f = finding_add(findings, "group");
	struct group *g = getgrnam("tensor");
	struct passwd *me = getpwuid(getuid());
	const char *user = me ? me->pw_name : "USER";

	if (!g) {
		finding_says(f, VERDICT_WARN, "there is no group tensor");
		finding_mend(f, "systemd-sysusers tensor.conf, or groupadd --system tensor");
	} else if (getuid() == 0) {
		finding_says(f, VERDICT_OK, "the group tensor is there; root needs none");
	} else if (is_active(g->gr_gid)) {
		finding_says(f, VERDICT_OK, "%s is in the group tensor", user);
	} else if (is_listed(g, user)) {
		finding_says(f, VERDICT_WARN,
			     "%s is in the group tensor, but this session began before", user);
		finding_mend(f, "log in again, or newgrp tensor");
	} else {
		finding_says(f, VERDICT_WARN, "%s is not in the group tensor", user);
		finding_mend(f, "usermod -aG tensor %s, then log in again", user);
	}
}

static void check_rule(struct list *findings)
{
	static const char *const places[] = { "/etc/udev/rules.d", "/run/udev/rules.d",
					      "/usr/lib/udev/rules.d", "/lib/udev/rules.d" };
	struct finding *f = finding_add(findings, "udev");
	char path[128];

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%s/60-tensor.rules", places[i]);
		if (look_exists(path)) {
			finding_says(f, VERDICT_OK, "%s sets group and mode of the node", path);
			return;
		}
	}
	finding_says(f, VERDICT_WARN, "no udev rule for " NODE ": only root can open it");
	finding_mend(f, "%s", mend_rule);
}

void doctor_access(struct list *findings)
{
	check_node(findings);
	check_group(findings);
	check_rule(findings);
}
