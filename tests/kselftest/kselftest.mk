# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Kernel selftests: programs for the guest, one a topic, with the kernel's own harness, which comes
# from Debian's linux-source package and is not kept here. The 30 s that it gives a test are a real
# machine's; an emulated one that shares its processor needs more.

KST_B     := $(B)/tests/kselftest
KST_INC   := $(B)/tests/include
KST_NAMES := $(patsubst tests/kselftest/%.c,%,$(wildcard tests/kselftest/*.c))
KST_BINS  := $(addprefix $(KST_B)/,$(KST_NAMES))

$(KST_INC)/kselftest_harness.h: tests/vm/kernel
	@mkdir -p $(@D)
	$(call say,FETCH,$@)
	$(Q)d=$$(tests/vm/kernel harness) && cp $$d/kselftest.h $(@D)/ && \
		sed 's/TEST_TIMEOUT_DEFAULT 30/TEST_TIMEOUT_DEFAULT 150/' $$d/kselftest_harness.h >$@

# The harness is not written for our warnings.
$(KST_B)/%: tests/kselftest/%.c $(wildcard tests/kselftest/*.h) include/uapi/linux/tensor.h \
		include/uapi/linux/tensor_netlink.h $(KST_INC)/kselftest_harness.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(WARN) -Wno-missing-prototypes $(KST_FLAGS) -D_GNU_SOURCE -Iinclude/uapi -isystem $(KST_INC) -o $@ $< $(KST_LIBS)

$(addprefix $(KST_B)/,race seal seal_fails revoke advise event event_client event_gone failnth_tables handles \
	import_race sync_deadline): KST_LIBS = -pthread
KST_NL := $(addprefix $(KST_B)/,neighbour netlink netlink_ask netlink_event netlink_list)
$(KST_NL): tests/kselftest/family.h
$(KST_NL): KST_LIBS = $(shell pkg-config --libs libnl-genl-3.0) -pthread
$(KST_NL): KST_FLAGS = $(shell pkg-config --cflags libnl-genl-3.0)
KST_DMABUF := $(addprefix $(KST_B)/,dmabuf handles import import_race mapping_rights mapping_uffd memfd payer pinmem \
	reply rights seal_fails sync sync_deadline vgem vivid vivid_rights)
$(KST_DMABUF): tests/kselftest/dmabuf.h
$(KST_DMABUF): KST_FLAGS = $(shell pkg-config --cflags libdrm)

$(addprefix $(KST_B)/,failnth failnth_contract failnth_devices): tests/kselftest/failnth.h
$(KST_B)/failnth_devices: tests/kselftest/dmabuf.h
$(KST_B)/failnth_devices: KST_FLAGS = $(shell pkg-config --cflags libdrm)

# A 32-bit program, which brings its libraries along: the guest has none of them.
$(KST_B)/compat: KST_FLAGS = -m32 -static -D_FILE_OFFSET_BITS=64

.PHONY: kselftest
kselftest: $(KST_BINS) $(TENSORSTAT)

# KUnit tests of kmod/alloc: a module of its own, built where the kernel has KUnit.
.PHONY: test-kunit
test-kunit: guest-deps
	@ko=$$(tests/vm/kernel module debug) && tests/vm/tally kunit tests/vm/run --kernel debug --no-module \
		--numa 2 --smp 2 --timeout 600 --append cma=32M $(VM_FLAGS) \
		--add $$(dirname $$ko)/tensor_alloc_test.ko --add tests/kselftest/kunit -- kunit
