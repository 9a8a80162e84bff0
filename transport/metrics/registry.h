// Collects what the parts of this process count, and keeps the totals of parts
// that have ended.

#ifndef PENSTOCK_TRANSPORT_METRICS_REGISTRY_H_
#define PENSTOCK_TRANSPORT_METRICS_REGISTRY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <set>
#include <vector>

#include "transport/base/mutex.h"
#include "transport/metrics/connection_info.h"
#include "transport/metrics/snapshot.h"

namespace penstock {
namespace metrics {

// A part of the process that counts for itself, such as a connection: under its
// own lock, so that counting costs no more than an addition.
class Source {
 public:
  virtual ~Source() = default;
  // Returns a share with which the source lives on, or null if it is about to
  // end: then nobody else uses it any more. Called with the registry's lock
  // held, so it takes none.
  virtual std::shared_ptr<Source> Keep() = 0;
  // Adds what it has counted since it began, and how it is now. May take the
  // source's lock.
  virtual void Collect(Snapshot* snapshot) = 0;
  // Describes itself and returns true, if it is a connection.
  virtual bool Describe(ConnectionInfo*) { return false; }
};

// Thread-safe. No call waits for the lock of a source that is in use but
// Collect(), so the others may be made under any lock.
class Registry {
 public:
  // Returns the registry of this process, which is never destroyed. The child
  // of a fork has one of its own, which begins empty: the parent's connections
  // are not the child's.
  static Registry* Get();

  Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  void Add(Source* source);
  // Adds what the source has counted to the totals, and forgets the source.
  // Nobody else may use it by then.
  void Remove(Source* source);

  // Counts an event that is rare and belongs to no source. Takes no lock.
  void Count(Metric metric, std::initializer_list<Value> labels);
  // Returns the number that Count() adds to, which lives as long as the
  // registry. Returns null for labels that the metric does not have.
  std::atomic<uint64_t>* CellFor(Metric metric,
                                 std::initializer_list<Value> labels);

  // Returns the totals over all sources, ended ones included. Counts each event
  // exactly once, whatever begins or ends meanwhile. Waits for the locks of the
  // sources, one after another.
  Snapshot Collect();
  // Describes up to `most` open connections. Waits as Collect() does.
  std::vector<ConnectionInfo> Connections(size_t most);

  // Calls `callback` when the first source is added, or at once if there has
  // been one. The callback runs where the source is made, so it must not block.
  // In the child of a fork it runs again, at the child's own first source.
  void CallAtFirstSource(void (*callback)());

 private:
  base::Mutex mu_;
  std::set<Source*> sources_ ABSL_GUARDED_BY(mu_);
  bool had_source_ ABSL_GUARDED_BY(mu_) = false;
  // Of sources that ended, of Count(), and of Tally and Level.
  const std::unique_ptr<std::atomic<uint64_t>[]> cells_;
};

// Keeps a source registered while it exists. In the child of a fork, its end
// does nothing.
class Registration {
 public:
  // `source` must outlive this.
  explicit Registration(Source* source);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

 private:
  Registry* const registry_;
  Source* const source_;
};

// One of the registry's counters. Adding costs one atomic addition.
// Thread-safe.
class Tally {
 public:
  Tally(Metric metric, std::initializer_list<Value> labels)
      : cell_(Registry::Get()->CellFor(metric, labels)) {}

  void Add(uint64_t value) {
    if (cell_ != nullptr) cell_->fetch_add(value, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t>* const cell_;
};

// One owner's part of a gauge, such as the bytes of one pool. Takes its part
// back when it is destroyed. Thread-safe.
class Level {
 public:
  Level(Metric metric, std::initializer_list<Value> labels, uint64_t value = 0)
      : tally_(metric, labels) {
    Add(value);
  }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  ~Level() { tally_.Add(0 - value_.load(std::memory_order_relaxed)); }

  void Add(uint64_t value) {
    value_.fetch_add(value, std::memory_order_relaxed);
    tally_.Add(value);
  }
  void Subtract(uint64_t value) { Add(0 - value); }
  // For one thread at a time.
  void Set(uint64_t value) {
    Add(value - value_.load(std::memory_order_relaxed));
  }

 private:
  Tally tally_;
  std::atomic<uint64_t> value_{0};
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_REGISTRY_H_
