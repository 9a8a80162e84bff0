// An etcd in this process. The test can make it fail or answer falsely.

#ifndef PENSTOCK_TESTS_PS_ETCD_FAKE_ETCD_H_
#define PENSTOCK_TESTS_PS_ETCD_FAKE_ETCD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "ps/etcd/client.h"
#include "tests/ps/etcd/etcd_state.h"

namespace penstock::ps::etcd {

// One endpoint. Answers ranges of a key or a prefix, and watches of the
// history. Answers transactions that compare for equality, or that compare the
// revisions of a prefix. Leases end when the test ends them. Thread-safe.
class FakeEtcd {
 public:
  // Serves a state of its own, or the state of another endpoint of the same
  // etcd.
  explicit FakeEtcd(FakeEtcd* other = nullptr);
  ~FakeEtcd();

  std::string address() const;
  // Returns options for a client of this endpoint, with a short timeout.
  Client::Options ClientOptions() const;

  // Makes all calls fail with UNAVAILABLE, and ends all streams.
  void SetAway(bool is_away);
  // Makes all calls fail with this code, without effect. With OK, calls work
  // again.
  void FailWith(grpc::StatusCode code);
  // Makes the next transaction take effect, but answer UNAVAILABLE.
  void LoseNextAnswer();
  // Makes writing transactions take effect immediately, and delays their
  // answers.
  void DelayAnswersOfWrites(absl::Duration delay);
  // Blocks transactions that write `key`, before they read anything. ""
  // unblocks them.
  void HoldWritesOf(const std::string& key);
  // Blocks until a transaction waits.
  void AwaitHeldWrite() const;
  // Holds back the events of all watches, so that copies of etcd stay old.
  void HoldEvents();
  // Replaces the cluster id or the revision in the header of each answer. 0
  // restores the true headers.
  void LieOfCluster(uint64_t cluster_id);
  void LieOfRevision(int64_t revision);
  // Requires a user. ForgetTokens() makes all tokens invalid.
  void RequireUser(const std::string& name, const std::string& password);
  void ForgetTokens();

  EtcdState Save() const;
  void Restore(const EtcdState& state);
  void Put(const std::string& key, const std::string& value);
  void Delete(const std::string& key);
  // Ends all leases, and deletes their keys.
  void ExpireLeases();
  // Forgets the history, and ends all streams.
  void CompactAndEndStreams();
  void EndStreams();
  // Blocks until a client calls while etcd is unavailable.
  void AwaitRefusedCall() const;
  // Returns the number of reads so far, without reads in transactions.
  int reads() const;
  // Blocks until `count` watches were created, in all.
  void AwaitWatches(int count) const;

 private:
  class Services;
  // The state of an etcd, which its endpoints share.
  struct Shared {
    mutable absl::Mutex mu;
    EtcdState state ABSL_GUARDED_BY(mu);
  };

  const std::shared_ptr<Shared> shared_;
  std::unique_ptr<Services> services_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::ps::etcd

#endif  // PENSTOCK_TESTS_PS_ETCD_FAKE_ETCD_H_
