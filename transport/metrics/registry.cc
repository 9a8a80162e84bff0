#include "transport/metrics/registry.h"

#include <pthread.h>

#include <utility>
#include <vector>

#include "transport/metrics/table.h"

namespace penstock {
namespace metrics {
namespace {

std::atomic<Registry*> current{nullptr};
// The callback of CallAtFirstSource(). A global, because the child of a fork
// has another registry.
std::atomic<void (*)()> at_first_source{nullptr};

// Makes the child of a fork create another registry. A thread of the parent may
// have held the lock of the parent's registry.
void ForgetInChild() { current.store(nullptr); }

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &ForgetInChild);

}  // namespace

Registry* Registry::Get() {
  Registry* registry = current.load(std::memory_order_acquire);
  if (registry != nullptr) return registry;
  auto made = std::make_unique<Registry>();
  if (current.compare_exchange_strong(registry, made.get())) {
    return made.release();
  }
  return registry;
}

Registry::Registry() : cells_(new std::atomic<uint64_t>[CellCount()]()) {}

void Registry::Add(Source* source) {
  void (*at_first)() = nullptr;
  {
    base::MutexLock lock(&mu_);
    sources_.insert(source);
    if (!std::exchange(had_source_, true)) at_first = at_first_source.load();
  }
  if (at_first != nullptr) at_first();
}

void Registry::CallAtFirstSource(void (*callback)()) {
  {
    base::MutexLock lock(&mu_);
    at_first_source.store(callback);
    if (!had_source_) return;
  }
  callback();
}

void Registry::Remove(Source* source) {
  base::MutexLock lock(&mu_);
  if (sources_.erase(source) == 0) return;
  Snapshot last;
  source->Collect(&last);
  std::vector<uint64_t> counted(CellCount());
  last.AddCountersTo(&counted);
  for (size_t i = 0; i < counted.size(); ++i) {
    if (counted[i] == 0) continue;
    cells_[i].fetch_add(counted[i], std::memory_order_relaxed);
  }
}

std::atomic<uint64_t>* Registry::CellFor(Metric metric,
                                         std::initializer_list<Value> labels) {
  const size_t cell = CellOf(metric, labels);
  return cell == kNoCell ? nullptr : &cells_[cell];
}

void Registry::Count(Metric metric, std::initializer_list<Value> labels) {
  std::atomic<uint64_t>* const cell = CellFor(metric, labels);
  if (cell != nullptr) cell->fetch_add(1, std::memory_order_relaxed);
}

Snapshot Registry::Collect() {
  Snapshot snapshot;
  std::vector<std::shared_ptr<Source>> kept;
  {
    // Copies the cells and collects the sources under one lock, so that a
    // source that ends later is counted once. The copied cells lack the
    // source's counters, and `kept` keeps the source alive.
    base::MutexLock lock(&mu_);
    for (size_t i = 0; i < snapshot.cells_.size(); ++i) {
      snapshot.cells_[i] = cells_[i].load(std::memory_order_relaxed);
    }
    kept.reserve(sources_.size());
    for (Source* source : sources_) {
      std::shared_ptr<Source> share = source->Keep();
      if (share == nullptr) {  // the source is blocked in Remove()
        source->Collect(&snapshot);
      } else {
        kept.push_back(std::move(share));
      }
    }
  }
  for (std::shared_ptr<Source>& source : kept) {
    source->Collect(&snapshot);
    source = nullptr;  // perhaps the last reference
  }
  return snapshot;
}

std::vector<ConnectionInfo> Registry::Connections(size_t most) {
  std::vector<std::shared_ptr<Source>> kept;
  {
    base::MutexLock lock(&mu_);
    for (Source* source : sources_) {
      if (kept.size() == most) break;
      std::shared_ptr<Source> share = source->Keep();
      if (share != nullptr) kept.push_back(std::move(share));
    }
  }
  std::vector<ConnectionInfo> connections;
  for (std::shared_ptr<Source>& source : kept) {
    ConnectionInfo info;
    if (source->Describe(&info)) connections.push_back(std::move(info));
    source = nullptr;  // perhaps the last reference
  }
  return connections;
}

Registration::Registration(Source* source)
    : registry_(Registry::Get()), source_(source) {
  registry_->Add(source_);
}

Registration::~Registration() {
  if (registry_ == Registry::Get()) registry_->Remove(source_);
}

}  // namespace metrics
}  // namespace penstock
