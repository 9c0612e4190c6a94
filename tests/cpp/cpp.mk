# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Tests of the headers in C++: every tests/cpp/test_*.cc is a program that writes TAP, a part of `unit`.
# Without a C++ compiler each is a script that reports this and counts as skipped.

CXX       ?= g++
CXX_STD   ?= c++17
CXX_FOUND := $(shell command -v $(firstword $(CXX)))
CPP_SRC   := $(wildcard tests/cpp/test_*.cc)
CPP_BIN   := $(patsubst tests/cpp/%.cc,$(B)/tests/%,$(CPP_SRC))
CPP_WARN  := -Wall -Wextra -Wpedantic -Werror

$(CPP_BIN): $(B)/tests/%: tests/cpp/%.cc tests/cpp/check.hpp $(wildcard include/tensor/*.h include/tensor/*.hpp) $(GEN)/stamp \
		$(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CXX,$@)
ifeq ($(CXX_FOUND),)
	$(Q)printf '#!/bin/sh\necho 1..1\necho "ok 1 - %s # SKIP there is no %s"\n' '$(@F)' '$(CXX)' >$@
	$(Q)chmod 755 $@
	@echo '$(@F) is skipped: there is no $(CXX) (packaging/packages.txt)' >&2
else
	$(Q)$(CXX) $(CPPFLAGS_ALL) -std=$(CXX_STD) $(CFLAGS) $(CPP_WARN) $(SANITIZE) -o $@ $< -L$(B) -ltensor \
		-Wl,-rpath,$(abspath $(B)) -pthread
endif
