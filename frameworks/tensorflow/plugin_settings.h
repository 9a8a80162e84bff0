// The plugin's settings, in addition to those of every channel
// (docs/settings.md).

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_PLUGIN_SETTINGS_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_PLUGIN_SETTINGS_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {
namespace tensorflow {

// The location of TensorFlow's CPU tensors.
enum class TensorMemory {
  kHeap,        // TensorFlow's default
  kPool,        // large tensors in the pool, where peers read without a copy
  kRegistered,  // on the heap, in regions that RDMA devices read in place
};

struct PluginSettings {
  TensorMemory memory = TensorMemory::kHeap;  // PENSTOCK_TENSORFLOW_MEMORY
  // PENSTOCK_TENSORFLOW_HELD_MIB: limits the bytes of peers' memory that this
  // process uses in place. Above the limit, received tensors are copied.
  uint64_t max_held_bytes = uint64_t{256} << 20;
  // PENSTOCK_TENSORFLOW_ALL_REDUCE is `group` or `ring`. For `group`, this is
  // true: an all_reduce of tasks on one host then uses Penstock's collectives.
  // Otherwise it uses TensorFlow's ring.
  bool reduces_by_group = false;
};

// Reads the environment. Returns INVALID_ARGUMENT for an invalid value, with
// the setting's name and the valid values. Thread-safe.
absl::StatusOr<PluginSettings> ResolvePluginSettings();

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_PLUGIN_SETTINGS_H_
