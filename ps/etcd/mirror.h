// Keeps a copy of the keys of a prefix up to date.

#ifndef PENSTOCK_PS_ETCD_MIRROR_H_
#define PENSTOCK_PS_ETCD_MIRROR_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ps/etcd/cancel.h"
#include "ps/etcd/client.h"
#include "ps/etcd/copy.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::etcd {

// A copy of all keys that begin with a prefix. A thread reads them once, and
// then watches them. A watch that ends is resumed at its revision, at another
// endpoint if there is one. If etcd has compacted that revision, all keys are
// read again.
//
// While etcd is unreachable, or answers as another etcd, the copy stays
// unchanged, and status() returns the reason. Thread-safe.
class Mirror {
 public:
  // Watches until the destructor. `client` must outlive the mirror. Calls
  // `changed`, unless it is empty, on the mirror's thread after each change of
  // the values or of the status.
  Mirror(Client* client, std::string prefix,
         std::function<void()> changed = nullptr);
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // Returns the values of the last read or event.
  Values values() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns OK if the copy follows etcd, and NOT_FOUND before the first read.
  // Otherwise returns the reason why the copy may be old.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until `is_wanted` returns true for the values, or until `deadline`,
  // by base::SteadyNow(). Returns the last result of `is_wanted`. `is_wanted`
  // runs under the mirror's lock, and only after the first read.
  bool Await(const std::function<bool(const Values&)>& is_wanted,
             absl::Time deadline) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void ThreadLoop();
  // Reads all keys.
  absl::Status ReadAll();
  // Watches until the stream ends. Returns the reason for the end.
  absl::Status Watch();
  // Returns the request of a watch from the copy's revision on.
  etcdserverpb::WatchRequest FirstRequest() const ABSL_LOCKS_EXCLUDED(mu_);
  // Handles a message of a watch. Returns an error if the watch has to end.
  absl::Status Take(const etcdserverpb::WatchResponse& response);
  // Returns the error of a watch's first message.
  absl::Status CheckCreated(const etcdserverpb::WatchResponse& created);
  void SetStatus(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `change`, which returns true if it changed a value, and sets the
  // status to OK. Wakes the waiting threads if a value or the status changed.
  void Change(const std::function<bool(Copy*)>& change)
      ABSL_LOCKS_EXCLUDED(mu_);

  Client* const client_;
  const std::string prefix_;
  const std::function<void()> changed_;
  Cancel cancel_;
  mutable absl::Mutex mu_;
  base::SteadyCondVar is_changed_;
  Copy copy_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_) =
      absl::NotFoundError("etcd was not read yet");
  std::thread thread_;  // starts last
};

}  // namespace penstock::ps::etcd

#endif  // PENSTOCK_PS_ETCD_MIRROR_H_
