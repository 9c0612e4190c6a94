# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The Python package: an extension module on the stable ABI, in build/python/devtensor with the modules in
# Python and the library, so that PYTHONPATH=build/python is enough to use it.

PY_OUT   := $(B)/python/devtensor
PY_SRC   := $(wildcard python/src/*.c)
PY_OBJ   := $(PY_SRC:python/src/%.c=$(B)/obj/python/%.o) $(B)/obj/python/operators.o
PY_FILES := $(wildcard python/devtensor/*.py python/devtensor/*/*.py python/devtensor/*/*/*.py)
PY_EXT   := $(PY_OUT)/_C.abi3.so
PY_INCLUDE = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
PY_CFLAGS := -std=gnu11 $(CFLAGS) $(WARN) -Wno-missing-field-initializers -fPIC -fvisibility=hidden $(SANITIZE) -MMD -MP

.PHONY: python python-deps
python-deps:
	@packaging/install-deps build python

python: $(PY_EXT) $(PY_FILES:python/devtensor/%=$(PY_OUT)/%) $(PY_OUT)/libtensor.so.$(SOVERSION)

$(B)/obj/python/%.o: python/src/%.c | $(GEN)/stamp
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -DPy_LIMITED_API=0x030B0000 -isystem $(PY_INCLUDE) $(PY_CFLAGS) -c -o $@ $<

$(B)/obj/python/operators.o: $(GEN)/stamp
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -Ipython/src -DPy_LIMITED_API=0x030B0000 -isystem $(PY_INCLUDE) $(PY_CFLAGS) -c -o $@ \
		$(GEN)/python/operators.c

$(PY_EXT): $(PY_OBJ) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(LDFLAGS) $(SANITIZE) -Wl,-rpath,'$$ORIGIN' -o $@ $(PY_OBJ) -L$(B) -ltensor

$(PY_OUT)/libtensor.so.$(SOVERSION): $(LIB_SO)
	@mkdir -p $(@D)
	$(Q)ln -sf $(abspath $(LIB_SO)) $@

$(PY_OUT)/%.py: python/devtensor/%.py
	@mkdir -p $(@D)
	$(Q)cp $< $@

-include $(PY_OBJ:.o=.d)
