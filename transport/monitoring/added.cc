#include "transport/monitoring/added.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <utility>

#include "prometheus/check_names.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace monitoring {
namespace {

using Collect = std::function<std::vector<MetricFamily>()>;

bool IsAllowed(const MetricFamily& family) {
  if (!prometheus::CheckMetricName(family.name)) return false;
  for (const MetricFamily::Series& series : family.series) {
    for (const auto& [name, value] : series.labels) {
      if (!prometheus::CheckLabelName(name)) return false;
    }
  }
  return true;
}

prometheus::MetricFamily ToPrometheus(MetricFamily family) {
  const bool is_counter = family.type == MetricFamily::Type::kCounter;
  prometheus::MetricFamily result;
  result.name = std::move(family.name);
  result.help = std::move(family.help);
  // Removes line feeds, because the help text must be one line.
  std::replace(result.help.begin(), result.help.end(), '\n', ' ');
  result.type = is_counter ? prometheus::MetricType::Counter
                           : prometheus::MetricType::Gauge;
  result.metric.reserve(family.series.size());
  for (MetricFamily::Series& series : family.series) {
    prometheus::ClientMetric metric;
    for (auto& [name, value] : series.labels) {
      metric.label.push_back({std::move(name), std::move(value)});
    }
    (is_counter ? metric.counter.value : metric.gauge.value) = series.value;
    result.metric.push_back(std::move(metric));
  }
  return result;
}

// The functions that the program has added. Holds the lock while it calls a
// function, so that removing a function waits for the end of its call.
class Functions {
 public:
  uint64_t Insert(Collect collect) {
    base::MutexLock lock(&mu_);
    functions_[next_] = std::move(collect);
    return next_++;
  }

  void Remove(uint64_t id) {
    base::MutexLock lock(&mu_);
    functions_.erase(id);
  }

  std::vector<prometheus::MetricFamily> Call() {
    std::vector<prometheus::MetricFamily> families;
    base::MutexLock lock(&mu_);
    for (const auto& [id, collect] : functions_) {
      for (MetricFamily& family : collect()) {
        if (family.series.empty() || !IsAllowed(family)) continue;
        families.push_back(ToPrometheus(std::move(family)));
      }
    }
    return families;
  }

 private:
  base::Mutex mu_;
  std::map<uint64_t, Collect> functions_ ABSL_GUARDED_BY(mu_);
  uint64_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

// The instance of this process. A forked child gets a new one, because a thread
// of the parent may have held the lock. Never destroyed, because a thread may
// still use the instance while the process ends.
std::atomic<Functions*> current{nullptr};

void ForgetInChild() { current.store(nullptr); }

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &ForgetInChild);

Functions* Current() {
  Functions* functions = current.load();
  if (functions != nullptr) return functions;
  auto* const made = new Functions;
  if (current.compare_exchange_strong(functions, made)) return made;
  delete made;
  return functions;
}

class Handle {
 public:
  Handle(Functions* functions, uint64_t id) : functions_(functions), id_(id) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (functions_ == current.load()) functions_->Remove(id_);
  }

 private:
  Functions* const functions_;
  const uint64_t id_;
};

}  // namespace

std::shared_ptr<void> Add(std::function<std::vector<MetricFamily>()> collect) {
  Functions* const functions = Current();
  return std::make_shared<Handle>(functions,
                                  functions->Insert(std::move(collect)));
}

std::vector<prometheus::MetricFamily> AddedFamilies() {
  return Current()->Call();
}

}  // namespace monitoring
}  // namespace penstock
