#include "preload/objects.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Dlopen RealDlopen(void) {
  static _Atomic(Dlopen) real;
  Dlopen found = atomic_load(&real);
  if (found == NULL) {
    found = (Dlopen)dlsym(RTLD_NEXT, "dlopen");
    atomic_store(&real, found);
  }
  return found;
}

const struct link_map* ObjectOf(const void* address) {
  struct dl_find_object found;
  if (_dl_find_object((void*)address, &found) != 0) return NULL;
  return found.dlfo_link_map;
}

const char* SonameOf(const struct link_map* object) {
  const char* strings = "";
  size_t offset = 0;
  for (const ElfW(Dyn)* entry = object->l_ld; entry->d_tag != DT_NULL;
       ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = (const char*)entry->d_un.d_ptr;
    if (entry->d_tag == DT_SONAME) offset = entry->d_un.d_val;
  }
  return offset == 0 ? "" : strings + offset;
}

// Returns a handle of an object that is loaded; the program has no name.
static void* Reopen(const char* name) {
  return RealDlopen()(name[0] == '\0' ? NULL : name, RTLD_LAZY | RTLD_NOLOAD);
}

void* FindFor(const struct link_map* object, const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found != NULL || object->l_name[0] == '\0') return found;
  void* own = Reopen(object->l_name);
  return own == NULL ? NULL : dlsym(own, name);
}

static int NamedDefines(const char* object, const char* name) {
  void* handle = Reopen(object);
  if (handle == NULL) return 0;
  // The handle's scope has its dependencies, too: each gets its own turn.
  const void* found = dlsym(handle, name);
  dlclose(handle);
  return found != NULL;
}

int Defines(const struct link_map* object, const char* name) {
  void* handle = Reopen(object->l_name);
  if (handle == NULL) return 0;
  const void* found = dlsym(handle, name);
  dlclose(handle);
  return found != NULL && ObjectOf(found) == object;
}

struct Names {
  char** names;
  size_t count;
};

static int Collect(struct dl_phdr_info* info, size_t size, void* data) {
  struct Names* all = data;
  char** more = realloc(all->names, (all->count + 1) * sizeof *more);
  if (more == NULL) return 1;
  all->names = more;
  all->names[all->count] = strdup(info->dlpi_name);
  if (all->names[all->count] == NULL) return 1;
  ++all->count;
  return 0;
}

int AnyDefines(const char* name) {
  // Not within the walk, which holds a lock that opening takes.
  struct Names all = {NULL, 0};
  dl_iterate_phdr(Collect, &all);
  int any = 0;
  for (size_t i = 0; i < all.count; ++i) {
    any |= NamedDefines(all.names[i], name);
    free(all.names[i]);
  }
  free(all.names);
  dlerror();  // nobody is to find what we have not
  return any;
}

int PathBeside(const char* file, char* path, size_t size) {
  const char* own = ObjectOf((const void*)&PathBeside)->l_name;
  const char* slash = strrchr(own, '/');
  const int folder = slash == NULL ? 0 : (int)(slash + 1 - own);
  const int length = snprintf(path, size, "%.*s%s", folder, own, file);
  return length > 0 && (size_t)length < size;
}
