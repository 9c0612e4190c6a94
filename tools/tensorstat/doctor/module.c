// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* doctor: the module. Whether it is loaded, its version, netlink family and signature. */
#include "doctor/finding.h"

#include "backend/netlink.h"

#include <fcntl.h>
#include <linux/tensor_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool find_module_file(char *path, size_t room)
{
	static const char *const places[] = { "updates/dkms",	     "updates", "extra",
					      "kernel/drivers/misc", "misc",	"" };
	static const char *const ends[] = { "", ".xz", ".zst", ".gz" };
	struct utsname name;

	uname(&name);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		for (size_t k = 0; k < sizeof(ends) / sizeof(*ends); k++) {
			snprintf(path, room, "/lib/modules/%s/%s/tensor.ko%s", name.release,
				 places[i], ends[k]);
			if (look_exists(path))
				return true;
		}
	return false;
}

static bool check_loaded(struct list *findings)
{
	struct finding *f = finding_add(findings, "module");
	bool loaded = look_exists(MODULE_FOLDER);
	char path[256];
	struct utsname name;

	if (loaded) {
		finding_set(f, VERDICT_OK, "tensor is loaded");
		return true;
	}
	f->status = STATUS_NO_MODULE;
	uname(&name);
	if (find_module_file(path, sizeof(path))) {
		finding_set(f, VERDICT_FAIL, "tensor is not loaded; its file is %s", path);
		finding_fix(f,
			    "modprobe tensor; a line \"tensor\" in /etc/modules-load.d/tensor.conf "
			    "loads it at boot. If that fails, see dmesg");
	} else {
		finding_set(f, VERDICT_FAIL, "tensor is not loaded and not built for %s",
			    name.release);
		finding_fix(
			f,
			"apt install tensor-dkms linux-headers-%s, or make kmod in the sources; "
			"libtensor uses memfds without it",
			name.release);
	}
	return false;
}

static void check_version(struct list *findings)
{
	struct finding *f = finding_add(findings, "version");
	char version[64];

	if (!look_text(MODULE_FOLDER "/version", version, sizeof(version)))
		finding_set(f, VERDICT_NOTE, "the module has no version; tensorstat is %s",
			    TENSOR_RELEASE);
	else if (strcmp(version, TENSOR_RELEASE)) {
		finding_set(f, VERDICT_WARN, "the module is %s and tensorstat %s", version,
			    TENSOR_RELEASE);
		finding_fix(f,
			    "load the module of the same release while no buffer is in use: rmmod "
			    "tensor && modprobe tensor; dkms status lists those that are built");
	} else {
		finding_set(f, VERDICT_OK, "module and tensorstat are %s", version);
	}
}

/* Netlink is that of this machine, also if TENSORSTAT_ROOT is set: skip the check. */
static void check_netlink(struct list *findings)
{
	struct finding *f;
	enum status status;

	if (look_elsewhere())
		return;
	f = finding_add(findings, "netlink");
	status = netlink_open();
	if (!status) {
		finding_set(f, VERDICT_OK, "the family \"%s\" answers", TENSOR_GENL_NAME);
		return;
	}
	f->status = status;
	finding_set(f, VERDICT_FAIL, "the family \"%s\" does not answer", TENSOR_GENL_NAME);
	finding_fix(f, "another module of the same name may be loaded: modinfo tensor");
}

/* The variable has four bytes of attributes and one byte with its value. */
static bool secure_boot(void)
{
	static const char path[] =
		"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
	char full[512];
	unsigned char value[5] = { 0 };
	int fd = open(look_path(path, full, sizeof(full)), O_RDONLY | O_CLOEXEC);
	bool on = fd >= 0 && read(fd, value, sizeof(value)) == sizeof(value) && value[4] == 1;

	if (fd >= 0)
		close(fd);
	return on;
}

static void check_signature(struct list *findings, bool loaded)
{
	struct finding *f = finding_add(findings, "signature");
	char taint[32] = "", lockdown[128] = "";
	bool required;

	look_text(MODULE_FOLDER "/taint", taint, sizeof(taint));
	look_text("/sys/kernel/security/lockdown", lockdown, sizeof(lockdown));
	required = secure_boot() || strstr(lockdown, "[integrity]") ||
		   strstr(lockdown, "[confidentiality]");
	if (loaded && strchr(taint, 'E'))
		finding_set(f, VERDICT_NOTE,
			    "the module is loaded although its signature is missing or "
			    "unknown to this kernel");
	else if (loaded)
		finding_set(f, VERDICT_OK, "the kernel accepts the signature or requires none");
	else if (required) {
		finding_set(f, VERDICT_WARN,
			    "Secure Boot or lockdown is on: the kernel loads signed "
			    "modules only");
		finding_fix(
			f,
			"mokutil --import /var/lib/dkms/mok.pub, reboot and enroll the key, with "
			"which DKMS signs the modules");
	} else {
		finding_set(f, VERDICT_OK, "Secure Boot is off: no signature is required");
	}
}

void doctor_module(struct list *findings)
{
	bool loaded = check_loaded(findings);

	if (loaded) {
		check_version(findings);
		check_netlink(findings);
	}
	check_signature(findings, loaded);
}
