// Loads the plugin, if the plugin was built for this release of TensorFlow.
// Otherwise prints a message and does nothing, because the plugin itself would
// make the import fail. `import tensorflow` loads every library in
// site-packages/tensorflow-plugins/, and so this one.

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

void Say(const std::string& text) {
  fprintf(stderr,
          "penstock-tensorflow: %s. TensorFlow continues without the protocol "
          "grpc+penstock\n",
          text.c_str());
}

// Returns the folder of this library, with a trailing slash.
std::string Folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&Folder), &info) == 0) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// Returns the release of the loaded TensorFlow. Uses TensorFlow's C interface,
// which is stable across releases.
std::string LoadedRelease() {
  void* const library =
      dlopen("libtensorflow_cc.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return "";
  using Version = const char* (*)();
  const auto version = reinterpret_cast<Version>(dlsym(library, "TF_Version"));
  return version == nullptr ? "" : version();
}

// Returns "2.21" for "2.21.0". The plugin supports all patch releases of the
// minor release for which it was built.
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
