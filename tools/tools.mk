# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Programs for administrators. tensorstat links libnl and not libtensor, so that it runs on a machine
# without the library.

TENSORSTAT     := $(B)/bin/tensorstat
TENSORSTAT_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tools/tensorstat/*.c tools/tensorstat/*/*.c))
LIBNL_CFLAGS    = $(eval LIBNL_CFLAGS := $(shell pkg-config --cflags libnl-genl-3.0))$(LIBNL_CFLAGS)
LIBNL_LIBS      = $(eval LIBNL_LIBS := $(shell pkg-config --libs libnl-genl-3.0))$(LIBNL_LIBS)

ALL += $(TENSORSTAT)

$(B)/obj/tools/%.o: tools/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -I. -Itools/tensorstat $(LIBNL_CFLAGS) -DTENSOR_RELEASE='"$(VERSION)"' -std=gnu11 \
		$(CFLAGS) $(WARN) $(SANITIZE) -MMD -MP -c -o $@ $<

$(TENSORSTAT): $(TENSORSTAT_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(SANITIZE) -o $@ $^ $(LIBNL_LIBS) -lm

-include $(TENSORSTAT_OBJ:.o=.d)

# Starts programs with libtensor, and needs none itself.
TENSORRUN := $(B)/bin/tensorrun
ALL += $(TENSORRUN)

$(TENSORRUN): tools/tensorrun/tensorrun.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) $(LDFLAGS) -o $@ $<
