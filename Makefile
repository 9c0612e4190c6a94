# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# `make help` lists the targets (packaging/targets.txt). Every folder has its own fragment. Nothing is
# written outside build/, except by install, uninstall, format and the accept targets.

VERSION   := 0.1.0
SOVERSION := 0
PREFIX    ?= /usr/local
LIBDIR    ?= $(PREFIX)/lib
DESTDIR   ?=
B         := build
CC        := gcc
PYTHON    := /usr/bin/python3

CFLAGS    ?= -O2 -g
WARN      := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wshadow \
             -Wno-unused-parameter
CPPFLAGS_ALL := -Iinclude -Iinclude/uapi -I$(B)/gen/include -D_GNU_SOURCE

# One line for each step; make V=1 shows the commands. With STEPS, the number of steps that
# packaging/build-steps has counted, the line has [n/m] and an estimate of the time left.
Q   := $(if $(V),,@)
say  = $(if $(V),,$(if $(STEPS),$(call say_progress,$(1),$(2)),@printf '  %-7s %s\n' '$(1)' '$(2)'))
# Recipes are expanded one after the other by one make, so that a variable of make can count them: a word
# for each step, and one for each unit of its weight.
STEPS_DONE :=
STEPS_WEIGHT :=
step_weight = $(if $(filter %.v2.o %.v3.o %.v4.o,$(1)),x x x x x x x x x,x)
say_progress = $(eval STEPS_DONE += x)$(eval STEPS_WEIGHT += $(call step_weight,$(2)))@packaging/build-steps print \
	$(words $(STEPS_DONE)) $(words $(STEPS_WEIGHT)) '$(STEPS)' '$(1)' '$(2)'
# $(call build,TARGETS): builds them in parallel, with [n/m].
build = packaging/build-steps make $(1)

# The instruction-set level that this machine runs: enough for a build that stays on it.
HOST_LEVEL = $(shell packaging/host-level)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

include $(wildcard lib/lib.mk lib/kernels/cuda/cuda.mk lib/kernels/onednn/onednn.mk lib/group/mpi/mpi.mk lib/remote/ucx/ucx.mk kmod/kmod.mk python/python.mk tools/tools.mk tests/tests.mk \
	tests/conformance/conformance.mk tests/array_api/array_api.mk tests/vm/vm.mk bench/bench.mk examples/examples.mk tests/static/static.mk packaging/*.mk)

.PHONY: all help debug clean
all: $(ALL)

help:
	@packaging/help packaging/targets.txt

# Without optimisation, for gdb; beside the other build. The kernels' own -O3 is left out, too.
debug:
	@$(MAKE) --no-print-directory B=build/debug CFLAGS="-O0 -g3" CPU_CFLAGS="$(filter-out -O%,$(CPU_CFLAGS))" \
		LEVELS="$(HOST_LEVEL)" all unit

clean:
	rm -rf $(B)
