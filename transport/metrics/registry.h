// Who counts in this process, and what those have counted that ended.

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
  // Describes the connection that it is. False: it is none.
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
  // Keeps what the source has counted, and asks it no more. Call it when nobody
  // else uses the source any more.
  void Remove(Source* source);

  // Counts what is rare and has no owner. Takes no lock.
  void Count(Metric metric, std::initializer_list<Value> labels);
  // Returns where that is counted, for good; null for labels that the metric
  // does not have.
  std::atomic<uint64_t>* CellFor(Metric metric,
                                 std::initializer_list<Value> labels);

  // Returns what the sources, and those before them, have counted. What each
  // counted is in it exactly once, whatever begins or ends meanwhile. Waits for
  // the locks of the sources, one after another.
  Snapshot Collect();
  // Describes open connections, `most` of them; as Collect().
  std::vector<ConnectionInfo> Connections(size_t most);

  // Calls `callback` as the first source is added: now, if there has been one.
  // It is called where the source is made, so it must not block. The child of a
  // fork calls it, too, at its own first source.
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
  // `source` outlives it.
  explicit Registration(Source* source);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

 private:
  Registry* const registry_;
  Source* const source_;
};

// Counts for the process, by one atomic addition. Thread-safe.
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

// One part of a gauge's value, such as the bytes of one pool. Ends with its
// owner. Thread-safe.
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
  // Not for several threads at once.
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
