// Registers a parameter server in etcd.

#ifndef PENSTOCK_PS_REGISTER_H_
#define PENSTOCK_PS_REGISTER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/etcd/cancel.h"
#include "ps/membership/membership.h"
#include "ps/replication/view_follower.h"
#include "ps/views/board.h"
#include "ps/views/keeping.h"

namespace penstock::ps {

// The flags by which a server registers in etcd, where workers find it.
struct EtcdFlags {
  std::string endpoints;  // HOST:PORT, with commas; empty: no etcd
  std::string prefix;     // the prefix of the training's keys
  unsigned servers = 1;   // the number of servers of the training
  std::string name;       // empty: the address is the name
  std::string advertise;  // the address for workers; empty: from --listen
  unsigned replicas = 0;  // backups of each shard; 0: none

  // Returns INVALID_ARGUMENT, which names the flag, if a flag is malformed, or
  // if there are more replicas than servers.
  absl::Status Check() const;
};

// The registration of a server that listens at `address`. A thread registers
// the server, and tries again while etcd is unreachable. Logs a line when etcd
// becomes unreachable and when it answers again. Unless `quiet`, also logs the
// registration.
//
// If the server has replicas, the thread then follows the views, and makes new
// views together with the other servers.
class ServerRegistration {
 public:
  // The replicas of this process, and the board for the newest view. Both must
  // outlive the registration. Null if there are no replicas.
  struct Replicas {
    replication::ViewFollower* follower = nullptr;
    views::Board* board = nullptr;
  };

  // Calls `ended` once, on the thread: with OK when the server is registered,
  // or with an error of Membership::Open() or Membership::RegisterServer()
  // other than UNAVAILABLE. Does not call `ended` if the destructor runs first.
  // Without endpoints, calls `ended` immediately and does not register.
  ServerRegistration(EtcdFlags flags, const std::string& address, bool quiet,
                     const Replicas& replicas,
                     std::function<void(const absl::Status&)> ended);
  // Ends the registration, or the attempt.
  ~ServerRegistration();
  ServerRegistration(const ServerRegistration&) = delete;
  ServerRegistration& operator=(const ServerRegistration&) = delete;

 private:
  void ThreadLoop();
  absl::Status Register();
  void KeepViews();
  // Logs why the server is not registered yet. Limits how often a line is
  // logged.
  void Warn(const absl::Status& status);

  const EtcdFlags flags_;
  const std::string address_;
  const bool is_quiet_;
  const Replicas replicas_;
  const std::function<void(const absl::Status&)> ended_;
  etcd::Cancel cancel_;
  absl::Time next_warning_ = absl::InfinitePast();
  std::unique_ptr<membership::Membership> member_;
  // Declared after the registration, so that it ends first.
  std::unique_ptr<views::Keeping> views_;
  std::thread thread_;  // starts last
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_REGISTER_H_
