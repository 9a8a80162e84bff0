// The plugin's settings, beside those of every channel (docs/settings.md).

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_PLUGIN_SETTINGS_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_PLUGIN_SETTINGS_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {
namespace tensorflow {

// Where TensorFlow's CPU tensors lie.
enum class TensorMemory {
  kHeap,        // where TensorFlow puts them
  kPool,        // large ones in the pool, from which peers read without a copy
  kRegistered,  // on the heap, in regions that RDMA devices read in place
};

struct PluginSettings {
  TensorMemory memory = TensorMemory::kHeap;  // PENSTOCK_TENSORFLOW_MEMORY
  // PENSTOCK_TENSORFLOW_HELD_MIB: how many bytes of its peers' memory this
  // process uses in place. Beyond that, what is received is copied.
  uint64_t max_held_bytes = uint64_t{256} << 20;
};

// Reads the environment. Returns INVALID_ARGUMENT for a bad value, with its
// name and what is allowed. Thread-safe.
absl::StatusOr<PluginSettings> ResolvePluginSettings();

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_PLUGIN_SETTINGS_H_
