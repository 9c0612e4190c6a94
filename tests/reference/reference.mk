# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
#   make reference         the reference of all operators and the guides: HTML and man pages
#   make test-reference    the examples give the recorded results
#   make check-reference   man pages without warnings, variables of the environment, snippets of the guides
#   make reference-accept  records the results of the examples
REFERENCE := $(B)/tests/reference
REFERENCE_PY := $(wildcard tests/reference/*.py tests/reference/*.js tests/reference/*.css) tests/reference/pages

$(B)/obj/examples.o: $(GEN)/stamp $(wildcard tests/reference/*.h)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I. -std=gnu11 -O0 $(WARN) -Wno-unused-function $(SANITIZE) -c -o $@ \
		$(GEN)/examples.c

$(REFERENCE): tests/reference/reference.c $(B)/obj/examples.o $(LIB_SO) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) -o $@ $< $(B)/obj/examples.o \
		-L$(B) -ltensor -Wl,-rpath,$(abspath $(B)) -lm $(TEST_LIBS)

$(B)/reference/stamp: $(REFERENCE) $(GEN)/stamp $(REFERENCE_PY) $(wildcard docs/reference/*.md) docs/coming-from-pytorch.md
	@mkdir -p $(@D)
	$(Q)$(PYTHON) tests/reference/pages $(REFERENCE) $(VERSION) $(B)/reference
	@touch $@

.PHONY: reference reference-accept test-reference check-reference
reference: $(B)/reference/stamp
	@echo "$(B)/reference/html/index.html"
reference-accept: $(REFERENCE)
	$(Q)$(PYTHON) tests/reference/accept $<
test-reference: $(REFERENCE)
	$(Q)tests/run-unit $(B) reference $<
check-reference: $(B)/reference/stamp $(LIB_SO)
	@tests/vm/tally check-reference tests/static/check-reference $(B)
