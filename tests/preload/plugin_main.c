// plugin: a program without gRPC. plugin LIBRARY also opens plugin.c and uses
// gRPC through it. plugin LIBRARY OTHER then opens another library, and
// initialises that library's gRPC.
//
// All modes first check if gRPC is loaded. If it is, they initialise it.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void* Open(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) puts(dlerror()), exit(1);
  return library;
}

static void BeginWith(void* library) {
  ((void (*)(void))dlsym(library, "Begin"))();
}

int main(int argc, char** argv) {
  void (*init)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "grpc_init");
  if (init != NULL) init();
  if (argc < 2) return 0;
  void* library = Open(argv[1]);
  BeginWith(library);
  void* channel = ((void* (*)(void))dlsym(library, "MakeChannel"))();
  puts(channel != NULL ? "a channel" : "no channel");
  ((void (*)(void*))dlsym(library, "End"))(channel);
  if (argc > 2) BeginWith(Open(argv[2]));
  return 0;
}
