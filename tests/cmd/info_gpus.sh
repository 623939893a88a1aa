#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# What cddp-info prints about GPUs and their places: the GPUs are emulated
# (tests/cuda), and /sys is made up. Also: the threads of a rank stay on the
# cores near its GPU.
set -u
build=$PWD
export CDDP_CUDA_PLUGIN=$build/.libs/libcddp_cuda_emu.so
[ -e "$CDDP_CUDA_PLUGIN" ] || {
    echo "SKIP: this build has no CUDA, so there is no $CDDP_CUDA_PLUGIN"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
export OMP_NUM_THREADS=1
unset CUDA_VISIBLE_DEVICES

fail() {
    echo "FAIL: $*"
    failed=1
}

# device PATH LINK NUMA CORES: make a device in the made-up /sys.
export CDDP_SYSFS=$scratch/sys
device() {
    mkdir -p "$CDDP_SYSFS/devices/$1" "$(dirname "$CDDP_SYSFS/$2")"
    ln -s "$CDDP_SYSFS/devices/$1" "$CDDP_SYSFS/$2"
    echo "$3" >"$CDDP_SYSFS/$2/numa_node"
    echo "$4" >"$CDDP_SYSFS/$2/local_cpulist"
}
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
device pci0000:00/0000:00:01.0/0000:10:00.0/0000:01:00.0 \
    bus/pci/devices/0000:01:00.0 0 "$core"
device pci0000:80/0000:80:01.0/0000:02:00.0 bus/pci/devices/0000:02:00.0 1 1000
device pci0000:00/0000:00:01.0/0000:10:01.0/0000:03:00.0 \
    class/infiniband/mlx5_0/device 0 "$core"

# topology SETTINGS: write the output of --topology to out.txt, which "says"
# reads.
topology() {
    CDDP_FAKE_CUDA=$1 "$build/cddp-info" --topology >out.txt 2>&1 ||
        fail "$1: status $?: $(cat out.txt)"
}

says() {
    grep -q -e "$1" out.txt || fail "no \"$1\" in: $(cat out.txt)"
}

cd "$scratch" || exit 1
topology "devices=2 links=2"
says '^  rank 0: '
says '^    gpu 0: NVIDIA H200 (emulated), GPU-.*, 0000:01:00.0, numa 0, nic mlx5_0 (same switch), GPUDirect RDMA only by dma-buf'
says '^    gpu 1: .* 0000:02:00.0, numa 1, nic mlx5_0 (far)'
says '^    gpus 0-1: direct by NVLink$'
says '^    nccl: on this node P2P by NVLink; to others NET/IB with GPUDirect$'
mkdir -p "$CDDP_SYSFS/module/nvidia_peermem"
topology "devices=2 links=1"
says '^    gpu 0: .*, GPUDirect RDMA yes$'
says '^    gpus 0-1: direct by PCI$'
topology "devices=3 links=0"
says '^    gpu 0: .*, GPUDirect RDMA no$'
says '^    gpu 2: .* 0000:03:00.0, numa unknown'
says '^    gpus 0-1 0-2 1-2: through the host$'
says '^    nccl: on this node SHM; to others NET/IB through the host$'
topology "devices=1"
says '^    nccl: on this node SHM, as this rank sees one GPU only;'
CDDP_SYSFS=$scratch topology "devices=1"
says 'no InfiniBand card'
says 'NET/Socket'
topology "devices=0"
says '^    no gpu: the NVIDIA driver sees no GPU'

# ---- NCCL -----------------------------------------------------------------------
"$build/cddp-info" >out.txt 2>&1
says '^nccl    [0-9]*\.[0-9]*\.[0-9]*$'
CDDP_FAKE_CUDA="nccl=0" "$build/cddp-info" >out.txt 2>&1
says '^nccl    none: libnccl.so.2 was not found: .*ddp.backend: ucx$'
CDDP_FAKE_CUDA="devices=0" "$build/cddp-info" >out.txt 2>&1
! grep '^nccl' out.txt || fail "NCCL without a GPU: $(cat out.txt)"

# ---- threads stay near ----------------------------------------------------------
"$build/cddp-data" make ising -o data --train 32 --valid 8 --shards 1 \
    >/dev/null || exit 1
cat >run.yaml <<'YAML'
data: {train: "data/train-*.h5", valid: "data/valid-*.h5",
       input: {path: /spins}, target: {path: /phase}}
model: {input: [1, 32, 32], layers: [flatten, {linear: {out: 2}}]}
loss: cross_entropy
optimizer: sgd
train: {epochs: 1, batch: 16, device: cuda, threads: 1}
YAML
# train SETTINGS: do a run, and write its output to out.txt.
train() {
    CDDP_LOG=debug CDDP_FAKE_CUDA=$1 "$build/cddp-train" --fresh run.yaml \
        >out.txt 2>&1 || fail "training: status $?: $(cat out.txt)"
}
train "devices=1 nccl=0"
if [ "$(env -u OMP_NUM_THREADS nproc)" -gt 1 ]; then
    says "threads stay on 1 of its [0-9]* cores, those near GPU 0000:01:00.0 ($core)"
else
    echo "not tested with one core: that threads stay near"
fi
CUDA_VISIBLE_DEVICES=1 train "devices=2"
says 'no core of this rank is near its GPU 0000:02:00.0, whose cores are 1000'
CDDP_FAKE_CUDA="devices=2 nccl=0" "$build/cddp-train" --fresh --local 2 \
    run.yaml >out.txt 2>&1
[ $? = 69 ] || fail "two ranks without NCCL: $(cat out.txt)"
says 'libnccl.so.2 was not found: .*; ddp.backend: ucx needs no NCCL'
exit $failed
