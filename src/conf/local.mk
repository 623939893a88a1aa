# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libconf.la
libconf_la_SOURCES = \
	src/conf/conf.c src/conf/conf.h \
	src/conf/yaml.c src/conf/yaml.h
libconf_la_CFLAGS = $(AM_CFLAGS) $(YAML_CFLAGS)
libconf_la_LIBADD = $(YAML_LIBS)
# End of src/conf
