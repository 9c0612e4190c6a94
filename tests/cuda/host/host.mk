# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The CUDA plugin on an emulation of the CUDA runtime: no GPU and no nvcc. Its C files are compiled with
# the headers in tests/cuda/host/include, its .cu files by g++. TENSOR_CUDA_PLUGIN names the result.

HOST_DIR := $(B)/cuda-host
HOST_RT  := $(HOST_DIR)/libcuda_host.so
HOST_KERNELS := $(HOST_DIR)/libcuda_kernels.so
HOST_SO  := $(HOST_DIR)/libtensor_cuda.so.$(SOVERSION)
HOST_CC  := $(patsubst tests/cuda/host/%.cc,$(HOST_DIR)/runtime/%.o,$(wildcard tests/cuda/host/*.cc))
HOST_OBJ := $(patsubst lib/kernels/cuda/%.c,$(HOST_DIR)/plugin/%.o,$(wildcard lib/kernels/cuda/*.c lib/kernels/cuda/*/*.c))
# The kernels take most of the time. Those of the build without a sanitizer, HOST_KERNELS_OF, serve AddressSanitizer, too.
HOST_KERNELS_OF := $(B)
HOST_CU  := $(patsubst lib/kernels/cuda/%.cu,$(HOST_KERNELS_OF)/cuda-host/plugin/%.cu.o,$(wildcard lib/kernels/cuda/*/*.cu))

# The plugin of process groups over NCCL with a stand-in for libnccl, which its loader finds beside it.
HOST_NCCL_CC  := $(patsubst tests/cuda/host/nccl/%.cc,$(HOST_DIR)/nccl/%.o,$(wildcard tests/cuda/host/nccl/*.cc))
HOST_NCCL_OBJ := $(patsubst lib/group/nccl/%.c,$(HOST_DIR)/group/%.o,$(wildcard lib/group/nccl/*.c))
HOST_NCCL     := $(HOST_DIR)/libnccl.so.2
HOST_NCCL_SO  := $(HOST_DIR)/libtensor_nccl.so.$(SOVERSION)

# A stand-in for libcufft.
HOST_FFT_CC := $(patsubst tests/cuda/host/fft/%.cc,$(HOST_DIR)/fft/%.o,$(wildcard tests/cuda/host/fft/*.cc))
HOST_FFT    := $(HOST_DIR)/libcufft.so.12
# A stand-in for libcusolver, and for what is used of libcublas.
HOST_SOLVER_CC := $(patsubst tests/cuda/host/solver/%.cc,$(HOST_DIR)/solver/%.o,$(wildcard tests/cuda/host/solver/*.cc))
HOST_SOLVER    := $(HOST_DIR)/libcusolver.so.12
# A stand-in for libcusparse.
HOST_SPARSE_CC := $(patsubst tests/cuda/host/sparse/%.cc,$(HOST_DIR)/sparse/%.o,$(wildcard tests/cuda/host/sparse/*.cc))
HOST_SPARSE    := $(HOST_DIR)/libcusparse.so.12
# A stand-in for libcudnn.
HOST_DNN_CC := $(patsubst tests/cuda/host/dnn/%.cc,$(HOST_DIR)/dnn/%.o,$(wildcard tests/cuda/host/dnn/*.cc))
HOST_DNN    := $(HOST_DIR)/libcudnn.so.9

HOST_INC     := -Itests/cuda/host/include $(if $(findstring address,$(SANITIZE)),-DCUDA_HOST_ASAN) \
                $(if $(findstring thread,$(SANITIZE)),-DCUDA_HOST_TSAN) -DTENSOR_CUDA_EMULATED -D'CUDA_NARROW_MAX=cuda_host_narrow()' \
                -D'CUDA_POSITIONS_MAX=(64ll * cuda_host_narrow())'
HOST_WARN    := -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unknown-pragmas
# Each access of a kernel calls a function, which the emulation has, or AddressSanitizer's runtime. Of UBSan's checks, pointers'
# double the time to compile and find what those of accesses find.
HOST_CHECKED := -fsanitize=kernel-address --param asan-instrumentation-with-call-threshold=0 \
                --param asan-stack=0 --param asan-globals=0 \
                -fsanitize=undefined -fno-sanitize=null,object-size,pointer-overflow,vptr -fno-sanitize-recover=undefined
# With -O1 and line numbers alone the kernels compile in half the time; their tests are as fast.
HOST_CUFLAGS := -x c++ -std=c++17 $(filter-out -O% -g%,$(CFLAGS)) -O1 -g1 $(HOST_WARN) -fPIC \
                -fwrapv -fno-tree-switch-conversion -ffp-contract=off -pthread -include cuda_runtime.h -MMD -MP
HOST_KERNEL_CHECKS := $(or $(findstring -fsanitize=thread,$(SANITIZE)),$(HOST_CHECKED))
# The emulation itself has no sanitizer, but calls its functions.
HOST_CCFLAGS := -std=c++17 -O2 -g $(HOST_WARN) -Wno-missing-field-initializers -fPIC -pthread -MMD -MP

$(HOST_CC): $(HOST_DIR)/runtime/%.o: tests/cuda/host/%.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) $(HOST_INC) -Ilib $(HOST_CCFLAGS) -c -o $@ $<

$(HOST_RT): $(HOST_CC)
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -Wl,-soname,$(@F) -Wl,-z,defs $(SANITIZE) -o $@ $(HOST_CC) -ldl -pthread

$(HOST_DIR)/plugin/%.o: lib/kernels/cuda/%.c | $(GEN)/stamp
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_LIB) $(HOST_INC) $(LIB_CFLAGS) -c -o $@ $<

$(HOST_KERNELS_OF)/cuda-host/plugin/%.cu.o: lib/kernels/cuda/%.cu
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) $(HOST_INC) -Iinclude -Ilib $(HOST_CUFLAGS) $(HOST_KERNEL_CHECKS) -c -o $@ $<

# A library of their own, which exports the kernels: messages have their names, and its thread-local variables
# are all __shared__ ones.
$(HOST_KERNELS): $(HOST_CU) $(HOST_RT)
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' $(or $(SANITIZE),-fsanitize=undefined) -o $@ $(HOST_CU) -L$(HOST_DIR) -lcuda_host

$(HOST_SO): $(HOST_OBJ) $(HOST_KERNELS) $(HOST_FFT) $(HOST_SOLVER) $(HOST_SPARSE) $(HOST_DNN) $(LIB_SO) $(B)/libtensor.so
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' $(SANITIZE) -o $@ $(HOST_OBJ) \
		-L$(B) -ltensor -L$(HOST_DIR) -lcuda_kernels -lcuda_host -lm -pthread

$(HOST_FFT_CC): $(HOST_DIR)/fft/%.o: tests/cuda/host/fft/%.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) $(HOST_INC) -Itests/cuda/host -Ilib $(HOST_CCFLAGS) -c -o $@ $<

$(HOST_FFT): $(HOST_FFT_CC) $(HOST_RT)
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' $(SANITIZE) -o $@ $(HOST_FFT_CC) -L$(HOST_DIR) -lcuda_host

$(HOST_SOLVER_CC): $(HOST_DIR)/solver/%.o: tests/cuda/host/solver/%.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) $(HOST_INC) -Itests/cuda/host -Ilib $(HOST_CCFLAGS) -c -o $@ $<

$(HOST_SOLVER): $(HOST_SOLVER_CC) $(HOST_RT)
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' $(SANITIZE) -o $@ $(HOST_SOLVER_CC) -L$(HOST_DIR) -lcuda_host -ldl

$(HOST_SPARSE_CC): $(HOST_DIR)/sparse/%.o: tests/cuda/host/sparse/%.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) $(HOST_INC) -Itests/cuda/host -Ilib $(HOST_CCFLAGS) -c -o $@ $<

$(HOST_SPARSE): $(HOST_SPARSE_CC) $(HOST_RT)
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' $(SANITIZE) -o $@ $(HOST_SPARSE_CC) -L$(HOST_DIR) -lcuda_host

$(HOST_DNN_CC): $(HOST_DIR)/dnn/%.o: tests/cuda/host/dnn/%.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) $(HOST_INC) -Itests/cuda/host -Iinclude -Ilib $(HOST_CCFLAGS) -c -o $@ $<

$(HOST_DNN): $(HOST_DNN_CC) $(HOST_RT)
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' $(SANITIZE) -o $@ $(HOST_DNN_CC) -L$(HOST_DIR) -lcuda_host

$(HOST_NCCL_CC): $(HOST_DIR)/nccl/%.o: tests/cuda/host/nccl/%.cc
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) $(HOST_INC) -Itests/cuda/host -Ilib $(HOST_CCFLAGS) -c -o $@ $<

$(HOST_NCCL): $(HOST_NCCL_CC) $(HOST_RT)
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' $(SANITIZE) -o $@ $(HOST_NCCL_CC) -L$(HOST_DIR) -lcuda_host -pthread

$(HOST_NCCL_OBJ): $(HOST_DIR)/group/%.o: lib/group/nccl/%.c | $(GEN)/stamp
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_LIB) $(HOST_INC) $(LIB_CFLAGS) -c -o $@ $<

$(HOST_NCCL_SO): $(HOST_NCCL_OBJ) $(HOST_NCCL) $(LIB_SO) $(B)/libtensor.so
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/group/nccl/plugin.map -Wl,-z,defs -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' \
		$(SANITIZE) -o $@ $(HOST_NCCL_OBJ) -L$(B) -ltensor -L$(HOST_DIR) -lcuda_host -ldl -pthread

-include $(HOST_CC:.o=.d) $(HOST_OBJ:.o=.d) $(HOST_CU:.o=.d) $(HOST_FFT_CC:.o=.d) $(HOST_SOLVER_CC:.o=.d) $(HOST_SPARSE_CC:.o=.d) $(HOST_DNN_CC:.o=.d) $(HOST_NCCL_CC:.o=.d) $(HOST_NCCL_OBJ:.o=.d)

# The emulation's own tests, which need no library.
HOST_SELF := $(patsubst tests/cuda/host/self/%.cu,%,$(wildcard tests/cuda/host/self/test_*.cu))

$(HOST_SELF:%=$(B)/tests/%): $(B)/tests/%: tests/cuda/host/self/%.cu tests/cuda/host/self/self.hpp $(HOST_RT)
	@mkdir -p $(@D)
	$(call say,CXX,$@)
	$(Q)$(CXX) $(HOST_INC) $(filter-out -MMD -MP,$(HOST_CUFLAGS)) $(or $(SANITIZE),$(HOST_CHECKED)) -rdynamic -o $@ $< -L$(HOST_DIR) -lcuda_host \
		-Wl,-rpath,$(abspath $(HOST_DIR)) -lcmocka

# The tests of CUDA with each order of streams and both widths of indices, and those of the emulation. The limits
# of narrow indices are such that sums of two offsets that are just below them are above.
HOST_TESTS = $(patsubst tests/unit/cuda/%.c,$(1)/tests/%,$(wildcard tests/unit/cuda/test_*.c))
# With TEST_GROUP=nccl.
HOST_GROUPS = $(addprefix $(1)/tests/,test_group test_group_engines test_data_parallel)
HOST_OWN   = $(HOST_SELF:%=$(1)/tests/%)
HOST_MODES := eager lazy-20 random lazy-4300 random-8000
# Under the sanitizers, which take three times as long; together they have each limit.
HOST_ASAN_MODES := eager lazy-20 random-8000
HOST_TSAN_MODES := eager lazy-20 random-4300
# $(call host_build,BUILD) are the files to build there, $(call host_run,BUILD,NAME,MODES) runs the tests.
host_build = $(call HOST_TESTS,$(1)) $(call HOST_GROUPS,$(1)) $(call HOST_OWN,$(1)) $(HOST_SO:$(B)/%=$(1)/%) $(HOST_NCCL_SO:$(B)/%=$(1)/%)
host_run   = tests/cuda/host/run $(B) $(2) $(HOST_SO:$(B)/%=$(1)/%) $(3) -- $(call HOST_TESTS,$(1)) -- $(call HOST_GROUPS,$(1)) -- $(call HOST_OWN,$(1)) \
	-- $(call host_vectors,$(1),$(2))
# The recorded results of PyTorch (tests/conformance/golden.py), a part of what `make conformance DEVICE=cuda` runs; not
# under ThreadSanitizer. The interpreter has no sanitizer.
host_vectors = $(if $(findstring tsan,$(1)),,env $(if $(findstring asan,$(1)),LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) \
	$$($(CC) -print-file-name=libubsan.so)" $(ASAN):detect_leaks=0) $(PYTHON) -B tests/conformance/golden.py --lib $(LIB_SO:$(B)/%=$(1)/%) --build $(B) --device cuda --tally $(2)-vectors)

.PHONY: test-cuda test-cuda-asan test-cuda-tsan
test-cuda: $(call host_build,$(B)) $(B)/tests/test_cpp_cuda python-deps
	+$(Q)$(MAKE) --no-print-directory python
	$(Q)$(call host_run,$(B),cuda,$(HOST_MODES))
	$(Q)PYTHONPATH=$(abspath $(B))/python PYTHON_RUN="env TENSOR_CUDA_PLUGIN=$(abspath $(HOST_SO)) $(PYTHON)" \
		tests/run-python $(B) cuda-python tests/python/test_cuda.py
	$(Q)TENSOR_CUDA_PLUGIN=$(abspath $(HOST_SO)) tests/run-unit $(B) cuda-cpp $(B)/tests/test_cpp_cuda

# The same under AddressSanitizer with UBSan, and under ThreadSanitizer, whose memory map wants addresses that are
# not chosen at random. The first build of the library takes minutes.
test-cuda-asan:
	+$(Q)packaging/build-steps make $(HOST_CU)
	+$(Q)packaging/build-steps make B=build/asan HOST_KERNELS_OF=$(B) LEVELS="$(SANITIZE_LEVELS)" $(SANITIZED) $(call host_build,build/asan)
	$(Q)$(ASAN) $(call host_run,build/asan,cuda-asan,$(HOST_ASAN_MODES))

test-cuda-tsan:
	+$(Q)packaging/build-steps make B=build/tsan LEVELS="$(SANITIZE_LEVELS)" $(TSAN) $(call host_build,build/tsan)
	$(Q)TSAN_OPTIONS=atexit_sleep_ms=0 setarch -R $(call host_run,build/tsan,cuda-tsan,$(HOST_TSAN_MODES))
