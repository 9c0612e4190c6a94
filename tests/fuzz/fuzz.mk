# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Fuzzers. tests/fuzz/kernel: programs of system calls for the module, on a debug kernel with the
# module compiled for KCOV. The corpus is in the cache, outside of the tree, one file for each kernel;
# every run begins with all of these files and with a few hand-written programs from the tree. The
# number in the folder changes when calls or arguments do, since older programs cannot be read then.
#
#   make fuzz-kernel [KERNEL=debug] [CALLS=1000000] [SECONDS_MAX=3600] [SEED=1]

CALLS       ?= 1000000
SECONDS_MAX ?= 3600
SEED        ?= 1
FUZZ_SMP    ?= 1
FUZZ_BIN    := $(B)/tests/fuzz-kernel
FUZZ_CORPUS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/devtensor/fuzz-3
# The default of vm.mk has no KCOV.
FUZZ_KERNEL := $(if $(filter file,$(origin KERNEL)),debug,$(KERNEL))
FUZZ_KEPT   := corpus$(FUZZ_KERNEL:debug%=%)

$(FUZZ_BIN): $(wildcard tests/fuzz/kernel/*.[ch]) $(addprefix tests/kselftest/include/,device.h machine.h) include/uapi/linux/tensor.h \
		include/uapi/linux/tensor_netlink.h
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(WARN) -D_GNU_SOURCE -Iinclude/uapi -o $@ $(filter %.c,$^) -pthread

FUZZ_RUN = tests/vm/run --kernel $(FUZZ_KERNEL) --count kcov --no-load --smp $(FUZZ_SMP) --mem 1G --timeout $$(($(SECONDS_MAX) + 300)) \
	--env FUZZ_FLAGS="--calls $(CALLS) --seconds $(SECONDS_MAX) --seed $(SEED)" \
	--add $(FUZZ_BIN):/t/fuzz-kernel --add tests/fuzz/kernel/guest:/t/kselftest/fuzz \
	--add tests/fuzz/kernel/seeds:/t/corpus --add $(FUZZ_CORPUS):/t/corpus --add tests/kselftest/suite

.PHONY: fuzz-kernel
fuzz-kernel: $(FUZZ_BIN) | guest-deps
	@mkdir -p $(FUZZ_CORPUS) $(B)/results
	@rm -f $(B)/results/$(FUZZ_KEPT) $(B)/results/$(FUZZ_KEPT).bad
	@tests/vm/tally fuzz-$(FUZZ_KERNEL) $(FUZZ_RUN) --get /tmp/corpus:$(B)/results/$(FUZZ_KEPT) \
		--get /tmp/corpus.bad:$(B)/results/$(FUZZ_KEPT).bad -- suite fuzz; status=$$?; \
	[ ! -s $(B)/results/$(FUZZ_KEPT) ] || cp $(B)/results/$(FUZZ_KEPT) $(FUZZ_CORPUS)/$(FUZZ_KEPT); exit $$status

# tests/fuzz/ops: operators against a plain implementation, in this process. `make test` has a small
# run under the sanitizers; make fuzz-ops [CASES=1000000] [SEED=1] is the large one.

CASES    ?= 1000000
FUZZ_OPS := $(B)/tests/fuzz-ops

$(FUZZ_OPS): $(wildcard tests/fuzz/ops/*.[ch]) $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) -o $@ $(filter %.c,$^) -L$(B) -ltensor \
		-Wl,-rpath,$(abspath $(B)) -lm

.PHONY: fuzz-ops
fuzz-ops: $(FUZZ_OPS)
	$(Q)$< --cases $(CASES) --seed $(SEED)

# tests/fuzz/calls: every operator with hostile arguments; it must succeed or fail with an error and leak nothing.
# `make test` has a small run; make torture [CALLS=8000000] [SEED=1] is the large one, under the sanitizers, with a
# random seed by default.

FUZZ_CALLS := $(B)/tests/fuzz-calls

# LeakSanitizer crashes on the thread-local storage of libraries that were opened later.
ifneq ($(SANITIZE),)
FUZZ_CALLS_LIBS := -Wl,--no-as-needed $(if $(ONEDNN_SO),-ldnnl) $(if $(wildcard /usr/lib/*/liblapack.so.3),-l:liblapack.so.3)
endif

$(FUZZ_CALLS): $(wildcard tests/fuzz/calls/*.[ch]) $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) -o $@ $(filter %.c,$^) -L$(B) -ltensor \
		-Wl,-rpath,$(abspath $(B)) -lm -pthread $(FUZZ_CALLS_LIBS)

TORTURE_CALLS = $(if $(filter file,$(origin CALLS)),8000000,$(CALLS))
TORTURE_SEED  = $(if $(filter file,$(origin SEED)),$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '),$(SEED))

.PHONY: torture
torture:
	$(Q)$(MAKE) -j$$(nproc) B=build/asan LEVELS="$(SANITIZE_LEVELS)" $(SANITIZED) build/asan/tests/fuzz-calls \
		$(ONEDNN_SO:build/%=build/asan/%)
	$(Q)seed=$(TORTURE_SEED); echo "torture: seed $$seed"; \
	$(ASAN) build/asan/tests/fuzz-calls --calls $(TORTURE_CALLS) --seed $$seed
