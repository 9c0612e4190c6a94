# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# libtensor_onednn.so.0, if oneDNN's headers are found (Debian's libdnnl-dev); otherwise prints a line.
# Requires version 2: version 3 has other functions.

ONEDNN_HEADER  := $(or $(shell printf '\043include <oneapi/dnnl/dnnl_version.h>\nDNNL_VERSION_MAJOR' | \
                      $(CC) -E -P -xc - 2>/dev/null | tail -1),none)

ifeq ($(ONEDNN_HEADER),2)

ONEDNN_SO  := $(B)/libtensor_onednn.so.$(SOVERSION)
ONEDNN_C   := $(wildcard lib/kernels/onednn/*.c)
ONEDNN_OBJ := $(ONEDNN_C:%.c=$(B)/obj/%.o)

ALL += $(ONEDNN_SO)

# LeakSanitizer does not see the thread-local storage of libraries opened by dlopen(), so sanitized
# tests link oneDNN.
ifneq ($(SANITIZE),)
ONEDNN_TEST_LIBS := -Wl,--no-as-needed -ldnnl
endif

# OpenMP is linked for omp_set_num_threads(); oneDNN uses it.
$(ONEDNN_SO): $(ONEDNN_OBJ) $(LIB_SO) $(B)/libtensor.so lib/kernels/onednn/plugin.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/kernels/onednn/plugin.map \
		-Wl,-z,defs -Wl,-rpath,'$$ORIGIN' $(SANITIZE) -o $@ $(ONEDNN_OBJ) -L$(B) -ltensor \
		-ldnnl -lgomp -pthread

-include $(ONEDNN_OBJ:.o=.d)

else

.PHONY: no-onednn
no-onednn:
	$(call say,SKIP,libtensor_onednn: oneDNN 2 is needed (libdnnl-dev); found: $(ONEDNN_HEADER))
ALL += no-onednn

endif
