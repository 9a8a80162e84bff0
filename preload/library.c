#include "preload/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "preload/objects.h"
#include "preload/sanitizer.h"
#include "preload/say.h"

static const char kFile[] = "libpenstock.so.0";

enum State {
  kUnopened,
  kOpening,  // the program contains no other Penstock
  kOpen,
  kFailed,
  kLeftAlone,  // policy off, or the program contains Penstock
};
static _Atomic enum State state = kUnopened;
static _Atomic(const struct PenstockPreload*) library = NULL;

static int PolicyIs(const char* policy) {
  const char* set = secure_getenv("PENSTOCK_POLICY");
  return set != NULL && strcmp(set, policy) == 0;
}

int IsOff(void) { return getauxval(AT_SECURE) != 0 || PolicyIs("off"); }
int IsRequired(void) { return PolicyIs("require"); }

// Returns the file to open: the value of PENSTOCK_LIBRARY, the file next to
// this library, or a name that the loader resolves.
static const char* FileToOpen(char* path, size_t size) {
  const char* named = secure_getenv("PENSTOCK_LIBRARY");
  if (named != NULL && named[0] != '\0') return named;
  if (PathBeside(kFile, path, size) && access(path, R_OK) == 0) return path;
  return kFile;
}

static const struct PenstockPreload* Open(void) {
  const char* sanitizer = Sanitizer();
  if (sanitizer != NULL) {
    Say("Penstock is not used: the program runs under %s", sanitizer);
    return NULL;
  }
  char path[PATH_MAX];
  const char* file = FileToOpen(path, sizeof path);
  void* handle = RealDlopen()(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    // Reports the error of the loader. A library that was built for another
    // distribution may need libraries or symbols that are missing here.
    Say("Penstock is not used: %s (it was built on %s)", dlerror(),
        PENSTOCK_BUILT_ON);
    return NULL;
  }
  typedef const struct PenstockPreload* (*Get)(void);
  const Get get = (Get)dlsym(handle, PENSTOCK_PRELOAD_SYMBOL);
  if (get == NULL) {
    Say("Penstock is not used: %s is of another release than %s", file,
        ObjectOf((const void*)&Open)->l_name);
    return NULL;
  }
  return get();
}

// Decides if this process uses Penstock. Leaves a program that contains
// Penstock alone: it has its own policy.
static void Decide(void) {
  enum State decided = IsOff() || AnyHasPenstock() ? kLeftAlone : kOpening;
  enum State undecided = kUnopened;
  atomic_compare_exchange_strong(&state, &undecided, decided);
}

// Opens the library, unless it is open. Several threads may run this function
// at once, with the same result, because the only lock is the loader's. A lock
// of this file could cause a deadlock: this function would take it before the
// loader's lock, and a library whose constructor uses gRPC would take the two
// locks in the opposite order.
const struct PenstockPreload* OpenLibrary(void) {
  if (atomic_load(&state) == kUnopened) Decide();
  if (atomic_load(&state) == kOpening) {
    const struct PenstockPreload* opened = Open();
    if (opened != NULL) atomic_store(&library, opened);
    atomic_store(&state, opened != NULL ? kOpen : kFailed);
  }
  return Library();
}

const struct PenstockPreload* Library(void) { return atomic_load(&library); }
int LibraryFailed(void) { return atomic_load(&state) == kFailed; }
