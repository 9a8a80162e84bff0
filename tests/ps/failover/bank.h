// A bank of workers that move amounts between accounts, and count their
// transfers.

#ifndef PENSTOCK_TESTS_PS_FAILOVER_BANK_H_
#define PENSTOCK_TESTS_PS_FAILOVER_BANK_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ps/client/push_queue.h"
#include "ps/client/training_connection.h"

namespace penstock::ps {

// A bank: the accounts are rows of an asynchronous table. Each push moves an
// amount between two accounts, and adds 1 to the worker's counter. The sum of
// all accounts thus stays 0. Each worker also pulls, and expects that its
// counter includes all its pushes.
class Bank {
 public:
  // Defines the bank's model at servers that have no model yet, and starts the
  // workers.
  Bank(const TrainingConnection::Channels& servers,
       const std::vector<std::string>& addresses, uint32_t workers,
       Router::Connect connect = nullptr);
  // Stops the workers.
  ~Bank();

  uint64_t transfers() const { return transfers_; }
  // Returns the first error of a worker, which has stopped, or "".
  std::string failure() const ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until `more` further transfers were acknowledged, for one minute at
  // most. Returns immediately if a worker has failed.
  void AwaitTransfers(uint64_t more) const;
  // Returns the longest time that a push or pull has taken since the last call
  // of this function.
  absl::Duration TakeLongestPause() ABSL_LOCKS_EXCLUDED(mu_);

  // Uses other channels from now on. Running workers keep their channels.
  void SetServers(TrainingConnection::Channels servers) {
    servers_ = std::move(servers);
  }
  // Returns the number of transfers that the servers have applied, from the
  // workers' counters.
  absl::StatusOr<uint64_t> Counted(uint32_t workers) const;
  // Stops the workers. Returns the errors in the accounts, or "" if there are
  // none.
  std::string Close();

 private:
  void Work(uint32_t rank);
  void Fail(const std::string& what) ABSL_LOCKS_EXCLUDED(mu_);
  void Note(absl::Duration pause) ABSL_LOCKS_EXCLUDED(mu_);
  // Counts a push by its verdicts. Returns false if the verdicts are an error.
  bool Take(uint32_t rank, uint64_t step, const Pushed& pushed);

  TrainingConnection::Channels servers_;
  const Router::Connect connect_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> transfers_{0};
  mutable absl::Mutex mu_;
  absl::Duration longest_ ABSL_GUARDED_BY(mu_);
  std::string failure_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> acknowledged_;  // by rank; each thread writes its own
  std::vector<std::thread> workers_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_FAILOVER_BANK_H_
