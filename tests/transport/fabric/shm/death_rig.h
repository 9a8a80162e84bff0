// A rig of two processes with one endpoint each. One of the processes dies.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_DEATH_RIG_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_DEATH_RIG_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace shm {

// Sends the description of a region in a packet. PartIn() reads it.
bool SendPart(Endpoint* from, const RemoteRegion& region);
RemotePart PartIn(const std::string& packet);

// The peer, in a child process. If a step fails, the process ends with an exit
// code that identifies the step.
class DyingPeer {
 public:
  DyingPeer(const Options& options, const std::string& offer,
            const std::string& token);

  // Loads and holds each region that arrives, and answers with a region of
  // `own`. `is_right` checks the loaded bytes. Returns when the connection
  // breaks.
  void Serve(const std::function<bool(const memory::Payload&)>& is_right,
             const memory::Payload& own);
  // Releases the loaded bytes and the endpoint.
  void Release();

 private:
  ShmFabric fabric_;
  Recorder events_;
  std::unique_ptr<Endpoint> endpoint_;
  memory::Payload held_;
};

// The side that survives, in the process that forks the peer.
class DeathRig : public testing::Test {
 protected:
  // Kills the peer, and drops the objects of the connection.
  void TearDown() override;

  // Connects with a child that runs `run_peer`, which must not return.
  void Start(const Options& options,
             void (*run_peer)(const std::string& offer,
                              const std::string& token));
  // Lends `payload` to the peer, and holds the region of its answer.
  void Exchange(const memory::Payload& payload);
  // Polls until the connection is broken. Returns false after the deadline.
  bool PollUntilBroken();

  pid_t peer() const { return peer_; }
  void Kill();
  // Returns the status of waitpid().
  int WaitForPeer();
  // Drops the rig in a forked copy of this process. Checks that `is_intact`
  // returns true in the copy, and that the connection still works in this
  // process.
  void DropInForkedCopy(const std::function<bool()>& is_intact);

  std::unique_ptr<ShmFabric> fabric_;
  Recorder events_;
  std::unique_ptr<Endpoint> endpoint_;
  RemotePart lent_part_ = {};  // of the last Exchange()
  RemotePart held_part_ = {};
  memory::Payload held_;

 private:
  pid_t peer_ = 0;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_DEATH_RIG_H_
