// plugin: a program without gRPC. plugin LIBRARY: the same, which opens
// plugin.c and uses gRPC by that.
//
// First, both look whether there is gRPC, and begin with it if so.

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void (*init)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "grpc_init");
  if (init != NULL) init();
  if (argc < 2) return 0;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return puts(dlerror()), 1;
  ((void (*)(void))dlsym(library, "Begin"))();
  void* channel = ((void* (*)(void))dlsym(library, "MakeChannel"))();
  puts(channel != NULL ? "a channel" : "no channel");
  ((void (*)(void*))dlsym(library, "End"))(channel);
  return 0;
}
