# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make test-batch        compares tensor_vmap() with a loop for each call of an operator in the examples of the reference and
#                          in the unit tests BATCH_UNIT; gradients, too. A unit test itself may fail: its calls are repeated
BATCH_CHECK := $(B)/tests/batch-check.so
BATCH_UNIT  := $(patsubst %.c,$(B)/tests/%,$(notdir $(wildcard $(patsubst %,tests/unit/%/test_*.c,linalg nn index reduce shape pointwise sort train))))
# Their operators fail on purpose, or run in checkpoints, where the calls of the check would be saved, too.
BATCH_UNIT  := $(filter-out %_memory %/test_autocast,$(BATCH_UNIT))

$(BATCH_CHECK): tests/batch/check.c $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) -shared -fPIC -o $@ $< -L$(B) -ltensor -Wl,-rpath,$(abspath $(B))

.PHONY: test-batch
test-batch: $(BATCH_CHECK) $(REFERENCE) $(BATCH_UNIT)
	@failed=0; for t in $(REFERENCE) $(BATCH_UNIT); do \
		LD_PRELOAD=$(abspath $(BATCH_CHECK)) $$t >/dev/null 2>$(B)/tests/batch.txt; \
		if grep -q 'compared, 0 differ' $(B)/tests/batch.txt; \
		then echo "ok - $$(basename $$t): $$(grep 'calls compared' $(B)/tests/batch.txt)"; \
		else echo "not ok - $$(basename $$t)"; grep '^#' $(B)/tests/batch.txt | head -40; failed=1; fi; done; exit $$failed
