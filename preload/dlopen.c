// dlopen(), to have Python load another cygrpc; and dlerror(), to say why that
// is refused.

#include <dlfcn.h>
#include <stdio.h>

#include "preload/objects.h"
#include "preload/python.h"

typedef char* (*Dlerror)(void);

// Declares a variable of the thread. Needs no memory at run time, and no
// function that a sanitizer replaces.
#define PENSTOCK_OF_THREAD \
  static __thread __attribute__((tls_model("initial-exec")))

// The refusal of this thread's last dlopen(), until dlerror() is asked.
PENSTOCK_OF_THREAD int was_refused;
PENSTOCK_OF_THREAD char refusal[1024];

static Dlerror real_dlerror;

// Resolves it early, since a look-up discards the error of the call before it.
__attribute__((constructor)) static void FindDlerror(void) {
  real_dlerror = (Dlerror)dlsym(RTLD_NEXT, "dlerror");
}

void* RefuseToOpen(const char* file, const char* why) {
  snprintf(refusal, sizeof refusal, "%s: Penstock is required but not used: %s",
           file, why);
  was_refused = 1;
  return NULL;
}

// The loader looks for `file` where the library says that calls it. It knows
// that by the return address, so this has to jump to the loader's function, and
// not call it: hence -O2, whatever the build is.
__attribute__((visibility("default"))) void* dlopen(const char* file,
                                                    int mode) {
  const Dlopen real = RealDlopen();
  was_refused = 0;
  return IsCygrpc(file) ? OpenCygrpc(file, mode) : real(file, mode);
}

__attribute__((visibility("default"))) char* dlerror(void) {
  if (was_refused) {
    was_refused = 0;
    return refusal;
  }
  if (real_dlerror == NULL) FindDlerror();
  return real_dlerror();
}
