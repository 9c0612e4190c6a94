# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Kernel selftests: programs for the guest, one per topic. They use the kernel's harness, which is
# fetched from Debian's linux-source package and is not in the tree. Its time limit of 30 s per test is
# too short for an emulated machine on a busy host, so it is raised.

KST_B     := $(B)/tests/kselftest
KST_INC   := $(B)/tests/include
# One folder per topic; include/ has the helpers. All programs are built into one folder, so that the
# suite and KST= name them without the topic.
KST_SRC   := $(wildcard tests/kselftest/*/*.c)
KST_H     := $(wildcard tests/kselftest/*/*.h) include/uapi/linux/tensor.h include/uapi/linux/tensor_netlink.h
KST_NAMES := $(basename $(notdir $(KST_SRC)))
KST_BINS  := $(addprefix $(KST_B)/,$(KST_NAMES))

$(KST_INC)/kselftest_harness.h: tests/vm/kernel
	@mkdir -p $(@D)
	$(call say,FETCH,$@)
	$(Q)d=$$(tests/vm/kernel harness) && cp $$d/kselftest.h $(@D)/ && \
		sed 's/TEST_TIMEOUT_DEFAULT 30/TEST_TIMEOUT_DEFAULT 150/' $$d/kselftest_harness.h >$@

$(foreach s,$(KST_SRC),$(eval $(KST_B)/$(basename $(notdir $(s))): $(s)))

# The harness causes warnings with the flags of this tree, so it is included as a system header.
$(KST_BINS): $(KST_H) $(KST_INC)/kselftest_harness.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(WARN) -Wno-missing-prototypes $(KST_FLAGS) -D_GNU_SOURCE -Iinclude/uapi -isystem $(KST_INC) -o $@ \
		$(filter %.c,$^) $(KST_LIBS)

$(addprefix $(KST_B)/,race seal_race seal_fails revoke_race advise_race event event_client event_gone failnth_tables handles \
	import_race sync_deadline): KST_LIBS = -pthread
KST_NL := $(addprefix $(KST_B)/,neighbour netlink netlink_ask netlink_event netlink_list)
$(KST_NL): KST_LIBS = $(shell pkg-config --libs libnl-genl-3.0) -pthread
$(KST_NL): KST_FLAGS = $(shell pkg-config --cflags libnl-genl-3.0)
$(addprefix $(KST_B)/,dmabuf exporter failnth_devices handles import import_hostile import_race mapping_rights mapping_uffd memfd payer pinmem \
	reply rights seal_fails sync sync_deadline vgem vivid vivid_rights): KST_FLAGS = $(shell pkg-config --cflags libdrm)

# A 32-bit program; linked statically because the guest has no 32-bit libraries.
$(KST_B)/compat: KST_FLAGS = -m32 -static -D_FILE_OFFSET_BITS=64

.PHONY: kselftest
kselftest: $(KST_BINS) $(TENSORSTAT)

# KUnit tests of kmod/alloc: a separate module, built for kernels with KUnit.
.PHONY: test-kunit
test-kunit: guest-deps
	@ko=$$(tests/vm/kernel module debug) && tests/vm/tally kunit tests/vm/run --kernel debug --no-module \
		--numa 2 --smp 2 --timeout 600 --append cma=32M $(VM_FLAGS) \
		--add $$(dirname $$ko)/tensor_alloc_test.ko --add tests/kselftest/kunit -- kunit
