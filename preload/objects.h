// The programs and libraries that are loaded.

#ifndef PENSTOCK_PRELOAD_OBJECTS_H_
#define PENSTOCK_PRELOAD_OBJECTS_H_

#include <link.h>

// glibc's own dlopen(): this library has one, too (dlopen.c).
typedef void* (*Dlopen)(const char* file, int mode);
Dlopen RealDlopen(void);

// Returns the object that an address lies in; null for an address in none.
// Takes no lock.
const struct link_map* ObjectOf(const void* address);

// Returns DT_SONAME; an empty string if it has none, or is null.
const char* SonameOf(const struct link_map* object);

// Returns what the name would have been bound to in `object`, were this library
// not there: first what all see, then what the object has brought itself. Else
// what any object has brought: a function that ends in a call leaves the return
// address of its own caller, which may know nothing of gRPC. Null if there is
// nothing. Keeps loaded what it has searched. `object` may be null.
void* FindFor(const struct link_map* object, const char* name);

// Returns the first of those: what all objects would have been bound to. Null
// if the program and what it has shown to all have no such name.
void* FindForAll(const char* name);

// Whether `object` has Penstock in it; whether any does.
int HasPenstock(const struct link_map* object);
int AnyHasPenstock(void);

// Writes the path of a file beside this library. Returns 0 if it is too long.
int PathBeside(const char* file, char* path, size_t size);

#endif  // PENSTOCK_PRELOAD_OBJECTS_H_
