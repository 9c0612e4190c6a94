# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make vm [KERNEL=6.1]       a shell in a guest with the module
#   make guest [KERNEL=6.1]    fetch or build that kernel, build the module for it
#   make test-guest            the kernel selftests on 6.1
#   make test-rig              tests of the guest itself
#   make test-kernels          the rig, then the selftests on 6.1, 6.12, 7.2 and the debug kernel
#
# KERNEL: 6.1, 6.1-amd64, 6.12, 7.2, debug or kcsan. VM_FLAGS: more options for tests/vm/run. KST: names of selftests.
KERNEL   ?= 6.1
VM_FLAGS ?=
KST      ?=

include tests/kselftest/kselftest.mk
include tests/fuzz/fuzz.mk
include tests/stress/stress.mk

VM_SUITE = --no-load --numa 2 --smp 2 --timeout 1200 --append cma=32M --add $(KST_B):/t/kselftest --add tests/kselftest/suite

.PHONY: guest-deps guest vm test-rig test-guest test-kernels
guest-deps:
	@packaging/install-deps build guest

guest: guest-deps
	tests/vm/kernel module $(KERNEL)

vm: guest-deps kselftest
	tests/vm/run --kernel $(KERNEL) $(VM_FLAGS) --add $(KST_B):/t/kselftest --add tests/kselftest/suite --shell

$(KST_BINS): | guest-deps

test-guest: kselftest
	@tests/vm/tally guest-6.1 tests/vm/run --kernel 6.1 $(VM_SUITE) $(VM_FLAGS) -- suite $(KST)

test-rig: guest-deps
	@tests/vm/tally rig tests/vm/test-rig

# One after the other: they share the machine.
test-kernels: kselftest
	@status=0; tests/vm/tally rig tests/vm/test-rig || status=1; for k in 6.1 6.12 7.2 debug; do \
		tests/vm/tally guest-$$k tests/vm/run --kernel $$k $(VM_SUITE) $(VM_FLAGS) -- suite $(KST) || status=1; \
	done; \
	cd $(B)/results && grep . rig.tally $(patsubst %,guest-%.tally,6.1 6.12 7.2 debug); exit $$status
