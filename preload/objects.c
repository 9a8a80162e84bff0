#include "preload/objects.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/preload.h"

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
  if (object == NULL) return strings;
  for (const ElfW(Dyn)* entry = object->l_ld; entry->d_tag != DT_NULL;
       ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = (const char*)entry->d_un.d_ptr;
    if (entry->d_tag == DT_SONAME) offset = entry->d_un.d_val;
  }
  return offset == 0 ? "" : strings + offset;
}

// Returns a handle of a loaded object. An empty name is the program.
static void* Reopen(const char* name) {
  return RealDlopen()(name[0] == '\0' ? NULL : name, RTLD_LAZY | RTLD_NOLOAD);
}

// Returns the symbol as the object, or a library to which the object is linked,
// defines it.
static void* FindIn(const char* object, const char* name) {
  void* handle = Reopen(object);
  void* found = handle == NULL ? NULL : dlsym(handle, name);
  // Ignores a function of the stub itself, which is also loaded.
  return ObjectOf(found) == ObjectOf((const void*)&FindIn) ? NULL : found;
}

// The names of loaded objects, each terminated by a zero. An empty name ends
// the list.
struct Names {
  char* text;
  size_t size;
};

static int AddName(struct dl_phdr_info* info, size_t size, void* all) {
  struct Names* names = all;
  const size_t added = strlen(info->dlpi_name);
  char* text =
      added == 0 ? NULL : realloc(names->text, names->size + added + 2);
  if (text == NULL) return 0;  // the program's name is empty
  memcpy(text + names->size, info->dlpi_name, added + 1);
  names->text = text;
  names->size += added + 1;
  text[names->size] = '\0';
  return 0;
}

// Searches all objects in load order. Collects the names first, and searches
// only after the walk over the objects, because the walk holds a lock that the
// loader takes after another lock.
static void* FindAnywhere(const char* name) {
  struct Names names = {NULL, 0};
  dl_iterate_phdr(AddName, &names);
  void* found = NULL;
  for (const char* each = names.text;
       each != NULL && *each != '\0' && found == NULL;
       each += strlen(each) + 1) {
    found = FindIn(each, name);
  }
  free(names.text);
  return found;
}

void* FindForAll(const char* name) { return dlsym(RTLD_NEXT, name); }

void* FindFor(const struct link_map* object, const char* name) {
  void* found = FindForAll(name);
  if (found == NULL && object != NULL && object->l_name[0] != '\0') {
    found = FindIn(object->l_name, name);
  }
  return found != NULL ? found : FindAnywhere(name);
}

static size_t Padded(size_t size) { return (size + 3) / 4 * 4; }

// Returns true if a segment's notes include Penstock's.
static int HaveOurs(const char* notes, size_t size) {
  static const char kOwner[] = PENSTOCK_NOTE_OWNER;
  while (size >= sizeof(ElfW(Nhdr))) {
    const ElfW(Nhdr)* note = (const ElfW(Nhdr)*)notes;
    const char* owner = notes + sizeof *note;
    const size_t whole =
        sizeof *note + Padded(note->n_namesz) + Padded(note->n_descsz);
    if (note->n_type == PENSTOCK_NOTE_TYPE && note->n_namesz == sizeof kOwner &&
        whole <= size && memcmp(owner, kOwner, sizeof kOwner) == 0) {
      return 1;
    }
    if (whole >= size) return 0;
    notes += whole;
    size -= whole;
  }
  return 0;
}

// Ends the walk, by returning 1, at an object that contains Penstock. If
// `wanted` is not null, considers only the object of this link map.
static int HasNote(struct dl_phdr_info* info, size_t size, void* wanted) {
  const struct link_map* object = wanted;
  if (object != NULL && info->dlpi_addr != object->l_addr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    // Skips notes with another alignment. Such notes have another format, and
    // are not Penstock's.
    if (part->p_type == PT_NOTE && part->p_align <= 4 &&
        HaveOurs((const char*)(info->dlpi_addr + part->p_vaddr),
                 part->p_memsz)) {
      return 1;
    }
  }
  return 0;
}

int HasPenstock(const struct link_map* object) {
  return object != NULL && dl_iterate_phdr(HasNote, (void*)object);
}

int AnyHasPenstock(void) { return dl_iterate_phdr(HasNote, NULL); }

int PathBeside(const char* file, char* path, size_t size) {
  const char* own = ObjectOf((const void*)&PathBeside)->l_name;
  const char* slash = strrchr(own, '/');
  const int folder = slash == NULL ? 0 : (int)(slash + 1 - own);
  const int length = snprintf(path, size, "%.*s%s", folder, own, file);
  return length > 0 && (size_t)length < size;
}
