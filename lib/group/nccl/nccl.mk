# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# libtensor_nccl.so.0, with the CUDA plugin (make CUDA=1), if nccl.h is found in the toolkit, or in NCCL_INCLUDE; prints a line
# if it is not. The library itself is loaded when the program opens a group.

ifneq ($(filter-out 0,$(CUDA)),)

NCCL_INCLUDE ?= $(CUDA_HOME)/include
NCCL_SO      := $(B)/libtensor_nccl.so.$(SOVERSION)
NCCL_OBJ     := $(patsubst lib/group/nccl/%.c,$(B)/obj/group-nccl/%.o,$(wildcard lib/group/nccl/*.c))

ifneq ($(wildcard $(NCCL_INCLUDE)/nccl.h),)

ALL += $(NCCL_SO)
cuda: $(NCCL_SO)

$(NCCL_OBJ): $(B)/obj/group-nccl/%.o: lib/group/nccl/%.c | $(GEN)/stamp
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_LIB) -isystem $(NCCL_INCLUDE) -isystem $(CUDA_HOME)/include $(LIB_CFLAGS) -c -o $@ $<

$(NCCL_SO): $(NCCL_OBJ) $(LIB_SO) $(B)/libtensor.so lib/group/nccl/plugin.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/group/nccl/plugin.map -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' \
		-Wl,-rpath,$(CUDA_LIB) $(SANITIZE) -o $@ $(NCCL_OBJ) -L$(B) -ltensor -L$(CUDA_LIB) -lcudart -ldl -pthread

-include $(NCCL_OBJ:.o=.d)

else

NCCL_SO :=
.PHONY: no-nccl
no-nccl:
	$(call say,SKIP,libtensor_nccl: there is no $(NCCL_INCLUDE)/nccl.h)
ALL += no-nccl

endif
endif
