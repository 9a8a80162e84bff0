#include "python/closable.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace penstock::python {
namespace {

using Objects = std::vector<std::weak_ptr<Closable>>;

// Returns the registered objects. Guarded by the GIL.
Objects& TheObjects() {
  static auto* const objects = new Objects;
  return *objects;
}

}  // namespace

void CloseAtExit(const std::shared_ptr<Closable>& object) {
  Objects& all = TheObjects();
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const auto& weak) { return weak.expired(); }),
            all.end());
  all.push_back(object);
}

void CloseAll() {
  for (const auto& weak : std::exchange(TheObjects(), {})) {
    if (auto object = weak.lock()) object->Close();
  }
}

}  // namespace penstock::python
