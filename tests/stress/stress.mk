# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Stress programs for the guest: they take minutes, and are no part of the selftests.
#
#   make stress [KERNEL=debug] [STRESS="kills unload"] [KILLS=10000] [CYCLES=1000]

STRESS     ?= kills unload
KILLS      ?= 10000
CYCLES     ?= 1000
STRESS_B   := $(B)/tests/stress
STRESS_ALL := $(patsubst tests/stress/%.c,$(STRESS_B)/%,$(wildcard tests/stress/*.c))

$(STRESS_B)/%: tests/stress/%.c tests/stress/stress.h tests/kselftest/device.h tests/kselftest/family.h \
		include/uapi/linux/tensor.h include/uapi/linux/tensor_netlink.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(WARN) -D_GNU_SOURCE -Iinclude/uapi $(shell pkg-config --cflags libnl-genl-3.0) \
		-o $@ $< $(shell pkg-config --libs libnl-genl-3.0)

# A debug kernel that remembers who allocated each page tells leaks to the page.
.PHONY: stress
stress: $(STRESS_ALL) | guest-deps
	@tests/vm/tally stress-$(KERNEL) tests/vm/run --kernel $(KERNEL) --no-load --smp 2 --mem 1G --timeout 3600 \
		--append page_owner=on $(VM_FLAGS) --env KILLS=$(KILLS) --env CYCLES=$(CYCLES) \
		--add $(STRESS_B):/t/kselftest --add tests/kselftest/suite -- suite $(STRESS)
