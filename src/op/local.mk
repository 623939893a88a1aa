# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libop.la
libop_la_SOURCES = \
	src/op/op.c src/op/op.h src/op/op_ops.h src/op/op_shape.c \
	src/op/op_mask.c src/op/op_mask.h src/op/registry.c \
	src/op/ref/ref.c src/op/ref/ref.h \
	src/op/ref/linear.c src/op/ref/conv.c src/op/ref/relu.c \
	src/op/ref/maxpool.c src/op/ref/batchnorm.c src/op/ref/dropout.c \
	src/op/ref/flatten.c src/op/ref/cross_entropy.c src/op/ref/mse.c
libop_la_CFLAGS = $(AM_CFLAGS) $(ONEDNN_CFLAGS)
libop_la_LIBADD = $(ONEDNN_LIBS)
# End of src/op
