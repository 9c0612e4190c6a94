# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make deb             libtensor0, libtensor-dev, tensorstat and tensor-dkms, into build/deb/
#   make lint-deb        lintian over them
#   make test-package [SUITE=bookworm]    installs them in a clean chroot, boots what they brought, purges
#
# dpkg-buildpackage writes into the tree and needs debian/ at its top, so it works in a copy.

DEB      := $(B)/deb
DEB_TREE := $(DEB)/devtensor-$(VERSION)

.PHONY: deb lint-deb
deb:
	@packaging/install-deps build package
	@v=$$(dpkg-parsechangelog -l packaging/debian/changelog -S Version); [ "$$v" = $(VERSION) ] || { \
		echo "make deb: packaging/debian/changelog has version $$v, the Makefile $(VERSION): make them equal" >&2; exit 1; }
	$(Q)rm -rf $(DEB) && mkdir -p $(DEB_TREE)
	$(Q)tar -c --exclude=./$(B) --exclude=./.git --exclude='__pycache__' . | tar -x -C $(DEB_TREE)
	$(Q)cp -a packaging/debian $(DEB_TREE)/debian
	$(Q)cd $(DEB_TREE) && env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -b -us -uc -j$$(nproc)

# Any finding of lintian is a failure.
lint-deb:
	$(Q)lintian -I --fail-on error,warning,info --tag-display-limit 0 $(DEB)/*.changes

.PHONY: test-package
test-package: deb lint-deb
	@packaging/install-deps guest package
	@tests/vm/tally package-$(or $(SUITE),bookworm) tests/packaging/test-package $(or $(SUITE),bookworm)
