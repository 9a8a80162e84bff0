// Looks up the loaded programs and libraries, and their symbols.

#ifndef PENSTOCK_PRELOAD_OBJECTS_H_
#define PENSTOCK_PRELOAD_OBJECTS_H_

#include <link.h>

// The type of glibc's dlopen(). A function below returns glibc's dlopen(),
// because dlopen.c defines another one.
typedef void* (*Dlopen)(const char* file, int mode);
Dlopen RealDlopen(void);

// Returns the object that contains an address, or null. Takes no lock.
const struct link_map* ObjectOf(const void* address);

// Returns DT_SONAME, or an empty string if `object` has none or is null.
const char* SonameOf(const struct link_map* object);

// Returns the function to which `name` would be bound in `object` without this
// library: first a global symbol, then a symbol of the object and its
// libraries. If there is neither, returns a symbol of any object, because after
// a tail call the return address may belong to a caller that does not use gRPC.
// Returns null if there is no such symbol. Keeps the searched objects loaded.
// `object` may be null.
void* FindFor(const struct link_map* object, const char* name);

// Returns the global symbol `name`, which any object would be bound to. Returns
// null if there is none.
void* FindForAll(const char* name);

// Return true if `object`, or any object, contains Penstock.
int HasPenstock(const struct link_map* object);
int AnyHasPenstock(void);

// Writes the path of a file next to this library. Returns 0 if the path is too
// long.
int PathBeside(const char* file, char* path, size_t size);

#endif  // PENSTOCK_PRELOAD_OBJECTS_H_
