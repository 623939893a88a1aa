# SPDX-License-Identifier: BSD-3-Clause
OP_RIG = tests/op/op_cases.c tests/op/op_cases.h \
	tests/op/op_rig.c tests/op/op_rig.h
OP_TEST_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/op
OP_TEST_LIBS = libop.la libdev.la libbase.la $(TEST_LIBS)

check_PROGRAMS += tests/op/test_op_check
tests_op_test_op_check_SOURCES = tests/op/test_op_check.c $(OP_RIG)
tests_op_test_op_check_CPPFLAGS = $(OP_TEST_CPPFLAGS)
tests_op_test_op_check_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_check_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_grad
tests_op_test_op_grad_SOURCES = tests/op/test_op_grad.c $(OP_RIG)
tests_op_test_op_grad_CPPFLAGS = $(OP_TEST_CPPFLAGS)
tests_op_test_op_grad_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_grad_LDADD = $(OP_TEST_LIBS)
# End of tests/op
