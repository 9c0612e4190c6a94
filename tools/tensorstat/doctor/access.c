// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* doctor: who may open the device. Device node, group, udev rule. */
#include "doctor/finding.h"

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

static const char fix_rule[] =
	"install 60-tensor.rules into /usr/lib/udev/rules.d, then udevadm control --reload && "
	"udevadm trigger /sys/class/misc/tensor";

/* Compares the node with the device number in sysfs, "10:123". */
static bool is_the_device(const struct stat *st)
{
	char dev[32];
	unsigned major_nr, minor_nr;

	if (!look_text("/sys/class/misc/tensor/dev", dev, sizeof(dev)) ||
	    sscanf(dev, "%u:%u", &major_nr, &minor_nr) != 2)
		return true; /* sysfs has no number to compare with */
	return major(st->st_rdev) == major_nr && minor(st->st_rdev) == minor_nr;
}

static void check_open(struct list *findings)
{
	struct finding *f = finding_add(findings, "access");
	char full[512];

	if (access(look_path(NODE, full, sizeof(full)), R_OK | W_OK) == 0) {
		finding_set(f, VERDICT_OK, "this user can open " NODE " for reading and writing");
		return;
	}
	f->status = STATUS_PERMISSION;
	finding_set(f, VERDICT_FAIL, "this user cannot open " NODE ": %s", strerror(errno));
	finding_fix(f,
		    "add the user to the group of the node (see below); users of a local seat get "
		    "access through uaccess in the udev rule");
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
		finding_set(f, VERDICT_FAIL, NODE ": %s", strerror(errno));
		finding_fix(
			f,
			"udevadm trigger /sys/class/misc/tensor; for a container, --device " NODE);
		return;
	}
	if (!S_ISCHR(st.st_mode) || !is_the_device(&st)) {
		finding_set(f, VERDICT_FAIL, NODE " is not the module's device");
		finding_fix(f, "rm " NODE " && udevadm trigger /sys/class/misc/tensor");
		return;
	}
	g = getgrgid(st.st_gid);
	finding_set(f, VERDICT_OK, NODE " is there, group %s, mode %04o", g ? g->gr_name : "?",
		    st.st_mode & 07777);
	if (st.st_mode & 0006) {
		finding_set(f, VERDICT_WARN, NODE " can be opened by all users (mode %04o)",
			    st.st_mode & 07777);
		finding_fix(f, "%s", fix_rule);
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
		finding_set(f, VERDICT_WARN, "the group tensor does not exist");
		finding_fix(f, "systemd-sysusers tensor.conf, or groupadd --system tensor");
	} else if (getuid() == 0) {
		finding_set(f, VERDICT_OK, "the group tensor exists; root needs no membership");
	} else if (is_active(g->gr_gid)) {
		finding_set(f, VERDICT_OK, "%s is in the group tensor", user);
	} else if (is_listed(g, user)) {
		finding_set(f, VERDICT_WARN,
			    "%s is in the group tensor, but this session started before that",
			    user);
		finding_fix(f, "log in again, or newgrp tensor");
	} else {
		finding_set(f, VERDICT_WARN, "%s is not in the group tensor", user);
		finding_fix(f, "usermod -aG tensor %s, then log in again", user);
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
			finding_set(f, VERDICT_OK, "%s sets group and mode of the node", path);
			return;
		}
	}
	finding_set(f, VERDICT_WARN, "no udev rule for " NODE ": only root can open it");
	finding_fix(f, "%s", fix_rule);
}

void doctor_access(struct list *findings)
{
	check_node(findings);
	check_group(findings);
	check_rule(findings);
}
