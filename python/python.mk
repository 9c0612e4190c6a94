# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The Python package: an extension module on the stable ABI, in build/python/devtensor with the modules in
# Python and the library, so that PYTHONPATH=build/python is enough to use it.

# With another name, for another interpreter: make PY_NAME=python-debug PY_DEFINES=-DPy_DEBUG python.
PY_NAME  := python
PY_OUT   := $(B)/$(PY_NAME)/devtensor
PY_SRC   := $(wildcard python/src/*.c)
PY_OBJ   := $(PY_SRC:python/src/%.c=$(B)/obj/$(PY_NAME)/%.o) $(B)/obj/$(PY_NAME)/operators.o
PY_FILES := $(wildcard python/devtensor/*.py python/devtensor/*/*.py python/devtensor/*/*/*.py) python/devtensor/py.typed
PY_EXT   := $(PY_OUT)/_C.abi3.so
PY_INCLUDE = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
PY_CFLAGS := -std=gnu11 $(CFLAGS) $(WARN) -Wno-missing-field-initializers -fPIC -fvisibility=hidden $(SANITIZE) -MMD -MP

.PHONY: python python-deps
python-deps:
	@packaging/install-deps build python python-test

python: $(PY_EXT) $(PY_FILES:python/devtensor/%=$(PY_OUT)/%) $(PY_OUT)/_C.pyi $(PY_OUT)/libtensor.so.$(SOVERSION)

$(B)/obj/$(PY_NAME)/%.o: python/src/%.c | $(GEN)/stamp
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -DPy_LIMITED_API=0x030B0000 $(PY_DEFINES) -isystem $(PY_INCLUDE) $(PY_CFLAGS) -c -o $@ $<

$(B)/obj/$(PY_NAME)/operators.o: $(GEN)/stamp
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -Ipython/src -DPy_LIMITED_API=0x030B0000 $(PY_DEFINES) -isystem $(PY_INCLUDE) $(PY_CFLAGS) -c -o $@ \
		$(GEN)/python/operators.c

$(PY_EXT): $(PY_OBJ) $(B)/libtensor.so
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(LDFLAGS) $(SANITIZE) -Wl,-rpath,'$$ORIGIN' -o $@ $(PY_OBJ) -L$(B) -ltensor

$(PY_OUT)/libtensor.so.$(SOVERSION): $(LIB_SO)
	@mkdir -p $(@D)
	$(Q)ln -sfr $(LIB_SO) $@

$(PY_OUT)/%: python/devtensor/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

$(PY_OUT)/_C.pyi: $(GEN)/stamp
	@mkdir -p $(@D)
	$(Q)cp $(GEN)/python/_C.pyi $@

# ---- wheels ----

# The libraries in a wheel: without debug information, and libsleef is found beside libtensor. python/CMakeLists.txt
# calls this target.
PY_BUNDLE := $(B)/python/bundle

.PHONY: python-bundle
python-bundle: $(PY_BUNDLE)/libtensor.so.$(SOVERSION)

$(PY_BUNDLE)/libtensor.so.$(SOVERSION): $(LIB_SO)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -s -Wl,-soname,libtensor.so.$(SOVERSION) -Wl,--version-script=lib/libtensor.map \
		-Wl,-z,defs -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN' $(LDFLAGS) -o $@ $(LIB_OBJ) $(LIB_LIBS)
	$(Q)cp -L "$$($(CC) -print-file-name=libsleef.so.3)" $(@D)/libsleef.so.3

# The platform tag has the version of glibc that the library was linked with.
.PHONY: wheel
wheel:
	$(Q)python/wheel $(B)/python/wheel

-include $(PY_OBJ:.o=.d)
