# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make vm [KERNEL=6.1]       a shell in a guest with the module
#   make guest [KERNEL=6.1]    fetch or build that kernel, build the module for it
#   make test-guest            the core: kernel selftests on 6.1, a few kills, unloads and fuzzed calls
#   make test-kernel           everything below, one after the other: hours
#
#   make test-rig              tests of tests/vm/run
#   make test-suite-NAME       the selftests on one kernel
#   make test-kunit            KUnit tests of kmod/alloc, on the debug kernel of 6.1
#   make test-devices          dma-bufs with vgem and vivid, drivers of the amd64 flavour
#   make test-guest-cuda       dma-bufs of device memory, with the emulation of CUDA and vgem, on the amd64 flavour
#   make test-kcsan            concurrent tests on the kernel that detects data races
#   make fuzz-kernel [KERNEL=debug]  1,000,000 fuzzed calls on a debug kernel
#   make stress KERNEL=debug   10,000 kills, 1,000 unloads
#   make test-lifetimes        all orders of open, share, close and kill, on the debug kernel
#   make test-transitions      SEAL and REVOKE concurrent with all other calls, on the debug kernel
#   make test-scale            time of the exit of a process with 100,000 handles
#   make test-linear           cost of closing n handles, files and clients, in instructions
#   make coverage-kernel       lines and branches of the module that the tests execute
#
# KERNEL: 6.1, 6.1-amd64, 6.12, 7.2, debug (of 6.1), debug-6.12, debug-7.2 or kcsan. VM_FLAGS: more
# options for tests/vm/run. KST: names of selftests.
KERNEL   ?= 6.1
VM_FLAGS ?=
KST      ?=

include tests/kselftest/kselftest.mk
include tests/fuzz/fuzz.mk
include tests/stress/stress.mk

VM_SUITE = --no-load --numa 2 --smp 2 --timeout 1200 --append cma=32M --add $(KST_B):/t/kselftest --add tests/kselftest/suite \
	--add $(TENSORSTAT):/t/bin/tensorstat

.PHONY: guest-deps guest vm test-rig test-guest test-kernels
guest-deps:
	@packaging/install-deps build guest

guest: guest-deps
	tests/vm/kernel module $(KERNEL)

vm: guest-deps kselftest
	tests/vm/run --kernel $(KERNEL) $(VM_FLAGS) --add $(KST_B):/t/kselftest --add tests/kselftest/suite --shell

$(KST_BINS): | guest-deps

# The programs of tests/stress and the fuzzer, run as programs of the suite; --env sets their duration.
VM_STRESS = $(foreach s,$(STRESS_FEW),--add $(STRESS_B)/$(s):/t/kselftest/$(s)) --add $(FUZZ_BIN):/t/fuzz-kernel \
	--add tests/fuzz/kernel/guest:/t/kselftest/fuzz --add tests/fuzz/kernel/seeds:/t/corpus

test-guest: kselftest $(STRESS_ALL) $(FUZZ_BIN)
	@tests/vm/tally guest-6.1 tests/vm/run --kernel 6.1 $(VM_SUITE) $(VM_STRESS) --env KILLS=100 --env CYCLES=16 \
		--env LIFETIMES=10 --env TRANSITIONS=10 --env FUZZ_FLAGS="--calls 3000" $(VM_FLAGS) -- suite $(KST)

test-rig: guest-deps
	@tests/vm/tally rig tests/vm/test-rig

test-suite-%: kselftest
	@tests/vm/tally guest-$* tests/vm/run --kernel $* $(VM_SUITE) $(VM_FLAGS) -- suite $(KST)

# One processor whose clock counts instructions, because times are meaningless on a busy host.
test-linear: kselftest
	@tests/vm/tally linear tests/vm/run --kernel $(KERNEL) --icount --no-load --smp 1 --timeout 900 $(VM_FLAGS) \
		--add $(KST_B)/linear:/t/kselftest/linear --add tests/kselftest/suite -- suite linear

test-devices: kselftest
	@tests/vm/tally devices tests/vm/run --kernel 6.1-amd64 $(VM_SUITE) --modprobe vgem \
		--modprobe "vivid n_devs=2 allocators=0,1" $(VM_FLAGS) -- suite \
		$(or $(KST),dmabuf handles import import_race mapping_rights memfd payer pinmem rights sync sync_deadline \
		vgem vivid vivid_rights)

# This kernel has no KCOV: the fuzzer mutates the corpus that it saved on the debug kernel.
KCSAN_SUITE := race lifetime share pool remap dmabuf netlink netlink_event kills transitions fuzz
test-kcsan: kselftest $(STRESS_ALL) $(FUZZ_BIN)
	@mkdir -p $(FUZZ_CORPUS)
	@tests/vm/tally kcsan tests/vm/run --kernel kcsan $(VM_SUITE) $(VM_STRESS) --add $(FUZZ_CORPUS):/t/corpus \
		--env KILLS=500 --env TRANSITIONS=30 --env FUZZ_FLAGS="--calls 20000" $(VM_FLAGS) -- suite $(or $(KST),$(KCSAN_SUITE))

test-stress:
	@$(MAKE) --no-print-directory stress KERNEL=debug

test-fuzz-%:
	@$(MAKE) --no-print-directory fuzz-kernel KERNEL=$*

# The lock order of the core differs between versions, so lockdep runs on each. On a debug kernel the
# suite includes the programs that make each allocation fail in turn (failnth*).
DEBUG_KERNELS := debug debug-6.12 debug-7.2
TEST_KERNEL := test-rig=rig $(foreach k,6.1 6.12 7.2 $(DEBUG_KERNELS),test-suite-$(k)=guest-$(k)) test-kunit=kunit \
	test-devices=devices test-guest-cuda=guest-cuda test-kcsan=kcsan test-stress=stress-debug test-lifetimes=lifetimes \
	test-transitions=transitions test-scale=scale test-linear=linear $(foreach k,$(DEBUG_KERNELS),test-fuzz-$(k)=fuzz-$(k)) \
	coverage-kernel=coverage

.PHONY: test-devices test-linear test-kcsan test-stress test-kernel test-kernels
test-kernel test-kernels: kselftest
	@tests/run-all $(B) $(TEST_KERNEL)

# One guest with everything that executes code of the module: the selftests, a few kills and unloads,
# and fuzzed programs. COVERAGE_LEAST: percentage of lines that must be executed.
COVERAGE_LEAST ?= 90
COVERAGE_B     := $(B)/coverage

.PHONY: coverage-kernel
coverage-kernel: kselftest $(STRESS_ALL) $(FUZZ_BIN)
	@rm -rf $(COVERAGE_B)
	@mkdir -p $(COVERAGE_B) $(FUZZ_CORPUS)
	@status=0; tests/vm/tally coverage-suite tests/vm/run --kernel debug --count gcov $(VM_SUITE) --timeout 2400 $(VM_FLAGS) \
		$(VM_STRESS) --add $(FUZZ_CORPUS):/t/corpus \
		--env KILLS=200 --env CYCLES=16 --env LIFETIMES=20 --env TRANSITIONS=20 --env FUZZ_FLAGS="--calls 5000" --add tests/vm/gcov-copy \
		--get /tmp/gcov:$(COVERAGE_B)/data -- gcov-copy suite $(KST) || status=1; \
	tests/vm/tally coverage tests/vm/coverage.py $$(dirname $$(tests/vm/kernel module debug gcov)) $(COVERAGE_B) \
		$(COVERAGE_B)/data --least $(COVERAGE_LEAST) || status=1; exit $$status
