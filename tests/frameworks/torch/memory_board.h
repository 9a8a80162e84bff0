// A board in memory, and the ranks of a group as threads of a test.

#ifndef PENSTOCK_TESTS_FRAMEWORKS_TORCH_MEMORY_BOARD_H_
#define PENSTOCK_TESTS_FRAMEWORKS_TORCH_MEMORY_BOARD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "frameworks/torch/place.h"
#include "frameworks/torch/rendezvous.h"
#include "gtest/gtest.h"

namespace penstock {
namespace pytorch {

class MemoryBoard final : public Board {
 public:
  absl::Status Set(const std::string& key, const std::string& value) override {
    absl::MutexLock lock(&mu_);
    values_[key] = value;
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Count(const std::string& key) override {
    absl::MutexLock lock(&mu_);
    return ++counters_[key];
  }

  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override {
    absl::MutexLock lock(&mu_);
    const auto is_there = [&] {
      mu_.AssertHeld();
      return values_.count(key) > 0;
    };
    if (!mu_.AwaitWithTimeout(absl::Condition(&is_there), timeout)) {
      return absl::DeadlineExceededError(absl::StrCat("no '", key, "'"));
    }
    return values_[key];
  }

 private:
  absl::Mutex mu_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int64_t> counters_ ABSL_GUARDED_BY(mu_);
};

// Returns a place on `host`. All other ranks reach it by the loopback device.
inline Place PlaceOn(const std::string& host) {
  return {host, "name of " + host, "127.0.0.1", "127.0.0.1"};
}

// Forms a group of threads, one for each place. Calls `run` on each thread.
// Returns when all calls have returned.
inline void RunRanksAt(const std::vector<Place>& places,
                       const std::function<void(const FormedGroup&)>& run) {
  MemoryBoard board;
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    threads.emplace_back([&, rank] {
      collectives::HostGroupOptions options;
      options.ranks = static_cast<int>(places.size());
      auto formed =
          FormGroup(&board, places[rank], static_cast<int>(rank), options);
      ASSERT_TRUE(formed.ok()) << formed.status();
      run(*formed);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Like RunRanksAt(), with all ranks on one host.
inline void RunRanks(int ranks,
                     const std::function<void(collectives::Group*)>& run) {
  RunRanksAt(std::vector<Place>(ranks, PlaceOn("one host")),
             [&](const FormedGroup& formed) { run(formed.group.get()); });
}

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FRAMEWORKS_TORCH_MEMORY_BOARD_H_
