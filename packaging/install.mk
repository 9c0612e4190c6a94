# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# make install [DESTDIR=] [PREFIX=/usr/local]: library, headers, pkg-config file, tensorstat, man
# pages, and what the module needs in /etc's stead (udev, sysusers, modules-load, modprobe).

INCLUDEDIR := $(PREFIX)/include
MANDIR     := $(PREFIX)/share/man
# Where udev and systemd look; not under PREFIX.
SYSLIBDIR  ?= /usr/lib
DATA       := install -m 0644 -D

.PHONY: install
install: all
	install -m 0755 -D $(LIB_SO) $(DESTDIR)$(LIBDIR)/libtensor.so.$(VERSION)
	ln -sf libtensor.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libtensor.so.$(SOVERSION)
	ln -sf libtensor.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libtensor.so
	for p in $(wildcard $(B)/libtensor_cuda.so.$(SOVERSION)); do \
		install -m 0755 -D $$p $(DESTDIR)$(LIBDIR)/libtensor_cuda.so.$(SOVERSION); done
	for h in include/tensor/*.h $(GEN)/include/tensor/ops.h; do \
		$(DATA) $$h $(DESTDIR)$(INCLUDEDIR)/tensor/$${h##*/}; done
	for h in include/uapi/linux/*.h; do $(DATA) $$h $(DESTDIR)$(INCLUDEDIR)/linux/$${h##*/}; done
	mkdir -p $(DESTDIR)$(LIBDIR)/pkgconfig
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		packaging/tensor.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/tensor.pc
	install -m 0755 -D $(B)/bin/tensorstat $(DESTDIR)$(PREFIX)/bin/tensorstat
	for m in man/*.[1-9]; do $(DATA) $$m $(DESTDIR)$(MANDIR)/man$${m##*.}/$${m##*/}; done
	$(DATA) udev/60-tensor.rules $(DESTDIR)$(SYSLIBDIR)/udev/rules.d/60-tensor.rules
	$(DATA) udev/sysusers.d/tensor.conf $(DESTDIR)$(SYSLIBDIR)/sysusers.d/tensor.conf
	$(DATA) udev/modules-load.d/tensor.conf $(DESTDIR)$(SYSLIBDIR)/modules-load.d/tensor.conf
	$(DATA) udev/modprobe.d/tensor.conf $(DESTDIR)$(SYSLIBDIR)/modprobe.d/tensor.conf
