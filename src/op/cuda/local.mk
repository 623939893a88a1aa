# SPDX-License-Identifier: BSD-3-Clause
# The op backend "cuda", a part of the plugin (src/cuda).
libcddp_cuda_la_SOURCES += \
	src/op/cuda/attention.h \
	src/op/cuda/attention_plan.c \
	src/op/cuda/attention_plan.h \
	src/op/cuda/attention_share.c \
	src/op/cuda/attention_share.h \
	src/op/cuda/blas.c \
	src/op/cuda/blas.h \
	src/op/cuda/channels.h \
	src/op/cuda/columns.h \
	src/op/cuda/conv.c \
	src/op/cuda/conv.h \
	src/op/cuda/conv_plan.c \
	src/op/cuda/conv_plan.h \
	src/op/cuda/cuda.c \
	src/op/cuda/cuda.h \
	src/op/cuda/cudnn_graph.c \
	src/op/cuda/cudnn_graph.h \
	src/op/cuda/cudnn_graph_priv.h \
	src/op/cuda/cudnn_plan.c \
	src/op/cuda/launch.h \
	src/op/cuda/libs.c \
	src/op/cuda/libs.h \
	src/op/cuda/lowrank.c \
	src/op/cuda/lowrank.h \
	src/op/cuda/ops/attention_bf16.c \
	src/op/cuda/ops/conv.c \
	src/op/cuda/ops/conv_bf16.c \
	src/op/cuda/ops/linear.c \
	src/op/cuda/ops/matmul.c \
	src/op/cuda/ops/recurrent.c \
	src/op/cuda/plain.c \
	src/op/cuda/plain.h \
	src/op/cuda/planes.h \
	src/op/cuda/recurrent.h \
	src/op/cuda/room.h
CUDA_KERNELS += \
	src/op/cuda/channels.cu \
	src/op/cuda/columns.cu \
	src/op/cuda/ops/activation.cu \
	src/op/cuda/ops/adaptive.cu \
	src/op/cuda/ops/attention.cu \
	src/op/cuda/ops/batchnorm.cu \
	src/op/cuda/ops/broadcast.cu \
	src/op/cuda/ops/combine.cu \
	src/op/cuda/ops/concat.cu \
	src/op/cuda/ops/cross_entropy.cu \
	src/op/cuda/ops/dropout.cu \
	src/op/cuda/ops/embedding.cu \
	src/op/cuda/ops/flatten.cu \
	src/op/cuda/ops/fold.cu \
	src/op/cuda/ops/half.cu \
	src/op/cuda/ops/hash.cu \
	src/op/cuda/ops/lowrank.cu \
	src/op/cuda/ops/norm.cu \
	src/op/cuda/ops/pad.cu \
	src/op/cuda/ops/permute.cu \
	src/op/cuda/ops/pointwise.cu \
	src/op/cuda/ops/pool.cu \
	src/op/cuda/ops/position.cu \
	src/op/cuda/ops/prelu.cu \
	src/op/cuda/ops/reduce.cu \
	src/op/cuda/ops/relu.cu \
	src/op/cuda/ops/resize.cu \
	src/op/cuda/ops/rotary.cu \
	src/op/cuda/ops/softmax.cu \
	src/op/cuda/ops/sum.cu \
	src/op/cuda/planes.cu \
	src/op/cuda/recurrent.cu
# What the .cu files include.
CUDA_PARTS += \
	src/op/cuda/device/activation.cuh \
	src/op/cuda/device/channels.cuh \
	src/op/cuda/device/copy.cuh \
	src/op/cuda/device/curves.cuh \
	src/op/cuda/device/each.cuh \
	src/op/cuda/device/index.cuh \
	src/op/cuda/device/pack.cuh \
	src/op/cuda/device/philox.cuh \
	src/op/cuda/device/reduce.cuh \
	src/op/cuda/device/round.cuh \
	src/op/cuda/device/rows.cuh \
	src/op/cuda/device/sort.cuh \
	src/op/cuda/device/space.cuh \
	src/op/cuda/device/total.cuh
# End of src/op/cuda
