# SPDX-License-Identifier: GPL-2.0-only
#
#   make kmod [KDIR=/lib/modules/RELEASE/build] [C=1]
#
# Builds tensor.ko for one kernel into build/kmod/RELEASE/. Kbuild writes objects beside the sources
# it is given, so it is given a folder of links to ours. C=1 runs sparse over it. A warning is an
# error here; where DKMS builds with a compiler that we have not met, it is not.

# The running kernel's headers, else the newest that are installed. Asked for once, and only by a
# rule that wants them.
KDIR ?= $(eval KDIR := $(or $(wildcard /lib/modules/$(shell uname -r)/build),$(shell \
	ls -dv /usr/src/linux-headers-*-cloud-amd64 2>/dev/null | tail -n 1)))$(KDIR)
# include/config/kernel.release is not what Debian's 6.1 calls itself.
KRELEASE = $(eval KRELEASE := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(KDIR)/include/generated/utsrelease.h 2>/dev/null))$(KRELEASE)
# Builds with other options stand beside the plain one: tests/vm/kernel names them.
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
