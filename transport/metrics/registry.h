// Collects the counters of all parts of this process, and keeps the totals of
// parts that have ended.

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

// A part of the process that counts its own events, such as a connection.
// Counting happens under the part's own lock, so counting costs only an
// addition.
class Source {
 public:
  virtual ~Source() = default;
  // Returns a reference that keeps the source alive. Returns null if the source
  // is about to end and nobody else uses it. Called with the registry's lock
  // held, so implementations must not take a lock.
  virtual std::shared_ptr<Source> Keep() = 0;
  // Adds the counters since the source began, and the present gauges. May take
  // the source's lock.
  virtual void Collect(Snapshot* snapshot) = 0;
  // Fills in the description and returns true, if the source is a connection.
  virtual bool Describe(ConnectionInfo*) { return false; }
};

// A registry of the live sources of counters, with the totals of the sources
// that have ended. Thread-safe. Only Collect() and Connections() wait for the
// lock of a live source. The other functions may be called under any lock.
class Registry {
 public:
  // Returns the registry of this process, which is never destroyed. The child
  // of a fork has its own registry, which starts empty, because the parent's
  // connections are not the child's.
  static Registry* Get();

  Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  void Add(Source* source);
  // Adds the counters of the source to the totals, and forgets the source. Call
  // only when no other thread uses the source.
  void Remove(Source* source);

  // Counts an event that is rare and belongs to no source. Takes no lock.
  void Count(Metric metric, std::initializer_list<Value> labels);
  // Returns the cell to which Count() adds. The cell lives as long as the
  // registry. Returns null if the metric does not have these labels.
  std::atomic<uint64_t>* CellFor(Metric metric,
                                 std::initializer_list<Value> labels);

  // Returns the totals over all sources, including ended sources. Counts each
  // event exactly once, even if sources begin or end during the call. Waits for
  // the lock of one source after another.
  Snapshot Collect();
  // Describes up to `most` open connections. Waits as Collect() does.
  std::vector<ConnectionInfo> Connections(size_t most);

  // Calls `callback` when the first source is added, or immediately if a source
  // was added before. The callback runs on the thread that makes the source, so
  // it must not block. In the child of a fork, the callback runs again at the
  // child's own first source.
  void CallAtFirstSource(void (*callback)());

 private:
  base::Mutex mu_;
  std::set<Source*> sources_ ABSL_GUARDED_BY(mu_);
  bool had_source_ ABSL_GUARDED_BY(mu_) = false;
  // The counters of ended sources, of Count(), of Tally, and of Level.
  const std::unique_ptr<std::atomic<uint64_t>[]> cells_;
};

// Registers a source for its own lifetime. In the child of a fork, the
// destructor does nothing.
class Registration {
 public:
  // Refers to `source`, which must outlive this object.
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

// One contribution to a gauge, for example the bytes of one pool. The
// destructor subtracts the contribution. Thread-safe.
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
  // Call from one thread at a time.
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
