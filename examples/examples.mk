# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Programs of one file and one topic each, which tests/shell/examples.sh executes; and three programs that
# train on shared memory: `make demo` executes them here, `make demo-vm` in a guest on the module.

EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(wildcard examples/*.c))

$(B)/examples/%: examples/%.c $(wildcard include/tensor/*.h) $(GEN)/include/tensor/ops.h | $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) -o $@ $< -L$(B) -ltensor \
		-Wl,-rpath,'$$ORIGIN/..' -lm -pthread

ALL += $(EXAMPLES)

DIGITS     := $(addprefix $(B)/bin/digits-,loader trainer watcher)
DIGITS_DIR := examples/digits

$(B)/bin/digits-%: $(DIGITS_DIR)/%.c $(DIGITS_DIR)/common.c $(DIGITS_DIR)/common.h \
		$(wildcard include/tensor/*.h) $(GEN)/include/tensor/ops.h | $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) -o $@ $< $(DIGITS_DIR)/common.c \
		-L$(B) -ltensor -Wl,-rpath,'$$ORIGIN/..' -lm

ALL += $(DIGITS)

# Training programs, which share a file for their arguments, steps and checkpoints.
TRAINING_COMMON := $(addprefix examples/training/,common.c digits.c ranks.c)
TRAINING := $(patsubst examples/training/%.c,$(B)/examples/%,$(filter-out $(TRAINING_COMMON),$(wildcard examples/training/*.c)))

$(TRAINING): $(B)/examples/%: examples/training/%.c $(TRAINING_COMMON) examples/training/common.h \
		$(wildcard include/tensor/*.h) $(GEN)/include/tensor/ops.h | $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) -o $@ $< $(TRAINING_COMMON) \
		-L$(B) -ltensor -Wl,-rpath,'$$ORIGIN/..' -lm -pthread

ALL += $(TRAINING)

.PHONY: demo demo-vm demo-deps demo-programs
demo-deps:
	@packaging/install-deps build

# The demo needs no plugin. On this machine it needs one instruction-set level, too: in an empty build folder
# `make demo` compiles that one alone, and in another it keeps the levels that are there.
DEMO_LEVELS = $(or $(shell cat $(B)/obj/levels 2>/dev/null),$(HOST_LEVEL))

demo-programs: $(LIB_SO) $(B)/libtensor.so $(DIGITS) $(TENSORSTAT)

demo: demo-deps
	+@$(call build,demo-programs LEVELS="$(if $(filter file,$(origin LEVELS)),$(DEMO_LEVELS),$(LEVELS))")
	@$(DIGITS_DIR)/run $(B)/bin

demo-vm: demo-deps
	@packaging/install-deps guest
	+@$(call build,demo-programs)
	@tests/vm/run --kernel $(or $(KERNEL),6.1) --smp 2 --add $(B)/bin:/t/bin --add $(B)/$(notdir $(LIB_SO)):/t/ \
		--add $(DIGITS_DIR)/run:/t/digits/run --add $(DIGITS_DIR)/digits.csv:/t/digits/digits.csv \
		-- '/t/digits/run /t/bin'
