# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# libtensor: generated sources in build/gen, objects in build/obj, one object for each kernel
# file and instruction-set level.

GEN       := $(B)/gen
GEN_PY    := $(wildcard lib/schema/gen/*.py)
GEN_OPS   := $(wildcard lib/schema/ops/*/*.yaml)
GEN_DERIV := $(wildcard lib/schema/derivatives/*/*.yaml)
FAMILIES  := $(basename $(notdir $(GEN_OPS)))
GEN_H     := $(GEN)/include/tensor/ops.h $(GEN)/include/tensor/ops.hpp $(GEN)/batch_rules.h $(FAMILIES:%=$(GEN)/family/%.h)
GEN_C     := $(GEN)/ops_registry.c $(GEN)/batch_rules.c \
             $(FAMILIES:%=$(GEN)/ops_api_%.c) \
             $(FAMILIES:%=$(GEN)/ops_tables_%.c) \
             $(patsubst %,$(GEN)/autograd_%.c,$(basename $(notdir $(GEN_DERIV))))

# The plugins below lib/kernels have make fragments of their own.
LIB_DIRS  := base storage storage/provider core sharing io dispatch iter ops ops/* ops/*/* kernels/lapack batch autograd autograd/* train train/* group group/engine group/local remote
LIB_SRC   := $(wildcard $(LIB_DIRS:%=lib/%/*.c)) lib/kernels/cpu/init.c
CPU_SRC   := $(wildcard lib/kernels/cpu/*/*.c lib/kernels/cpu/*/*/*.c)
# Fewer make a quicker build for the machine at hand: make LEVELS=v3.
LEVELS    := v2 v3 v4

# A header of the library is included by its path below lib/, a generated one by that below build/gen.
CPPFLAGS_LIB := $(CPPFLAGS_ALL) -Ilib -I$(GEN)
LIB_CFLAGS := -std=gnu11 $(CFLAGS) $(WARN) -fPIC -fvisibility=hidden -fwrapv -ffp-contract=off \
              -fno-math-errno -fno-trapping-math -pthread $(SANITIZE) -MMD -MP
LIB_LIBS   := -lsleef -lz -ldl -lm -pthread
# Complex products without C99's second look at NaN, quotients with its range: as in Fortran. With sanitizers -O3
# takes twice the time of -O1 to compile, and its tests are no faster.
CPU_CFLAGS := $(if $(SANITIZE),-O1,-O3) -fcx-fortran-rules -Wno-psabi -Wno-type-limits
LEVEL_v4   := -mprefer-vector-width=512
# Products may round once where a multiplication and an addition round twice. With -O1, GCC makes fused operations with
# the second option alone; some functions are less exact without them.
CONTRACTED := -ffp-contract=fast -fexpensive-optimizations
CPU_CFLAGS_matmul_f32 := $(CONTRACTED)
CPU_CFLAGS_matmul_f64 := $(CONTRACTED)
CPU_CFLAGS_matmul_reduced_float := $(CONTRACTED)
CPU_CFLAGS_matmul_pairs := $(CONTRACTED)
CPU_CFLAGS_math := $(CONTRACTED)
CPU_CFLAGS_activation_exp := $(CONTRACTED)
CPU_CFLAGS_special := $(CONTRACTED)
CPU_CFLAGS_distance := $(CONTRACTED)
CPU_CFLAGS_dot := $(CONTRACTED)
CPU_CFLAGS_fft := $(CONTRACTED)
CPU_CFLAGS_conv_f32 := $(CONTRACTED)
CPU_CFLAGS_conv_f64 := $(CONTRACTED)
CPU_CFLAGS_conv_pairs := $(CONTRACTED)
CPU_CFLAGS_sparse := $(CONTRACTED)
CPU_CFLAGS_lstm := $(CONTRACTED)
CPU_CFLAGS_softmax := $(CONTRACTED)
CPU_CFLAGS_attention_f32 := $(CONTRACTED)
CPU_CFLAGS_attention_f64 := $(CONTRACTED)
CPU_CFLAGS_attention_pairs := $(CONTRACTED)
CPU_CFLAGS_reduce_moments := $(CONTRACTED)
CPU_CFLAGS_reduce_logsumexp := $(CONTRACTED)

LIB_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(LIB_SRC)) \
           $(patsubst $(GEN)/%.c,$(B)/obj/gen/%.o,$(GEN_C)) \
           $(foreach l,$(LEVELS),$(patsubst %.c,$(B)/obj/%.$(l).o,$(CPU_SRC)))

LIB_SO  := $(B)/libtensor.so.$(SOVERSION)
ALL     += $(LIB_SO) $(B)/libtensor.so

# Without a file that it read, the generated sources are old: a file that was deleted changes no time stamp.
GEN_READS := $(sort $(GEN_PY) $(GEN_OPS) $(GEN_DERIV) $(wildcard tests/reference/examples/*/*.txt) python/devtensor/_C.pyi.in)
ifneq ($(GEN_READS),$(shell cat $(GEN)/reads 2>/dev/null))
$(shell rm -f $(GEN)/stamp)
endif

# The generator checks that the sources define the functions and kernels that the entries name.
$(GEN)/stamp: $(GEN_READS) $(LIB_SRC) $(CPU_SRC)
	@mkdir -p $(GEN)
	$(call say,GEN,$(GEN))
	$(Q)$(PYTHON) lib/schema/gen/gen.py lib/schema/ops lib/schema/derivatives $(GEN)
	@echo $(GEN_READS) >$(GEN)/reads

$(GEN_C) $(GEN_H): $(GEN)/stamp ;

$(B)/obj/gen/%.o: $(GEN)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_LIB) $(LIB_CFLAGS) -c -o $@ $<

# Files that depend on LEVELS are compiled again when LEVELS changes.
.PHONY: always
$(B)/obj/levels: always
	@mkdir -p $(@D)
	@echo '$(LEVELS)' | cmp -s - $@ || echo '$(LEVELS)' >$@
$(B)/obj/lib/kernels/cpu/init.o $(LIB_SO): $(B)/obj/levels

$(B)/obj/lib/kernels/cpu/init.o: LIB_CFLAGS += -DCPU_LEVELS='"$(LEVELS)"'

$(B)/obj/lib/%.o: lib/%.c | $(GEN)/stamp
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_LIB) $(LIB_CFLAGS) -c -o $@ $<

define level_rule
$(B)/obj/lib/kernels/cpu/%.$(1).o: lib/kernels/cpu/%.c | $(GEN)/stamp
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $$(CPPFLAGS_LIB) $$(LIB_CFLAGS) $$(CPU_CFLAGS) -march=x86-64-$(1) \
		$$(LEVEL_$(1)) $$(CPU_CFLAGS_$$(notdir $$*)) -DCPU_LEVEL=$(1) -c -o $$@ $$<
endef
$(foreach l,$(LEVELS),$(eval $(call level_rule,$(l))))

$(LIB_SO): $(LIB_OBJ) lib/libtensor.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libtensor.so.$(SOVERSION) -Wl,--version-script=lib/libtensor.map \
		-Wl,-z,defs -Wl,-z,nodelete $(LDFLAGS) $(SANITIZE) -o $@ $(LIB_OBJ) $(LIB_LIBS)

$(B)/libtensor.so: $(LIB_SO)
	$(Q)ln -sf $(<F) $@

-include $(LIB_OBJ:.o=.d)
