# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# devtensor: `make demo` and `make test` install what they need and run.
# Every folder brings its own fragment; nothing is written outside build/.

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

# One line for each step; make V=1 shows the commands.
Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)')

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

include $(wildcard lib/lib.mk lib/kernels/cuda/cuda.mk lib/kernels/onednn/onednn.mk kmod/kmod.mk tools/tools.mk tests/tests.mk \
	tests/conformance/conformance.mk tests/array_api/array_api.mk tests/vm/vm.mk bench/bench.mk examples/examples.mk tests/static/static.mk packaging/*.mk)

.PHONY: all clean
all: $(ALL)

clean:
	rm -rf $(B)
