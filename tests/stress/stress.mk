# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Stress programs for the guest. They take minutes, so the selftests do not include them.
#
#   make stress [KERNEL=debug] [STRESS="kills unload"] [KILLS=10000] [CYCLES=1000]
#   make test-lifetimes [KERNEL=debug] [LIFETIMES=120 | LIFETIMES="0o 0a0 ..."]
#   make test-transitions [KERNEL=debug] [TRANSITIONS=60]
#   make test-scale [KERNEL=6.1] [HANDLES=100000]

STRESS     ?= kills unload
# The short runs of a suite.
STRESS_FEW := kills unload lifetimes transitions
KILLS      ?= 10000
CYCLES     ?= 1000
LIFETIMES  ?= 120
TRANSITIONS ?= 60
HANDLES    ?= 100000
STRESS_B   := $(B)/tests/stress
STRESS_ALL := $(patsubst tests/stress/%.c,$(STRESS_B)/%,$(wildcard tests/stress/*.c)) \
	$(patsubst tests/stress/%/main.c,$(STRESS_B)/%,$(wildcard tests/stress/*/main.c))
STRESS_H   := tests/stress/stress.h $(addprefix tests/kselftest/include/,device.h machine.h dmabuf.h family.h) \
	include/uapi/linux/tensor.h include/uapi/linux/tensor_netlink.h
STRESS_CC   = $(CC) $(CFLAGS) $(WARN) -D_GNU_SOURCE -Iinclude/uapi $(shell pkg-config --cflags libnl-genl-3.0 libdrm) \
	-o $@ $(filter %.c,$^) $(shell pkg-config --libs libnl-genl-3.0) -pthread

$(STRESS_B)/%: tests/stress/%.c $(STRESS_H)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(STRESS_CC)

# Programs of several files have a folder each.
$(STRESS_B)/lifetimes: $(wildcard tests/stress/lifetimes/*.[ch])
$(STRESS_B)/transitions: $(wildcard tests/stress/transitions/*.[ch])
$(STRESS_B)/%: tests/stress/%/main.c $(STRESS_H)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(STRESS_CC)

# A debug kernel with page_owner attributes leaked pages.
.PHONY: stress
stress: $(STRESS_ALL) | guest-deps
	@tests/vm/tally stress-$(KERNEL) tests/vm/run --kernel $(KERNEL) --no-load --smp 2 --mem 1G --timeout 3600 \
		--append page_owner=on $(VM_FLAGS) --env KILLS=$(KILLS) --env CYCLES=$(CYCLES) \
		--add $(STRESS_B):/t/kselftest --add tests/kselftest/suite -- suite $(STRESS)

# One program as a suite; $(1): its name, $(2): the kernel if KERNEL is not set, $(3): flags.
STRESS_ONE = tests/vm/tally $(1) tests/vm/run --kernel $(if $(filter file,$(origin KERNEL)),$(2),$(KERNEL)) \
	--no-load --smp 2 $(3) $(VM_FLAGS) --add $(STRESS_B)/$(1):/t/kselftest/$(1) --add tests/kselftest/suite -- suite $(1)

.PHONY: test-lifetimes test-transitions test-scale
test-lifetimes: $(STRESS_B)/lifetimes | guest-deps
	@$(call STRESS_ONE,lifetimes,debug,--mem 1G --timeout 1200 --append "page_owner=on kasan_multi_shot" --env LIFETIMES="$(LIFETIMES)")

test-transitions: $(STRESS_B)/transitions | guest-deps
	@$(call STRESS_ONE,transitions,debug,--mem 1G --timeout 900 --env TRANSITIONS=$(TRANSITIONS))

test-scale: $(STRESS_B)/scale | guest-deps
	@$(call STRESS_ONE,scale,6.1,--mem 2G --timeout 1200 --env HANDLES=$(HANDLES))
