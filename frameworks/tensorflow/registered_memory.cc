#include "frameworks/tensorflow/registered_memory.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/process_state.h"
#include "transport/base/log.h"
#include "transport/base/mutex.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace tensorflow {
namespace {

struct Region {
  std::unique_ptr<memory::StableMemory> promise;
  size_t size = 0;
};

// The regions that TensorFlow has allocated. Never destroyed: TensorFlow
// allocates and frees regions until the process ends.
struct Regions {
  base::Mutex mu;
  std::map<const void*, Region> all ABSL_GUARDED_BY(mu);
  uint64_t bytes ABSL_GUARDED_BY(mu) = 0;
};

Regions* AllRegions() {
  static auto* const regions = new Regions;
  return regions;
}

void OnTaken(void* data, int, size_t size) {
  auto promise = memory::StableMemory::Declare(data, size);
  if (!promise.ok()) {  // tensors in this region are copied
    base::LogWarning(absl::StrCat("memory of TensorFlow's is not registered: ",
                                  promise.status().message()));
    return;
  }
  Regions* const regions = AllRegions();
  base::MutexLock lock(&regions->mu);
  regions->all[data] = Region{*std::move(promise), size};
  regions->bytes += size;
}

// Ends the promise of the region before TensorFlow frees the region.
void OnGivenBack(void* data, int, size_t) {
  Region region;  // the promise ends outside the lock
  Regions* const regions = AllRegions();
  base::MutexLock lock(&regions->mu);
  auto it = regions->all.find(data);
  if (it == regions->all.end()) return;
  region = std::move(it->second);
  regions->bytes -= region.size;
  regions->all.erase(it);
}

}  // namespace

void RegisterTensorMemory() {
  auto* const process = ::tensorflow::ProcessState::singleton();
  process->AddCPUAllocVisitor(OnTaken);
  process->AddCPUFreeVisitor(OnGivenBack);
}

uint64_t RegisteredBytes() {
  Regions* const regions = AllRegions();
  base::MutexLock lock(&regions->mu);
  return regions->bytes;
}

}  // namespace tensorflow
}  // namespace penstock
