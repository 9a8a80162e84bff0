"""cuda_fatbin: kernels that are compiled into an array of bytes."""

load("@cuda//:defs.bzl", "CUDA_ARCHITECTURES", "CUDA_RELEASE", "NVCC")

# The flag that compresses the code. Small code matters for packages, whose
# libraries all contain the code. nvcc's newer compression, zstd, needs a driver
# of CUDA 13, as does all output of that toolkit. For older drivers there is
# LZ4.
_COMPRESS = "--compress-mode=size" if CUDA_RELEASE >= [13] else "-Xfatbin=-compress-all"

def _newest():
    return "compute_%d" % CUDA_ARCHITECTURES[-1]

def _code():
    """Returns nvcc's flags: code for each architecture, PTX of the newest."""
    flags = [
        "-gencode=arch=compute_%d,code=sm_%d" % (number, number)
        for number in CUDA_ARCHITECTURES
    ]
    return " ".join(flags + ["-gencode=arch=%s,code=%s" % (_newest(), _newest())])

def _compile(name, src, hdrs, out):
    # Names the release in the command, so that another release recompiles.
    # Rounds products and sums one by one, and keeps subnormals as numbers.
    native.genrule(
        name = name,
        srcs = [src] + hdrs,
        outs = [out],
        cmd = " ".join([
            "CUDA=" + ".".join([str(part) for part in CUDA_RELEASE]),
            NVCC,
            "-std=c++17 -O3 -I. -fmad=false -ftz=false",
            "-Wno-deprecated-gpu-targets",
            _code(),
            _COMPRESS,
            "--fatbin -o $@ $(location %s)" % src,
        ]),
        message = "Compiling kernels",
    )

def cuda_array(name, symbol, fatbin, **kwargs):
    """Makes a cc_library of three constants.

    These are k<symbol>Fatbin, k<symbol>FatbinSize, which is 0 without `fatbin`,
    and k<symbol>Architectures, such as "sm_80 sm_90 compute_90".

    Args:
      name: of the library.
      symbol: see above.
      fatbin: a file, or None.
      **kwargs: as usual.
    """
    architectures = " ".join(
        ["sm_%d" % number for number in CUDA_ARCHITECTURES] + [_newest()],
    ) if fatbin else ""
    native.genrule(
        name = name + "_source",
        srcs = [fatbin] if fatbin else [],
        outs = [name + ".cc"],
        # Writes one zero for an empty file, because C++ has no empty arrays.
        cmd = """
            bytes() { %s; }
            {
              echo '#include <cstddef>'
              echo 'extern const unsigned char k%sFatbin[];'
              echo 'extern const size_t k%sFatbinSize;'
              echo 'extern const char k%sArchitectures[];'
              echo 'alignas(16) const unsigned char k%sFatbin[] = {'
              bytes | od -An -v -tu1 | sed 's/\\([0-9]\\) /\\1,/g; s/$$/,/'
              echo '0};'
              echo 'const size_t k%sFatbinSize = sizeof(k%sFatbin) - 1;'
              echo 'const char k%sArchitectures[] = "%s";'
            } >$@
        """ % (("cat $<" if fatbin else ":",) + (symbol,) * 7 + (architectures,)),
    )
    native.cc_library(
        name = name,
        srcs = [name + ".cc"],
        linkstatic = True,
        **kwargs
    )

def cuda_fatbin(name, symbol, src, hdrs, **kwargs):
    """Compiles `src` and makes a cuda_array() of it.

    Without CUDA's compiler, the array is empty.

    Args:
      name: of the library.
      symbol: see cuda_array().
      src: a .cu file, whose includes are relative to the root of the tree.
      hdrs: what it includes.
      **kwargs: as usual.
    """
    if NVCC:
        _compile(name + "_compiled", src, hdrs, name + ".fatbin")
    cuda_array(
        name = name,
        symbol = symbol,
        fatbin = name + ".fatbin" if NVCC else None,
        **kwargs
    )
