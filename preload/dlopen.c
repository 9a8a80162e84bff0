// dlopen(), to have Python load another cygrpc.

#include <dlfcn.h>

#include "preload/objects.h"
#include "preload/python.h"

// The loader looks for `file` where the library says that calls it. It knows
// that by the return address, so this has to jump to the loader's function, and
// not call it: hence -O2, whatever the build is.
__attribute__((visibility("default"))) void* dlopen(const char* file,
                                                    int mode) {
  const Dlopen real = RealDlopen();
  return IsCygrpc(file) ? OpenCygrpc(file, mode) : real(file, mode);
}
