// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* doctor on the module: is it there, the right one, and would this kernel take it? */
#include "doctor.h"

#include "netlink.h"

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
	bool loaded = look_exists("/sys/module/tensor");
	char path[256];
	struct utsname name;

	if (loaded) {
		finding_says(f, VERDICT_OK, "tensor is loaded");
		return true;
	}
	f->status = STATUS_NO_MODULE;
	uname(&name);
	if (find_module_file(path, sizeof(path))) {
		finding_says(f, VERDICT_FAIL, "tensor is not loaded, but there is %s", path);
		finding_mend(f,
			     "modprobe tensor; at every boot: a line \"tensor\" in "
			     "/etc/modules-load.d/tensor.conf. If it is refused, dmesg says why");
	} else {
		finding_says(f, VERDICT_FAIL, "tensor is not loaded, nor built for %s",
			     name.release);
		finding_mend(
			f,
			"apt install tensor-dkms linux-headers-%s, or make kmod in the sources; "
			"until then libtensor uses memfds",
			name.release);
	}
	return false;
}

static void check_version(struct list *findings)
{
	struct finding *f = finding_add(findings, "version");
	char version[64];

	if (!look_text("/sys/module/tensor/version", version, sizeof(version)))
		finding_says(f, VERDICT_NOTE,
			     "the module does not say its version; tensorstat is %s",
			     TENSOR_RELEASE);
	else if (strcmp(version, TENSOR_RELEASE)) {
		finding_says(f, VERDICT_WARN, "the module is %s and tensorstat %s", version,
			     TENSOR_RELEASE);
		finding_mend(
			f,
			"load the module that came with it: rmmod tensor && modprobe tensor, when "
			"nobody has a buffer; dkms status tells which are built");
	} else {
		finding_says(f, VERDICT_OK, "module and tensorstat are %s", version);
	}
}

/* Only on this machine: there is no netlink in a folder. */
static void check_netlink(struct list *findings)
{
	struct finding *f;
	enum status status;

	if (getenv("TENSORSTAT_ROOT"))
		return;
	f = finding_add(findings, "netlink");
	status = netlink_open();
	if (!status) {
		finding_says(f, VERDICT_OK, "the family \"%s\" answers", TENSOR_GENL_NAME);
		return;
	}
	f->status = status;
	finding_says(f, VERDICT_FAIL, "the family \"%s\" does not answer", TENSOR_GENL_NAME);
	finding_mend(f, "another module of the same name may be loaded: modinfo tensor");
}

/* The last byte of the variable is its value; four bytes of attributes come before it. */
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
	bool strict;

	look_text("/sys/module/tensor/taint", taint, sizeof(taint));
	look_text("/sys/kernel/security/lockdown", lockdown, sizeof(lockdown));
	strict = secure_boot() || strstr(lockdown, "[integrity]") ||
		 strstr(lockdown, "[confidentiality]");
	if (loaded && strchr(taint, 'E'))
		finding_says(f, VERDICT_NOTE,
			     "the module is not signed by a key that this kernel knows; it "
			     "was loaded all the same");
	else if (loaded)
		finding_says(f, VERDICT_OK,
			     "the kernel takes the module as signed, or asks for no signature");
	else if (strict) {
		finding_says(f, VERDICT_WARN,
			     "Secure Boot or lockdown is on: the kernel loads signed "
			     "modules only");
		finding_mend(
			f,
			"mokutil --import /var/lib/dkms/mok.pub, reboot and enroll the key; DKMS "
			"signs with it from then on");
	} else {
		finding_says(f, VERDICT_OK, "Secure Boot is off: no signature is asked for");
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
