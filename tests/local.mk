# SPDX-License-Identifier: BSD-3-Clause
# Tests mirror the sources; each is one Criterion program.
TEST_LIBS = $(CRITERION_LIBS)
TEST_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)

dist_check_SCRIPTS += tests/verdicts.sh

EXTRA_DIST += tests/bench/startup tests/bench/overlap tests/bench/hooks \
	tests/bench/reproducible tests/bench/link.sh
EXTRA_DIST += tests/bench/peers/peer.sh \
	tests/bench/peers/step-peers tests/bench/peers/step_peers.py \
	tests/bench/peers/ddp-peers tests/bench/peers/ddp_peers.py \
	tests/bench/peers/step_builds.py \
	tests/bench/peers/cosmoflow.yaml tests/bench/peers/gpt.yaml \
	tests/bench/peers/gpt2.yaml \
	tests/bench/peers/mlp.yaml tests/bench/peers/resnet18.yaml
EXTRA_DIST += tests/bench/allreduce-peers tests/bench/mpi_allreduce.c \
	tests/bench/ucx_exchange.c tests/bench/probe.h \
	tests/bench/gloo_allreduce.py

include tests/base/local.mk
include tests/conf/local.mk
include tests/boot/local.mk
include tests/comm/local.mk
include tests/dev/local.mk
include tests/op/local.mk
include tests/nn/local.mk
include tests/optim/local.mk
include tests/ddp/local.mk
include tests/obs/local.mk
include tests/train/local.mk
include tests/api/local.mk
include tests/cmd/local.mk
include tests/hdf5io/local.mk
include tests/fuzz/local.mk
include tests/slurm/local.mk
