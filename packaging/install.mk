# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make install [DESTDIR=] [PREFIX=/usr/local] [LIBDIR=] [SYSLIBDIR=/usr/lib] [SRCDIR=/usr/src]
#   make uninstall    with the same variables
#   make test-install-container [SUITE=bookworm]    installs and uninstalls as a user and as root in a clean chroot
#   make install-lib | install-dev | install-tools | install-system | install-dkms    parts of it
#
# A part is a list of MODE:SOURCE:FOLDER/NAME, where FOLDER is the name of a variable below. Paths may
# contain spaces: they reach packaging/install-files in the environment, never in a list of make.
# Other fragments may add to a part: INSTALL_dev += $(call into,0644,FILES,MANDIR/man3).
# Nothing is executed on the machine: docs/install.md has the commands that load the module.

empty :=
define newline

$(empty)
endef

# The shell commands below quote PREFIX with ', and $(shell) would join two lines.
quote := '
ifneq ($(findstring $(quote),$(PREFIX)),)
$(error PREFIX contains a quotation mark ('): $(PREFIX))
endif
# `make install PREFIX=$UNSET` would write to /.
ifneq ($(filter install% uninstall%,$(MAKECMDGOALS)),)
$(if $(strip $(PREFIX)),,$(error PREFIX is empty))
endif
ifneq ($(findstring $(newline),$(PREFIX)),)
$(error PREFIX contains a control character)
endif
# `make install PREFIX=/usr/./` is /usr. packaging/install-files does the same with all folders.
override PREFIX := $(or $(shell printf '%s' '$(PREFIX)' | sed -e 's|//*|/|g' -e ':again' -e 's|/\./|/|' -e 't again' \
	-e 's|/\.$$|/|' -e 's|/$$||'),/)
BINDIR       ?= $(PREFIX)/bin
INCLUDEDIR   ?= $(PREFIX)/include
DATADIR      ?= $(PREFIX)/share
MANDIR       ?= $(DATADIR)/man
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
CMAKEDIR     ?= $(LIBDIR)/cmake/tensor
# gdb looks in its own DATADIR/gdb/auto-load for the path of a library.
GDBDIR       ?= $(DATADIR)/gdb/auto-load$(LIBDIR)
COMPDIR      ?= $(DATADIR)/bash-completion/completions
ZSHCOMPDIR   ?= $(DATADIR)/zsh/site-functions
FISHCOMPDIR  ?= $(DATADIR)/fish/vendor_completions.d
# Read by udev, systemd, kmod and DKMS in these places only. `make install` writes there if PREFIX is
# a system prefix; `make install-system install-dkms` does with any.
SYSLIBDIR  ?= /usr/lib
SRCDIR     ?= /usr/src
DKMSDIR     = $(SRCDIR)/tensor-$(VERSION)

SYSTEM_PREFIX := $(shell case '$(PREFIX)' in (/usr | /usr/local) echo yes ;; (*) echo no ;; esac)
FILLED := $(B)/install

INSTALL_VARIABLES := DESTDIR PREFIX BINDIR LIBDIR INCLUDEDIR DATADIR MANDIR PKGCONFIGDIR CMAKEDIR GDBDIR COMPDIR ZSHCOMPDIR \
	FISHCOMPDIR SYSLIBDIR DKMSDIR SYSTEM_PREFIX VERSION SOVERSION V

# Entries of files that keep their names: $(call into,MODE,FILES,FOLDER).
into = $(foreach f,$(2),$(1):$(f):$(3)/$(notdir $(f)))
# The same with their path in this tree below the folder.
tree = $(foreach f,$(2),$(1):$(f):$(3)/$(f))
# Files of the tools that match a pattern, at any depth of two.
tool_files = $(wildcard tools/$(1) tools/*/$(1) tools/*/*/$(1))

INSTALL_lib += 0755:$(LIB_SO):LIBDIR/libtensor.so.$(VERSION) \
	link:libtensor.so.$(VERSION):LIBDIR/libtensor.so.$(SOVERSION) \
	$(call into,0755,$(ONEDNN_SO) $(CUDA_SO) $(MPI_SO) $(UCX_SO),LIBDIR)
INSTALL_dev += link:libtensor.so.$(SOVERSION):LIBDIR/libtensor.so \
	$(call into,0644,$(wildcard include/tensor/*.h include/tensor/*.hpp) $(GEN)/include/tensor/ops.h \
		$(GEN)/include/tensor/ops.hpp,INCLUDEDIR/tensor) \
	$(call into,0644,$(wildcard include/uapi/linux/*.h),INCLUDEDIR/linux) \
	fill:packaging/tensor.pc.in:PKGCONFIGDIR/tensor.pc \
	fill:packaging/tensorConfig.cmake.in:CMAKEDIR/tensorConfig.cmake \
	fill:packaging/tensorConfigVersion.cmake.in:CMAKEDIR/tensorConfigVersion.cmake \
	$(call into,0644,$(wildcard man/*.3),MANDIR/man3) 0644:tools/gdb/libtensor-gdb.py:GDBDIR/libtensor.so.$(VERSION)-gdb.py
INSTALL_tools += $(call into,0755,$(TENSORSTAT) $(TENSORRUN),BINDIR) \
	$(call into,0644,$(wildcard man/*.1),MANDIR/man1) \
	$(foreach f,$(call tool_files,*.bash),0644:$(f):COMPDIR/$(basename $(notdir $(f)))) \
	$(foreach f,$(call tool_files,*.zsh),0644:$(f):ZSHCOMPDIR/_$(patsubst _%,%,$(basename $(notdir $(f))))) \
	$(call into,0644,$(call tool_files,_tensorstat),ZSHCOMPDIR) \
	$(call into,0644,$(call tool_files,*.fish),FISHCOMPDIR)
INSTALL_system += $(call into,0644,$(wildcard udev/*.rules),SYSLIBDIR/udev/rules.d) \
	$(foreach d,sysusers.d modules-load.d modprobe.d,$(call into,0644,$(wildcard udev/$(d)/*.conf),SYSLIBDIR/$(d))) \
	$(call into,0644,$(wildcard man/*.4),MANDIR/man4) \
	$(call into,0644,$(wildcard man/*.7),MANDIR/man7)
INSTALL_dkms += fill:packaging/dkms.conf:DKMSDIR/dkms.conf $(call tree,0644,$(KMOD_SRC),DKMSDIR)

PARTS := lib dev tools system dkms
# What `make install` copies: with a user's prefix nothing that lies outside of it.
PARTS_HERE := lib dev tools $(if $(filter yes,$(SYSTEM_PREFIX)),system dkms)

# The lines of a part for packaging/install-files, and the files of build/ among its sources.
list_of = $(foreach e,$(INSTALL_$(1)),$(1) $(subst :, ,$(e))$(newline))
built_of = $(filter $(B)/%,$(foreach p,$(1),$(foreach e,$(INSTALL_$(p)),$(word 2,$(subst :, ,$(e))))))

# $(call install_parts,PARTS): the list is a file, since it may be longer than a command line.
install_parts = $(file >$(FILLED)/list-$(subst $(empty) $(empty),-,$(1)),$(foreach p,$(1),$(call list_of,$(p))))packaging/install-files \
	install $(FILLED)/list-$(subst $(empty) $(empty),-,$(1))

INSTALL_GOALS := install uninstall $(addprefix install-,$(PARTS)) $(addprefix uninstall-,$(PARTS))
.PHONY: $(INSTALL_GOALS)
$(foreach v,$(INSTALL_VARIABLES),$(eval $(INSTALL_GOALS): private export $(v) := $$($(v))))

$(FILLED):
	@mkdir -p $@

define part_rules
install-$(1): $$(call built_of,$(1)) | $(FILLED)
	@$$(call install_parts,$(1))

uninstall-$(1):
	@packaging/install-files uninstall $(1)
endef
$(foreach p,$(PARTS),$(eval $(call part_rules,$(p))))

install: all $(call built_of,$(PARTS_HERE)) | $(FILLED)
	@$(call install_parts,$(strip $(PARTS_HERE)))
ifneq ($(DESTDIR),)
else ifeq ($(SYSTEM_PREFIX),yes)
	@echo "next, as root: ldconfig; systemd-sysusers; dkms install tensor/$(VERSION) (docs/install.md)"
else
	@echo "not installed, since PREFIX is not /usr or /usr/local: the module's source, udev rule, group and options."
	@echo "  as root: make install-system install-dkms (docs/install.md)"
	@echo "next: export PKG_CONFIG_PATH='$(PKGCONFIGDIR)'; link with -Wl,-rpath,'$(LIBDIR)' (docs/install.md, Linking)"
endif

uninstall:
	@packaging/install-files uninstall $(PARTS)

.PHONY: test-install-container
test-install-container: all
	@command -v debootstrap >/dev/null || packaging/install-deps guest
	@tests/packaging/test-install '$(or $(SUITE),bookworm)' '$(LEVELS)'
