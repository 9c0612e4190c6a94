# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Unit tests: every tests/unit/test_*.c is a program of its own on cmocka. `make test-unit` runs
# them; `make test-sanitize` runs them again with the library under ASan and UBSan.

UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(patsubst tests/unit/%.c,$(B)/tests/%,$(UNIT_SRC))

$(B)/tests/%: tests/unit/%.c $(wildcard tests/unit/*.h) $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) -o $@ $< -L$(B) -ltensor \
		-Wl,-rpath,$(abspath $(B)) -lcmocka -lm -pthread

.PHONY: unit test test-unit test-sanitize test-shell
# Everything that fits into a coffee break; `make test-kernels` is the rest.
test:
	@packaging/install-deps build test guest
	@$(MAKE) --no-print-directory all unit
	@tests/run-all $(B) test-unit=unit test-sanitize=sanitize test-shell=shell test-guest=guest-6.1

unit: $(UNIT_BIN) $(TENSORSTAT)
test-unit: unit
	$(Q)tests/run-unit $(B) unit $(UNIT_BIN)

test-shell: all
	$(Q)tests/run-shell $(B) shell $(wildcard tests/shell/*.sh)

# Leaks count: what the library keeps on purpose is reachable.
test-sanitize:
	$(Q)$(MAKE) B=build/asan SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=all" \
		CFLAGS="-O1 -g" unit
	$(Q)tests/run-unit build sanitize $(patsubst tests/unit/%.c,build/asan/tests/%,$(UNIT_SRC))
