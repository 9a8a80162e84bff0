// Registers a member under its key in etcd.

#ifndef PENSTOCK_PS_MEMBERSHIP_REGISTRATION_H_
#define PENSTOCK_PS_MEMBERSHIP_REGISTRATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ps/etcd/cancel.h"
#include "ps/membership/registry.h"

namespace penstock::ps::membership {

// A key with a lease: the name of a server or a worker. Only one process can
// have the key. A thread renews the lease.
//
// | Event                          | What happens                             |
// |--------------------------------|------------------------------------------|
// | etcd is unreachable            | nothing; status() says so                |
// | the lease has ended meanwhile  | claims the key again                     |
// | the key was deleted            | claims the key again                     |
// | another process has the key    | status() is ALREADY_EXISTS; claims the   |
// |                                | key once it is free                      |
// | etcd is not the one of before  | status() is DATA_LOSS; claims nothing    |
//
// None of these events ends the process. The owner of this object reads
// status(), and decides what to do without the key.
class Registration {
 public:
  struct Options {
    Registry* registry = nullptr;  // must outlive the registration
    std::string key;
    // The value of the key. Contains the incarnation, so that it differs from
    // process to process.
    std::string value;
    std::string name;  // for messages: "server ps0"
    // Returns a description, for messages, of the owner that a value describes,
    // such as "the one at ps0:7000".
    std::function<std::string(const std::string& value)> describe;
    absl::Duration time_to_live = absl::Seconds(10);
    // Limits the wait for etcd, and for a previous owner of the key to release
    // it. The previous owner may be a killed process. Must be longer than that
    // owner's lease.
    absl::Duration patience = absl::Seconds(15);
    // Called with a line when the state changes, and every minute while another
    // process has the key. May be empty.
    std::function<void(const std::string& line)> log;
  };

  // Claims the key, and keeps it until the destructor. Blocks until the key is
  // claimed. Returns ALREADY_EXISTS, which names the owner, if another process
  // does not release the key in time. Returns CANCELLED once `cancel` is
  // cancelled.
  static absl::StatusOr<std::unique_ptr<Registration>> Register(
      Options options, etcd::Cancel* cancel = nullptr);
  // Deletes the key, if etcd answers within a second.
  ~Registration();

  // Returns the pause after a renewal that has ended with `status`. `left` is
  // the time for which the lease is still valid. If etcd is unreachable, pauses
  // are short as long as a renewal can save the lease.
  static absl::Duration PauseAfter(const absl::Status& status,
                                   absl::Duration left,
                                   absl::Duration time_to_live);

  // Returns OK if this process owned the key when etcd last answered.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a condition for writes that only the owner of the key may make.
  Registry::Guard guard() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the time, by base::SteadyNow(), until which etcd keeps the key if
  // this process stops renewing the lease.
  absl::Time valid_until() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A lease and its duration.
  struct Claim {
    int64_t lease = 0;
    absl::Time until;
  };

  Registration(Options options, const Claim& claim);
  static absl::StatusOr<Claim> ClaimKey(const Options& options,
                                        etcd::Cancel* cancel);
  // Writes the key with a lease. Returns ALREADY_EXISTS, with the owner.
  static absl::Status WriteKey(const Options& options, int64_t lease,
                               etcd::Cancel* cancel);
  void ThreadLoop();
  // Keeps the lease alive, or claims the key again.
  absl::Status Renew();
  void SetStatus(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  void SetClaim(const Claim& claim) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  etcd::Cancel cancel_;
  mutable absl::Mutex mu_;
  Claim claim_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  absl::Time logged_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::thread thread_;  // starts last
};

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_REGISTRATION_H_
