// A value that another thread provides.

#ifndef PENSTOCK_TESTS_TRANSPORT_RPC_AWAITED_H_
#define PENSTOCK_TESTS_TRANSPORT_RPC_AWAITED_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/types/optional.h"

namespace penstock {
namespace rpc {

// A queue of values, which copies of this object share. Returns the values in
// the order of Set().
template <typename T>
class Awaited {
 public:
  Awaited() : state_(std::make_shared<State>()) {}
  void Set(T value) const {
    std::lock_guard<std::mutex> lock(state_->mu);
    state_->values.push_back(std::move(value));
    state_->changed.notify_all();
  }
  // Waits for a value and returns it. Returns nothing if no value arrives
  // within 20 s.
  absl::optional<T> Get() const {
    std::unique_lock<std::mutex> lock(state_->mu);
    if (!state_->changed.wait_for(lock, std::chrono::seconds(20), [this] {
          return state_->taken < state_->values.size();
        })) {
      return absl::nullopt;
    }
    return std::move(state_->values[state_->taken++]);
  }
  size_t count() const {
    std::lock_guard<std::mutex> lock(state_->mu);
    return state_->values.size();
  }

 private:
  struct State {
    std::mutex mu;
    std::condition_variable changed;
    std::vector<T> values;
    size_t taken = 0;
  };
  std::shared_ptr<State> state_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_RPC_AWAITED_H_
