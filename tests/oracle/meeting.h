// Lets the two sides of a call, in one process, wait for each other outside the
// call.

#ifndef PENSTOCK_TESTS_ORACLE_MEETING_H_
#define PENSTOCK_TESTS_ORACLE_MEETING_H_

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <set>

#include "grpcpp/client_context.h"

namespace penstock::oracle {

enum class Side { kClient, kServer };

// The timeout of a wait or a call, after which it counts as hung.
constexpr std::chrono::seconds kPatience(60);

// The place where a call's two sides wait for each other. Thread-safe.
class Meeting {
 public:
  // Registers the client. Call it before the call begins. `client` must live
  // until Leave(kClient).
  void Begin(grpc::ClientContext* client) {
    std::lock_guard<std::mutex> lock(mu_);
    client_ = client;
  }
  // Records that `side` has reached `point`.
  void Reach(Side side, size_t point) {
    std::lock_guard<std::mutex> lock(mu_);
    reached_[Index(side)].insert(point);
    changed_.notify_all();
  }
  // Records that `side` will reach no further points.
  void Leave(Side side) {
    std::lock_guard<std::mutex> lock(mu_);
    left_[Index(side)] = true;
    if (side == Side::kClient) client_ = nullptr;
    changed_.notify_all();
  }
  // Blocks until `side` has reached `point`. Returns false if the side has
  // left, or after the timeout.
  bool Await(Side side, size_t point,
             std::chrono::milliseconds time = kPatience) {
    std::unique_lock<std::mutex> lock(mu_);
    const size_t at = Index(side);
    changed_.wait_for(
        lock, time, [&] { return left_[at] || reached_[at].count(point) > 0; });
    return reached_[at].count(point) > 0;
  }

  // Cancels the client's call if the call is still running. Any thread may call
  // this function.
  void CancelClient() {
    std::lock_guard<std::mutex> lock(mu_);
    if (client_ != nullptr) client_->TryCancel();
  }
  // Cancels the client's call after `time`, unless the client leaves before.
  void CancelClientAfter(std::chrono::microseconds time) {
    std::unique_lock<std::mutex> lock(mu_);
    const size_t at = Index(Side::kClient);
    if (!changed_.wait_for(lock, time, [&] { return left_[at]; })) {
      client_->TryCancel();
    }
  }

 private:
  static size_t Index(Side side) { return side == Side::kClient ? 0 : 1; }

  std::mutex mu_;
  std::condition_variable changed_;
  std::array<std::set<size_t>, 2> reached_;
  std::array<bool, 2> left_{};
  grpc::ClientContext* client_ = nullptr;
};

// Points that both sides reach.
constexpr size_t kPhasesDone = 1000;  // all phases have ended
constexpr size_t kEnding = 1001;      // the side's last operation begins
constexpr size_t kGone = 1002;        // the side's last operation is done
// Returns the point at which the side has sent as much of phase `index` as
// possible without a reader.
inline size_t SentPoint(size_t index) { return index; }

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_MEETING_H_
