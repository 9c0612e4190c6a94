# SPDX-License-Identifier: GPL-2.0-only
#
#   make kmod [KDIR=/lib/modules/RELEASE/build] [C=1]
#
# Builds tensor.ko for one kernel into build/kmod/RELEASE/. Kbuild writes objects next to the sources,
# so it gets a folder of links to the sources. C=1 runs sparse. Warnings are errors here, but not in a
# DKMS build, which may use any compiler.

# The headers of the running kernel, otherwise the newest installed ones. Expanded once, and only by a
# rule that uses it.
KDIR ?= $(eval KDIR := $(or $(wildcard /lib/modules/$(shell uname -r)/build),$(shell \
	ls -dv /usr/src/linux-headers-*-cloud-amd64 2>/dev/null | tail -n 1)))$(KDIR)
# Not include/config/kernel.release, which differs from the release of Debian's 6.1.
KRELEASE = $(eval KRELEASE := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(KDIR)/include/generated/utsrelease.h 2>/dev/null))$(KRELEASE)
# Suffix of the folder of a build with other options; set by tests/vm/kernel.
KMOD_VARIANT ?=
KMOD_OUT = $(CURDIR)/$(B)/kmod/$(KRELEASE)$(addprefix -,$(KMOD_VARIANT))

KMOD_SRC := Kbuild $(wildcard kmod/*.[ch] kmod/*/*.[ch] include/uapi/linux/tensor*.h)

.PHONY: kmod
kmod:
	@test -n "$(KRELEASE)" || { echo "make kmod: no kernel headers in KDIR=$(KDIR)" \
		"(packaging/install-deps kmod installs some)" >&2; exit 1; }
	@mkdir -p $(addprefix $(KMOD_OUT)/,$(sort $(dir $(KMOD_SRC))))
	@for f in $(KMOD_SRC); do \
		[ $(KMOD_OUT)/$$f -ef $$f ] || ln -sfT $(CURDIR)/$$f $(KMOD_OUT)/$$f || exit 1; done
	+@$(MAKE) --no-print-directory -C $(KDIR) M=$(KMOD_OUT) KCFLAGS=-Werror modules
