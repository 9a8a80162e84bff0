#include "transport/event_engine/connections.h"

#include <algorithm>

#include "transport/base/mutex.h"
#include "transport/base/per_process.h"

namespace penstock {
namespace event_engine {
namespace {

struct List {
  base::Mutex mu;
  std::vector<std::weak_ptr<MovableConnection>> all ABSL_GUARDED_BY(mu);
  size_t cleaned ABSL_GUARDED_BY(mu) = 0;  // the size after the last clean-up
};

}  // namespace

void AddConnection(const std::shared_ptr<MovableConnection>& connection) {
  List* const list = base::PerProcess<List>::Get();
  base::MutexLock lock(&list->mu);
  list->all.push_back(connection);
  // Removes ended connections each time the list has doubled.
  if (list->all.size() < 2 * list->cleaned + 16) return;
  const auto ended = [](const std::weak_ptr<MovableConnection>& weak) {
    return weak.expired();
  };
  list->all.erase(std::remove_if(list->all.begin(), list->all.end(), ended),
                  list->all.end());
  list->cleaned = list->all.size();
}

std::vector<std::shared_ptr<MovableConnection>> AllConnections() {
  List* const list = base::PerProcess<List>::Get();
  base::MutexLock lock(&list->mu);
  std::vector<std::shared_ptr<MovableConnection>> result;
  for (const std::weak_ptr<MovableConnection>& weak : list->all) {
    if (auto connection = weak.lock()) result.push_back(std::move(connection));
  }
  return result;
}

}  // namespace event_engine
}  // namespace penstock
