# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make CUDA=1 [NVCC=/path/to/nvcc]    the CUDA plugin, libtensor_cuda.so.0, with everything else
#   make cuda                           the plugin and the library
#   make CUDA=sm_90a                    for this architecture alone: a third of the time
#   make CUDA=ptx                       PTX alone, which the driver compiles when it is loaded: a quarter of the time
#
# The plugin is built on request only: nvcc takes longer than the compiler for the rest of the tree.
# The host side is C, compiled like the library; only kernels and their launchers are CUDA C++.
# The toolkit is found from the path of nvcc.

.PHONY: cuda cuda-kernels

ifeq ($(filter-out 0,$(CUDA)),)

cuda:
	@$(MAKE) --no-print-directory CUDA=1 cuda

else

NVCC ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
ifeq ($(NVCC),)
$(error CUDA=1 needs nvcc, which is not in PATH: install the CUDA toolkit, or give NVCC=/path/to/nvcc)
endif

CUDA_HOME  ?= $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
CUDA_LIB   := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib))
CUDA_SO    := $(B)/libtensor_cuda.so.$(SOVERSION)
CUDA_C     := $(wildcard lib/kernels/cuda/*.c lib/kernels/cuda/*/*.c)
CUDA_CU    := $(wildcard lib/kernels/cuda/*/*.cu)
CUDA_OBJ   := $(patsubst %.c,$(B)/obj/%.o,$(CUDA_C)) $(patsubst %.cu,$(B)/obj/%.cu.o,$(CUDA_CU))

# Machine code for these architectures (sm_80 also runs on 8.6 to 8.9), and PTX, which the driver
# compiles for newer ones. Architectures that nvcc does not know are omitted.
CUDA_CODES  = $(shell $(NVCC) --list-gpu-code)
CUDA_ARCH   = $(if $(filter sm_%,$(CUDA)),-gencode arch=$(CUDA:sm_%=compute_%)$(comma)code=$(CUDA),$(if $(filter-out ptx,$(CUDA)),$(CUDA_ARCHS)) $(CUDA_PTX))
CUDA_PTX    = -gencode arch=compute_90$(comma)code=compute_90
CUDA_ARCHS  = $(if $(filter sm_80,$(CUDA_CODES)),-gencode arch=compute_80$(comma)code=sm_80) \
              $(if $(filter sm_90,$(CUDA_CODES)),-gencode arch=compute_90a$(comma)code=sm_90a) \
              $(if $(filter sm_100,$(CUDA_CODES)),-gencode arch=compute_100$(comma)code=sm_100)
comma      := ,

# No contraction into fused operations: elementwise results have the same bits as on the CPU. The host
# code of .cu files has the warnings of C, except those that nvcc's stubs cause.
NVCCFLAGS  := -std=c++17 -O3 -fmad=false --Werror all-warnings --threads 2 \
              -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-Werror,-Wno-unused-parameter

ALL += $(CUDA_SO)
cuda: $(CUDA_SO)

$(patsubst %.c,$(B)/obj/%.o,$(CUDA_C)): $(B)/obj/%.o: %.c | $(GEN)/stamp
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_LIB) -isystem $(CUDA_HOME)/include $(LIB_CFLAGS) -c -o $@ $<

CUDA_CUH   := lib/base/reduced_float.h $(wildcard lib/kernels/cuda/*.h lib/kernels/cuda/*/*.h lib/kernels/cuda/*.cuh lib/kernels/cuda/*/*.cuh lib/kernels/formula/*.h)

# Written if the architectures change, so that the kernels are compiled again.
$(B)/cuda.arch: always
	@mkdir -p $(@D)
	@echo '$(CUDA_ARCH)' | cmp -s - $@ || echo '$(CUDA_ARCH)' >$@
cuda-kernels: $(filter %.cu.o,$(CUDA_OBJ))

$(B)/obj/%.cu.o: %.cu $(CUDA_CUH) $(B)/cuda.arch
	@mkdir -p $(@D)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVCCFLAGS) $(CUDA_ARCH) -Iinclude -Ilib -c -o $@ $<

# The folder of the toolkit is the last entry of the library search path.
$(CUDA_SO): $(CUDA_OBJ) $(LIB_SO) $(B)/libtensor.so lib/kernels/cuda/plugin.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/kernels/cuda/plugin.map \
		-Wl,-z,defs -Wl,-rpath,'$$ORIGIN' -Wl,-rpath,$(CUDA_LIB) $(SANITIZE) -o $@ \
		$(CUDA_OBJ) -L$(B) -ltensor -L$(CUDA_LIB) -lcudart -lcublasLt -lstdc++ -lm -pthread

-include $(patsubst %.c,$(B)/obj/%.d,$(CUDA_C))

endif
