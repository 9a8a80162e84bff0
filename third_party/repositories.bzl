"""The source of each library outside the tree.

Debian's packages hold all of them but four: gRPC's internal headers, which no
package ships, TensorFlow, PyTorch, and CUDA's compiler. tools/setup takes the
headers from gRPC's own Debian source package, and TensorFlow and PyTorch, if
asked to, from PyPI. The compiler is used where it is installed. etcd's packages
are unpacked, not installed: one would start a server, and the other one needs
400 MB of Go's sources.
"""

def _grpc_source_impl(ctx):
    path = ctx.os.environ.get("PENSTOCK_GRPC_SOURCE", "")
    if not path:
        cache = ctx.os.environ.get("XDG_CACHE_HOME", "")
        if not cache:
            cache = ctx.os.environ.get("HOME", "/root") + "/.cache"
        path = cache + "/penstock/grpc-1.51.1"
    if not ctx.path(path + "/src/core").exists:
        fail("gRPC's headers are not in %s: run tools/setup first" % path)
    ctx.symlink(path + "/src", "src")
    ctx.symlink(path + "/test", "test")
    ctx.symlink(ctx.attr.build_file, "BUILD")

_grpc_source = repository_rule(
    implementation = _grpc_source_impl,
    attrs = {"build_file": attr.label(mandatory = True)},
    environ = ["PENSTOCK_GRPC_SOURCE", "XDG_CACHE_HOME", "HOME"],
    local = True,
)

# etcd's .proto files, and its server for tests: from the packages that
# tools/setup has unpacked, or that are installed.
def _etcd_impl(ctx):
    cache = ctx.os.environ.get("XDG_CACHE_HOME", "")
    if not cache:
        cache = ctx.os.environ.get("HOME", "/root") + "/.cache"
    roots = [cache + "/penstock/etcd", ""]
    found = []
    for root in roots:
        folder = root + "/usr/share/gocode/src/go.etcd.io"

        # Releases have the files in different folders.
        for name in ["etcdserverpb/rpc.proto", "mvccpb/kv.proto", "authpb/auth.proto"]:
            listed = ctx.execute(["find", folder, "-path", "*/" + name])
            if listed.return_code == 0 and listed.stdout.strip():
                found.append(listed.stdout.splitlines()[0])
        if len(found) == 3:
            break
        found = []
    if not found:
        fail("etcd's .proto files are neither in %s/penstock/etcd nor in " % cache +
             "/usr/share/gocode: run tools/setup, or install " +
             "golang-etcd-server-dev")
    for path in found:
        ctx.symlink(path, path.rpartition("/")[2])
    programs = [root + "/usr/bin/etcd" for root in roots]
    programs = [program for program in programs if ctx.path(program).exists]
    ctx.file("defs.bzl", "ETCD_PROGRAM = %r\n" % (programs + [""])[0])
    ctx.symlink(ctx.attr.build_file, "BUILD")

_etcd = repository_rule(
    implementation = _etcd_impl,
    attrs = {"build_file": attr.label(mandatory = True)},
    environ = ["XDG_CACHE_HOME", "HOME"],
    local = True,
)

# The TensorFlow of a virtual environment: its headers and libraries. If there
# is none, a build leaves out targets that need it.
def _tensorflow_impl(ctx):
    environment = ctx.os.environ.get("PENSTOCK_TENSORFLOW", "")
    if not environment:
        cache = ctx.os.environ.get("XDG_CACHE_HOME", "")
        if not cache:
            cache = ctx.os.environ.get("HOME", "/root") + "/.cache"
        environment = cache + "/penstock/tensorflow"
    lib = ctx.path(environment + "/lib")
    found = None
    for python in lib.readdir() if lib.exists else []:
        package = python.get_child("site-packages").get_child("tensorflow")
        if package.get_child("include").exists:
            found = package
    if found == None:
        ctx.file("defs.bzl", "TENSORFLOW_RELEASE = ''\nTENSORFLOW_PYTHON = ''\n")
        ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])
cc_library(name = "headers")
cc_library(name = "libraries")
""")
        return
    result = ctx.execute([
        environment + "/bin/python3",
        "-c",
        "import importlib.metadata as m\n" +
        "names = [d.metadata['Name'] for d in m.distributions()]\n" +
        "print(next(m.version(n) for n in names if n in " +
        "('tensorflow', 'tensorflow-cpu', 'tensorflow_cpu')))",
    ])
    if result.return_code != 0:
        fail("TensorFlow in %s: %s" % (environment, result.stderr))
    ctx.symlink(found.get_child("include"), "include")
    for library in ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2"]:
        ctx.symlink(found.get_child(library), library)
    ctx.file("defs.bzl", "TENSORFLOW_RELEASE = '%s'\nTENSORFLOW_PYTHON = '%s'\n" %
                         (result.stdout.strip(), environment + "/bin/python3"))
    ctx.symlink(ctx.attr.build_file, "BUILD")

_tensorflow = repository_rule(
    implementation = _tensorflow_impl,
    attrs = {"build_file": attr.label(mandatory = True)},
    environ = ["PENSTOCK_TENSORFLOW", "XDG_CACHE_HOME", "HOME"],
    local = True,
)

# The PyTorch of a virtual environment, or of the distribution in /usr: its headers
# and libraries. If there is none, a build leaves out targets that need it.
def _torch_impl(ctx):
    environment = ctx.os.environ.get("PENSTOCK_TORCH", "")
    if not environment:
        cache = ctx.os.environ.get("XDG_CACHE_HOME", "")
        if not cache:
            cache = ctx.os.environ.get("HOME", "/root") + "/.cache"
        environment = cache + "/penstock/torch"
        # tools/setup has been interrupted.
        if not ctx.path(environment + "/installed").exists:
            environment = ""
    lib = ctx.path((environment or "/nonexistent") + "/lib")
    found = None
    for python in lib.readdir() if lib.exists else []:
        if not python.basename.startswith("python"):
            continue
        for packages in ["site-packages", "dist-packages"]:
            package = python.get_child(packages).get_child("torch")
            if package.get_child("version.py").exists:
                found = package
    if found == None:
        ctx.file("defs.bzl", "TORCH_RELEASE = ''\nTORCH_PYTHON = ''\n")
        ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])
cc_library(name = "headers")
cc_library(name = "libraries")
""")
        return

    # Without `import torch`, which takes seconds and needs CUDA's libraries.
    result = ctx.execute([
        environment + "/bin/python3",
        "-c",
        "import importlib.metadata as m; " +
        "print(m.version('torch').split('+')[0])",
    ])
    if result.return_code != 0:
        fail("PyTorch in %s: %s" % (environment, result.stderr))
    ctx.symlink(found.get_child("include"), "include")
    for library in ["libtorch_python.so", "libtorch_cpu.so", "libc10.so"]:
        ctx.symlink(found.get_child("lib").get_child(library), library)
    ctx.file("defs.bzl", "TORCH_RELEASE = '%s'\nTORCH_PYTHON = '%s'\n" %
                         (result.stdout.strip(), environment + "/bin/python3"))
    ctx.symlink(ctx.attr.build_file, "BUILD")

_torch = repository_rule(
    implementation = _torch_impl,
    attrs = {"build_file": attr.label(mandatory = True)},
    environ = ["PENSTOCK_TORCH", "XDG_CACHE_HOME", "HOME"],
    local = True,
)

# The differences between releases of a distribution: the name of the release,
# abseil's libraries, and Python's version.
def _system_impl(ctx):
    found = ctx.execute(["sh", "-c", "ls $(gcc -print-file-name=libabsl_base.so | " +
                                     "xargs dirname)/libabsl_*.so"])
    python = ctx.execute(["/usr/bin/python3", "-c", "import sysconfig as s; " +
                                                    "print(s.get_path('include'), " +
                                                    "s.get_config_var('SOABI'))"])
    name = ctx.execute(["sh", "-c", ". /etc/os-release; echo $PRETTY_NAME"])

    # A distribution's abseil says which string_view is in libgrpc's signatures:
    # abseil's own one up to Debian 13, with gRPC in C++14, or that of C++17.
    grpc_standard = ctx.execute(["sh", "-c", "echo '#include <absl/base/config.h>' | " +
                                             "g++ -std=c++17 -dM -E -x c++ - | " +
                                             "grep -q ABSL_USES_STD_STRING_VIEW"])
    if found.return_code != 0 or python.return_code != 0:
        fail("abseil or Python is missing (%s%s): run tools/setup first" %
             (found.stderr, python.stderr))
    absl = [path.split("/lib")[-1][:-len(".so")] for path in found.stdout.splitlines()]
    include, abi = python.stdout.strip().split(" ")
    ctx.file("defs.bzl", "".join(["%s = %r\n" % pair for pair in [
        ("ABSL", absl),
        ("DISTRIBUTION", name.stdout.strip()),
        ("GRPC_STANDARD", "c++14" if grpc_standard.return_code else "c++17"),
        ("PYTHON_ABI", abi),
        ("PYTHON_INCLUDE", include),
    ]]))
    ctx.symlink(ctx.attr.build_file, "BUILD")

_system = repository_rule(
    implementation = _system_impl,
    attrs = {"build_file": attr.label(mandatory = True)},
    local = True,
)

# The targets of kernels, as far as the compiler knows them: from Volta to
# Hopper. Newer devices get the PTX.
_ARCHITECTURES = [70, 75, 80, 86, 89, 90]

def _find_nvcc(ctx):
    """Returns nvcc's path, or None and the reason."""
    home = ctx.os.environ.get("PENSTOCK_CUDA", "")
    if home == "none":
        return None, "PENSTOCK_CUDA is none"
    if home:
        nvcc = ctx.path(home + "/bin/nvcc")
        if not nvcc.exists:
            fail("PENSTOCK_CUDA: there is no %s" % nvcc)
        return nvcc, ""
    home = ctx.os.environ.get("CUDA_HOME", "")
    for nvcc in [
        ctx.path(home + "/bin/nvcc") if home else None,
        ctx.which("nvcc"),
        ctx.path("/usr/local/cuda/bin/nvcc"),
    ]:
        if nvcc and nvcc.exists:
            return nvcc, ""
    return None, "there is no nvcc"

def _survey_nvcc(ctx, nvcc):
    """Returns nvcc's release and architectures, or None and the reason."""
    version = ctx.execute([nvcc, "--version"])
    listed = ctx.execute([nvcc, "--list-gpu-code"])
    known = listed.stdout.splitlines()
    known = [number for number in _ARCHITECTURES if "sm_%d" % number in known]
    if not known or "release " not in version.stdout:
        return None, "%s says nothing of release and architectures" % nvcc
    probe = ctx.path("probe.fatbin")
    result = ctx.execute([nvcc, "-std=c++17", "-arch=sm_%d" % known[0], "--fatbin"] +
                         ["-o", probe, ctx.path(ctx.attr.probe)])
    if result.return_code != 0:
        return None, "%s does not compile here: %s" % (nvcc, result.stderr)
    release = version.stdout.split("release ")[1].split(",")[0]
    return struct(
        release = [int(part) for part in release.split(".")],
        architectures = known,
    ), ""

# CUDA's compiler. Without a working compiler, the tree is built without
# kernels, and a line says so. If a compiler was requested, its absence is an
# error.
def _cuda_impl(ctx):
    nvcc, why = _find_nvcc(ctx)
    found = None
    if nvcc:
        found, why = _survey_nvcc(ctx, nvcc)
    if not found and nvcc and ctx.os.environ.get("PENSTOCK_CUDA", ""):
        fail("PENSTOCK_CUDA: " + why)
    if not found:
        print("Built without GPU kernels: " + why)  # buildifier: disable=print
    ctx.file("BUILD", "")
    ctx.file("defs.bzl", "".join(["%s = %r\n" % pair for pair in [
        ("NVCC", str(nvcc) if found else ""),
        ("CUDA_RELEASE", found.release if found else []),
        ("CUDA_ARCHITECTURES", found.architectures if found else []),
    ]]))

_cuda = repository_rule(
    implementation = _cuda_impl,
    attrs = {"probe": attr.label(mandatory = True)},
    environ = ["PENSTOCK_CUDA", "CUDA_HOME", "PATH"],
    local = True,
)

def penstock_repositories():
    _cuda(
        name = "cuda",
        probe = "//third_party/cuda:probe.cu",
    )
    _tensorflow(
        name = "tensorflow",
        build_file = "//third_party/tensorflow:tensorflow.BUILD",
    )
    _torch(
        name = "torch",
        build_file = "//third_party/torch:torch.BUILD",
    )
    _grpc_source(
        name = "grpc_internal",
        build_file = "//third_party/grpc_internal:grpc_internal.BUILD",
    )
    _etcd(
        name = "etcd",
        build_file = "//third_party/etcd:etcd.BUILD",
    )
    _system(
        name = "system",
        build_file = "//third_party/system:system.BUILD",
    )
    for stand_in in ["rules_cc", "remote_coverage_tools"]:
        native.local_repository(
            name = stand_in,
            path = "third_party/" + stand_in,
        )
