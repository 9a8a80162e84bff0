// Two sessions and their owners, with random deliveries, failures and actions.
// A seed determines the run.

#ifndef PENSTOCK_TESTS_TRANSPORT_SESSION_SIMULATION_H_
#define PENSTOCK_TESTS_TRANSPORT_SESSION_SIMULATION_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/transport/session/session_test_util.h"
#include "tests/transport/session/simulated_call.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/fake/link.h"
#include "transport/session/events.h"
#include "transport/session/session.h"

namespace penstock {
namespace session {

struct SimulationOptions {
  bool offers_path = false;
  // The probability that a step affects a path, in 1000.
  int path_faults = 0;
  bool loses_lifeline = false;
};

class Simulation {
 public:
  Simulation(uint32_t seed, const SimulationOptions& options);

  // Makes random steps, completes all remaining work, and checks the final
  // state. Returns the violations.
  std::vector<std::string> Run();

 private:
  // One side with its owner. The owner polls its fast path at random times. An
  // owner that has armed the path polls only after a doorbell, or for its own
  // reads in progress.
  struct Owner : public SessionEvents, public PathEvents {
    void OnStreamOpened(uint32_t stream) override { opened.push_back(stream); }
    void OnGoaway(uint32_t, const absl::Status&) override {}
    void OnPing() override {}
    void OnPong(uint64_t) override {}
    absl::Status OnEntry(uint32_t, absl::string_view) override {
      return absl::OkStatus();
    }
    void OnConnectWanted(const std::string&, const std::string&,
                         const std::string&) override {
      connect_wanted = true;
    }
    void OnListenWanted() override { listen_wanted = true; }
    void OnPathChosen(const PathDescription&) override { ++reports; }
    void OnClosed(const absl::Status&) override { ++closed; }

    Side side = Side::kA;
    std::unique_ptr<Session> session;
    std::map<uint32_t, std::unique_ptr<SimulatedCall>> calls;
    std::vector<uint32_t> opened;  // not attached yet
    bool connect_wanted = false;
    bool listen_wanted = false;
    std::unique_ptr<fabric::Endpoint> path;  // connected, but not added yet
    uint32_t path_epoch = 0;
    bool armed = false;
    bool awake = true;   // must be polled even if armed
    uint64_t reads = 0;  // on the fast path, when the owner last went to sleep
    int reports = 0;
    int closed = 0;
  };

  uint32_t Roll(uint32_t n) { return world_.random() % n; }
  template <typename T>
  T Pick(std::initializer_list<T> of) {
    return of.begin()[Roll(static_cast<uint32_t>(of.size()))];
  }
  Owner& owner(Side side) { return side == Side::kA ? client_ : server_; }
  // Returns the newest fast link, or null.
  Link* fast() { return links_.empty() ? nullptr : links_.back().get(); }

  // The functions below are defined in simulation_setup.cc.
  void MakeOwner(Side side);
  LinkOptions RandomLink(bool is_lifeline);
  Config RandomConfig(Side side);
  size_t RandomSize();
  void RandomPlan(CallPlan* plan);

  // The functions below are defined in simulation_paths.cc.
  void Connect();
  void Listen();
  void AddPath(Owner* owner);
  void RetryPath();
  void FailSomething();
  bool PollPath(Owner* owner);
  void ToggleArmed(Owner* owner);

  // The functions below are defined in simulation.cc.
  void Step();
  void OpenCall();
  void AttachOpened(Owner* owner);
  void ActSomewhere(Owner* owner);
  bool StepLifeline(Owner* owner);
  void LoseLifeline();
  bool FinishSome(Owner* owner);
  void Finish();
  void SendDeferred();
  void CheckEnd(Owner* owner);
  void CheckLoans(const Owner& owner, const std::string& name);
  void CheckPayloads();
  void Expect(bool holds, const std::string& what);

  CallWorld world_;
  const SimulationOptions options_;
  const uint8_t version_;  // of both sides
  Link lifeline_;
  std::vector<std::unique_ptr<Link>> links_;
  bool lifeline_lost_ = false;
  uint32_t next_stream_ = 1;
  std::map<uint32_t, CallPlan> plans_;
  Owner client_;
  Owner server_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_SESSION_SIMULATION_H_
