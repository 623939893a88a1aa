# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""cddp for Spack 1.0 and later: ADMIN.md, "Spack", says where this file belongs."""
import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Cddp(AutotoolsPackage, CudaPackage):
    """Distributed training of neural networks as a Slurm batch job, in C."""

    # The tarball of `make dist`, in the directory in which spack is called.
    manual_download = True
    url = f"file://{os.getcwd()}/cddp-0.1.0.tar.gz"

    license("BSD-3-Clause")

    version("0.1.0")

    variant("mpi", default=True, description="MPI-IO by parallel HDF5")
    variant("import", default=True, description="PNG, JPEG and .npz files for cddp-data")
    variant("tensorboard", default=True, description="Files for TensorBoard")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("pkgconfig", type="build")

    # The one that Slurm was built with: see packages.yaml in ADMIN.md.
    depends_on("pmix")
    depends_on("ucx")
    depends_on("onednn@2.6: cpu_runtime=omp")
    depends_on("hdf5@1.10:")
    depends_on("hdf5+mpi", when="+mpi")
    depends_on("hdf5~mpi", when="~mpi")
    depends_on("mpi", when="+mpi")
    depends_on("libyaml")
    depends_on("jansson")
    depends_on("xxhash")
    depends_on("hwloc")
    depends_on("zlib-api")
    depends_on("protobuf-c", when="+tensorboard")
    depends_on("isa-l", when="+tensorboard")
    depends_on("libpng", when="+import")
    depends_on("libjpeg-turbo", when="+import")
    depends_on("libzip", when="+import")
    depends_on("pcre2", when="+import")
    depends_on("cuda@12.0:", when="+cuda")
    depends_on("cudnn@9.10:", when="+cuda")
    depends_on("nccl@2.20:", when="+cuda")
    depends_on("criterion", type="test")

    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=90")

    def configure_args(self):
        spec = self.spec
        args = [
            "--with-mpi" if spec.satisfies("+mpi") else "--without-mpi",
            f"--with-hdf5={spec['hdf5'].prefix}",
            f"--with-onednn={spec['onednn'].prefix}",
        ]
        if spec.satisfies("+tensorboard"):
            args += ["--with-protobufc", "--with-isal"]
        else:
            args += ["--without-protobufc", "--without-isal"]
        if spec.satisfies("+import"):
            args += ["--with-libpng", "--with-libjpeg", "--with-libzip", "--with-pcre2"]
        else:
            args += [
                "--without-libpng",
                "--without-libjpeg",
                "--without-libzip",
                "--without-pcre2",
            ]
        if spec.satisfies("+cuda"):
            args += [
                f"--with-cuda={spec['cuda'].prefix}",
                f"--with-cudnn={spec['cudnn'].prefix}",
                f"--with-nccl={spec['nccl'].prefix}",
                "--with-cuda-arch=" + ",".join(spec.variants["cuda_arch"].value),
            ]
        else:
            args.append("--without-cuda")
        return args

    def setup_run_environment(self, env):
        """What the module of `make install` sets, too, which says why."""
        env.set("CDDP_ROOT", self.prefix)
        env.set("SLURM_WAIT", "120")
        env.set("SLURM_PMIX_TIMEOUT", "60")
        env.set("SLURM_PMIX_FENCE", "ring")
        env.set("OMPI_MCA_io", "^ompio")
        env.set("HDF5_USE_FILE_LOCKING", "FALSE")
