# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Unit tests: every tests/unit/test_*.c is a program of its own on cmocka. `make test-unit` runs
# them; `make test-sanitize` runs them again with the library under ASan and UBSan.

UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(patsubst tests/unit/%.c,$(B)/tests/%,$(UNIT_SRC))

$(B)/tests/%: tests/unit/%.c tests/unit/check.h $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) -o $@ $< -L$(B) -ltensor \
		-Wl,-rpath,$(abspath $(B)) -lcmocka -lm -pthread

.PHONY: unit test-unit test-sanitize
unit: $(UNIT_BIN)
test-unit: unit
	$(Q)tests/run-unit $(B) unit $(UNIT_BIN)

# Leaks count: what the library keeps on purpose is reachable.
test-sanitize:
	$(Q)$(MAKE) B=build/asan SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=all" \
		CFLAGS="-O1 -g" TALLY=build unit
	$(Q)tests/run-unit build sanitize $(patsubst tests/unit/%.c,build/asan/tests/%,$(UNIT_SRC))
