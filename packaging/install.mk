# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make install [DESTDIR=] [PREFIX=/usr/local] [LIBDIR=] [SYSLIBDIR=/usr/lib] [SRCDIR=/usr/src]
#   make uninstall    with the same variables
#   make install-lib | install-dev | install-tools | install-system | install-dkms    parts of it
#
# Each part is a list of MODE:SOURCE:DESTINATION; installing and removing go by the same list.
# Nothing is run on the machine: docs/install.md says what loads the module and makes the group.

INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
COMPDIR    ?= $(PREFIX)/share/bash-completion/completions
# Where udev, systemd, kmod and DKMS look; not under PREFIX.
SYSLIBDIR  ?= /usr/lib
SRCDIR     ?= /usr/src
DKMSDIR    := $(SRCDIR)/tensor-$(VERSION)
FILLED     := $(B)/install

# A part's entries: mode, files, folder that takes them by their own names.
into = $(foreach f,$(2),$(1):$(f):$(3)/$(notdir $(f)))
# The same for files that keep their path below the folder.
tree = $(foreach f,$(2),$(1):$(f):$(3)/$(f))

INSTALL_lib = 0755:$(LIB_SO):$(LIBDIR)/libtensor.so.$(VERSION) \
	$(call into,0755,$(wildcard $(foreach p,cuda onednn,$(B)/libtensor_$(p).so.$(SOVERSION))),$(LIBDIR))
INSTALL_dev = $(call into,0644,$(wildcard include/tensor/*.h) $(GEN)/include/tensor/ops.h,$(INCLUDEDIR)/tensor) \
	$(call into,0644,$(wildcard include/uapi/linux/*.h),$(INCLUDEDIR)/linux) \
	$(call into,0644,$(FILLED)/tensor.pc,$(LIBDIR)/pkgconfig) \
	$(call into,0644,$(wildcard man/*.3),$(MANDIR)/man3)
INSTALL_tools = $(call into,0755,$(TENSORSTAT),$(PREFIX)/bin) \
	$(call into,0644,$(wildcard man/*.1),$(MANDIR)/man1) \
	$(foreach f,$(wildcard tools/*/completions/*.bash),0644:$(f):$(COMPDIR)/$(basename $(notdir $(f))))
INSTALL_system = $(call into,0644,udev/60-tensor.rules,$(SYSLIBDIR)/udev/rules.d) \
	$(foreach d,sysusers.d modules-load.d modprobe.d,\
		$(call into,0644,udev/$(d)/tensor.conf,$(SYSLIBDIR)/$(d))) \
	$(call into,0644,$(wildcard man/*.4),$(MANDIR)/man4) \
	$(call into,0644,$(wildcard man/*.7),$(MANDIR)/man7)
INSTALL_dkms = $(call into,0644,$(FILLED)/dkms.conf,$(DKMSDIR)) $(call tree,0644,$(KMOD_SRC),$(DKMSDIR))

LINKS_lib = libtensor.so.$(VERSION):$(LIBDIR)/libtensor.so.$(SOVERSION)
LINKS_dev = libtensor.so.$(SOVERSION):$(LIBDIR)/libtensor.so

PARTS := lib dev tools system dkms

# Always made again: they hold PREFIX and VERSION of this call.
.PHONY: $(FILLED)/tensor.pc $(FILLED)/dkms.conf
$(FILLED)/tensor.pc: packaging/tensor.pc.in
	@mkdir -p $(@D)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' $< >$@

$(FILLED)/dkms.conf: packaging/dkms.conf
	@mkdir -p $(@D)
	$(Q)sed -e 's|#MODULE_VERSION#|$(VERSION)|' $< >$@

# What has to be there before a part is copied: only the built files among its sources.
built = $(filter $(B)/%,$(foreach e,$(INSTALL_$(1)),$(word 2,$(subst :, ,$(e)))))

define part
.PHONY: install-$(1) uninstall-$(1)
install-$(1): $(call built,$(1))
	$$(Q)for e in $$(INSTALL_$(1)); do from=$$$${e#*:}; install -m "$$$${e%%:*}" -D \
		"$$$${from%:*}" "$$(DESTDIR)$$$${from#*:}" || exit 1; done
	$$(Q)for e in $$(LINKS_$(1)); do ln -sfn "$$$${e%%:*}" "$$(DESTDIR)$$$${e#*:}" || exit 1; done

uninstall-$(1):
	$$(Q)for e in $$(INSTALL_$(1)) $$(LINKS_$(1)); do rm -f "$$(DESTDIR)$$$${e##*:}"; done
endef
$(foreach p,$(PARTS),$(eval $(call part,$(p))))

.PHONY: install uninstall
install: all $(addprefix install-,$(PARTS))
	@echo "installed; docs/install.md: the module (dkms install tensor/$(VERSION)) and the group"

# Folders that are ours alone, when they are empty: somebody may keep a note in them.
uninstall: $(addprefix uninstall-,$(PARTS))
	$(Q)for d in $(INCLUDEDIR)/tensor $(sort $(dir $(addprefix $(DKMSDIR)/,$(KMOD_SRC)))); do \
		d="$(DESTDIR)$$d"; [ ! -d "$$d" ] || find "$$d" -depth -type d -empty -delete; done
