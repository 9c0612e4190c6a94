# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Unit tests: every tests/unit/GROUP/test_*.c is a program of its own on cmocka. `make test-unit` runs
# them; `make test-sanitize` runs them again with the library under ASan and UBSan.

UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
UNIT_BIN := $(patsubst %.c,$(B)/tests/%,$(notdir $(UNIT_SRC)))

define unit_rule
$(B)/tests/$(basename $(notdir $(1))): $(1) $(wildcard tests/unit/*.h tests/unit/train/*.h) $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $$(CPPFLAGS_ALL) -I. -Itests/unit -std=gnu11 $$(CFLAGS) $$(WARN) $$(SANITIZE) -o $$@ $$< $$(TEST_LINK) -L$$(B) -ltensor \
		-Wl,-rpath,$$(abspath $$(B)) -lcmocka -lm -pthread $$(TEST_LIBS)
endef
$(foreach s,$(UNIT_SRC),$(eval $(call unit_rule,$(s))))

$(B)/tests/test_tensorstat_group: lib/group/local/page.h

$(B)/tests/test_without_memory $(B)/tests/test_train_without_memory $(B)/tests/test_module_memory \
	$(B)/tests/test_step_without_memory $(B)/tests/test_loader_without_memory \
	$(B)/tests/test_autograd_devices_memory $(B)/tests/test_interchange_memory: tests/fuzz/calls/fail.c tests/fuzz/calls/fail.h

# The same tests with other environment variables.
$(B)/tests/test_attention_tiles: tests/unit/nn/test_attention.c
$(B)/tests/test_conv_tiles: tests/unit/nn/test_conv_bf16.c
$(B)/tests/test_quantized_tiles: tests/unit/quantized/test_quantized.c

# Load the plugin.
$(B)/tests/test_cpp_remote $(B)/tests/test_remote $(B)/tests/test_remote_ends $(B)/tests/test_remote_hostile $(B)/tests/test_remote_limits: \
	| $(UCX_SO)

# Opens the library by itself.
$(B)/tests/test_unload: TEST_LINK = -Wl,--as-needed -DLIBRARY='"$(abspath $(B))/libtensor.so.0"'
$(B)/tests/test_blocked $(B)/tests/test_blocked_ops $(B)/tests/reference: TEST_LIBS = $(ONEDNN_TEST_LIBS)

include tests/cpp/cpp.mk
include tests/cuda/host/host.mk

.PHONY: unit test test-unit test-sanitize test-shell test-guest-library
# The tests that take minutes; `make test-kernel` has those that take hours. Where nvcc is, the CUDA plugin
# is compiled, too. test-cuda is not among them, because test-cuda-asan runs its programs; nor are test-tsan and
# test-cuda-tsan, for which the library is compiled once more.
NVCC_FOUND = $(or $(NVCC),$(shell command -v nvcc))
test:
	@packaging/install-deps build test guest format lint python python-test
	+@tests/run-all --build "all unit python$(if $(NVCC_FOUND), CUDA=ptx)" $(B) test-unit=unit \
		test-sanitize=sanitize test-cuda-asan=cuda-asan test-abi=abi \
		check-layers=layers check-cuda=cuda-kernels check-format=format check-reference=check-reference test-lint=lint check-abi=library-abi \
		test-golden=golden test-onnx=onnx test-python=python test-mpi=mpi test-shell=shell test-guest=guest-6.1 test-guest-library=guest-library

# The fuzzers run a small part of their cases here (tests/fuzz/fuzz.mk), the reference its examples.
UNIT_RUN = $(patsubst %.c,$(1)/tests/%,$(notdir $(UNIT_SRC))) $(patsubst tests/cpp/%.cc,$(1)/tests/%,$(CPP_SRC)) $(1)/tests/fuzz-ops $(1)/tests/fuzz-calls $(1)/tests/reference

unit: $(UNIT_BIN) $(CPP_BIN) $(B)/tests/fuzz-ops $(B)/tests/fuzz-calls $(B)/tests/reference $(TENSORSTAT) $(ONEDNN_SO)

# $(call chosen,PROGRAMS): those that T names, T=view or T=test_view; all without T.
chosen = $(if $(T),$(foreach t,$(T),$(or $(filter %/test_$(t) %/$(t) %/$(t).sh %/test_$(t).py %/$(t).py,$(1)),$(error T=$(t) names no test of \
	this target; it takes one or more of: $(patsubst test_%,%,$(basename $(notdir $(1))))))),$(1))

# With T only the named programs are built.
ifneq ($(and $(T),$(filter test-unit,$(MAKECMDGOALS))),)
test-unit: $(call chosen,$(call UNIT_RUN,$(B))) $(TENSORSTAT) $(ONEDNN_SO)
else
test-unit: unit
endif
	$(Q)tests/run-unit $(if $(T),,--formulas )$(B) unit $(call chosen,$(call UNIT_RUN,$(B)))

# Derivatives with GRADIENT_ROUNDS random shapes and values of each function; GRADIENT_SEED.
GRADIENT_ROUNDS ?= 50
GRADIENT_SEED ?= 1
GRADIENT_TESTS := $(shell grep -l FORMULA_TEST_LIST $(UNIT_SRC))

.PHONY: test-gradients
test-gradients: $(patsubst %.c,$(B)/tests/%,$(notdir $(GRADIENT_TESTS)))
	$(Q)GRADIENT_ROUNDS=$(GRADIENT_ROUNDS) GRADIENT_SEED=$(GRADIENT_SEED) tests/run-unit $(B) gradients $^

test-shell: all
	$(Q)tests/run-shell $(B) shell $(call chosen,$(wildcard tests/shell/*.sh))

# Process groups with 2 and 4 ranks under each MPI.
.PHONY: test-mpi
test-mpi: $(B)/tests/test_group $(B)/tests/test_group_engines $(MPI_SO) $(if $(filter openmpi,$(MPIS)),$(B)/bench/group_simulate)
	$(Q)tests/run-mpi $(B) mpi $(foreach m,$(MPIS),$(if $(shell command -v mpirun.$(m)),$(m)))

include tests/reference/reference.mk
include tests/batch/batch.mk

# Leaks count: what the library keeps on purpose is reachable. Of the kernels only the level that this
# machine runs is built, all of them take three times as long; SANITIZE_LEVELS="v2 v3 v4" has them.
SANITIZE_LEVELS ?= $(HOST_LEVEL)
SANITIZED := SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=all" CFLAGS="-O1 -g1"

# The runtime of GCC 12 takes the thread-local block of a library that dlopen() loaded, oneDNN's, for one with a
# header of glibc 2.19 if it begins 16 bytes after a page, and LeakSanitizer reads wild addresses. Without the option
# it finds these blocks as other memory.
ASAN := ASAN_OPTIONS=intercept_tls_get_addr=0$(if $(ASAN_OPTIONS),:$(ASAN_OPTIONS))

test-sanitize:
	+$(Q)packaging/build-steps make B=build/asan LEVELS="$(SANITIZE_LEVELS)" $(SANITIZED) unit
	$(Q)$(ASAN) tests/run-unit build sanitize $(call UNIT_RUN,build/asan)

# Threads: what several of them share, under ThreadSanitizer. Its memory map wants addresses that are not chosen at random.
TSAN      := SANITIZE=-fsanitize=thread CFLAGS="-O1 -g1"
TSAN_RUN  := test_threads test_vmap_autograd test_autograd_threads test_autograd_devices test_autograd_devices_order test_autograd_reentrant \
	test_autograd_streams test_autograd_lifetime test_autograd_hooks test_autograd_retained test_autograd_saved test_autograd_checkpoint \
	test_autograd_function test_autograd_hazards test_autograd_hazards_order test_autograd_hazards_threads \
	test_autograd_eight_threads test_autograd_depth test_autograd_depth_modes test_autograd_forward test_channel test_channel_many test_channel_pool test_channel_fork test_channel_group test_channel_ring test_channel_time test_version test_buffer \
	test_buffer_errors test_tensor test_scope test_blob test_dlpack test_dispatch test_random test_optim test_clip test_autocast \
	test_module_threads test_profiler test_loader test_loader_errors test_loader_buffers test_loader_workers test_attention test_group_requests test_group_threads test_group_in_place test_data_parallel \
	$(if $(UCX_SO),test_remote test_remote_ends)

include tests/python/python.mk

.PHONY: test-tsan
test-tsan:
	+$(Q)packaging/build-steps make B=build/tsan LEVELS="$(SANITIZE_LEVELS)" $(TSAN) $(TSAN_RUN:%=build/tsan/tests/%)
	$(Q)setarch -R tests/run-unit build tsan $(TSAN_RUN:%=build/tsan/tests/%)

# Channels, pools and groups of twelve processes for a long time: make stress-channels [STRESS=600].
STRESS ?= 600
.PHONY: stress-channels
stress-channels: $(B)/tests/test_channel_stress
	$(Q)STRESS_SECONDS=$(STRESS) $<

# The library's tests that meet the module, and the whole programs, as programs of the guest's suite.
GUEST_LIB := test_share test_memory test_version test_channel test_channel_fork test_channel_file test_channel_group test_channel_ring test_channel_stress test_channel_many test_channel_pool test_lease_ends test_pool_limits test_share_hostile test_storage test_buffer test_buffer_errors \
	test_buffer_device test_group_in_place test_group_dmabuf test_group_requests test_data_parallel test_tensorstat test_tensorstat_tools \
	test_tensorstat_doctor test_autograd test_autograd_history

test-guest-library: all unit
	@tests/vm/tally guest-library tests/vm/run --kernel $(KERNEL) --no-load --smp 2 --timeout 900 $(VM_FLAGS) \
		--env TENSOR_PROVIDER=device --env CMOCKA_MESSAGE_OUTPUT=TAP --env DIGITS=/t/digits \
		$(foreach t,$(GUEST_LIB),--add $(B)/tests/$(t):/t/kselftest/$(t)) \
		--add tests/shell/kill.sh:/t/kselftest/kill --add tests/shell/demo.sh:/t/kselftest/demo \
		--add $(B)/bin:/t/bin --add $(LIB_SO):/t/$(notdir $(LIB_SO)) --add tests/kselftest/suite \
		--add $(DIGITS_DIR)/run:/t/digits/run --add $(DIGITS_DIR)/digits.csv:/t/digits/digits.csv -- suite

# Dma-bufs of the emulation's device memory in /dev/tensor. /dev/udmabuf of Debian's 6.12 and 7.2, and of the kernels for debugging,
# exports them; KERNEL selects one of these. In the amd64 flavour of 6.1 vgem does.
GUEST_CUDA   := test_cuda_dmabuf test_cuda_dmabuf_lifetime test_cuda_send_use
GUEST_CUDA_B := $(B)/guest-cuda
GUEST_CUDA_LIBS = $(LIB_SO) $(HOST_SO) $(HOST_KERNELS) $(HOST_RT) $(HOST_FFT) $(HOST_SOLVER) $(HOST_DNN)

.PHONY: test-guest-cuda
test-guest-cuda: KERNEL := 6.1-amd64
test-guest-cuda: guest-deps $(GUEST_CUDA:%=$(B)/tests/%) $(GUEST_CUDA_LIBS)
	$(Q)mkdir -p $(GUEST_CUDA_B)
	$(Q)for f in $(GUEST_CUDA_LIBS); do strip -S -o $(GUEST_CUDA_B)/$${f##*/} $$f || exit 1; done
	@tests/vm/tally guest-cuda tests/vm/run --kernel $(KERNEL) --no-load --smp 2 --mem 2G --timeout 1800 \
		$(if $(filter %-amd64,$(KERNEL)),--modprobe vgem) $(VM_FLAGS) \
		--env TENSOR_PROVIDER=device --env CMOCKA_MESSAGE_OUTPUT=TAP --env TENSOR_CUDA_PLUGIN=/t/$(notdir $(HOST_SO)) \
		$(foreach l,$(notdir $(GUEST_CUDA_LIBS)),--add $(GUEST_CUDA_B)/$(l):/t/$(l)) \
		$(foreach t,$(GUEST_CUDA),--add $(B)/tests/$(t):/t/kselftest/$(t)) --add tests/kselftest/suite -- suite
