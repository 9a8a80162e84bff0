#include "frameworks/tensorflow/plugin_settings.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "transport/base/printable.h"

namespace penstock {
namespace tensorflow {
namespace {

constexpr char kMemory[] = "PENSTOCK_TENSORFLOW_MEMORY";
constexpr char kHeldMib[] = "PENSTOCK_TENSORFLOW_HELD_MIB";
constexpr char kAllReduce[] = "PENSTOCK_TENSORFLOW_ALL_REDUCE";
constexpr uint64_t kMostMib = 1 << 20;

// Returns a variable's value, or "". Ignores the environment in a set-uid
// program, whose caller controls it.
absl::string_view Read(const char* name) {
  const char* const value = secure_getenv(name);
  return value == nullptr ? absl::string_view() : value;
}

absl::Status Bad(const char* name, absl::string_view value,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      name, "=", base::Printable(value, 100), ": allowed are ", allowed));
}

}  // namespace

absl::StatusOr<PluginSettings> ResolvePluginSettings() {
  PluginSettings settings;
  const absl::string_view memory = Read(kMemory);
  if (memory == "pool") {
    settings.memory = TensorMemory::kPool;
  } else if (memory == "registered") {
    settings.memory = TensorMemory::kRegistered;
  } else if (!memory.empty() && memory != "heap") {
    return Bad(kMemory, memory, "heap, pool and registered");
  }
  const absl::string_view all_reduce = Read(kAllReduce);
  if (!all_reduce.empty() && all_reduce != "group" && all_reduce != "ring") {
    return Bad(kAllReduce, all_reduce, "group and ring");
  }
  settings.reduces_by_group = all_reduce == "group";
  const absl::string_view held = Read(kHeldMib);
  if (!held.empty()) {
    uint64_t mib = 0;
    if (!absl::SimpleAtoi(held, &mib) || mib > kMostMib) {
      return Bad(kHeldMib, held, absl::StrCat("0 to ", kMostMib));
    }
    settings.max_held_bytes = mib << 20;
  }
  return settings;
}

}  // namespace tensorflow
}  // namespace penstock
