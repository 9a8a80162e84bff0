// What lies in site-packages/tensorflow-plugins/, from which `import
// tensorflow` loads every library. Loads the plugin, if it was built for this
// release of TensorFlow. Otherwise it says so and does nothing, where the
// plugin itself would make the import fail.

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

void Say(const std::string& text) {
  fprintf(stderr,
          "penstock-tensorflow: %s. TensorFlow goes on without the protocol "
          "grpc+penstock\n",
          text.c_str());
}

// The folder of this library, with a slash.
std::string Folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&Folder), &info) == 0) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// Of TensorFlow's C interface, which stays as it is from release to release.
std::string LoadedRelease() {
  void* const library =
      dlopen("libtensorflow_cc.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return "";
  using Version = const char* (*)();
  const auto version = reinterpret_cast<Version>(dlsym(library, "TF_Version"));
  return version == nullptr ? "" : version();
}

// "2.21" of "2.21.0": what it was built for within a minor release, it runs on.
std::string Minor(const std::string& release) {
  return release.substr(0, release.find('.', release.find('.') + 1));
}

void Load() {
  const std::string release = LoadedRelease();
  const std::string built_for = Minor(PENSTOCK_TENSORFLOW_RELEASE);
  if (Minor(release) != built_for) {
    return Say("it was built for TensorFlow " + built_for + ", and this is " +
               (release.empty() ? "none" : release) +
               "; install the wheel for this release");
  }
  const std::string plugin =
      Folder() + "../penstock_tensorflow/libpenstock_tensorflow.so";
  if (dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) Say(dlerror());
}

__attribute__((constructor)) void OnLoad() { Load(); }

}  // namespace
