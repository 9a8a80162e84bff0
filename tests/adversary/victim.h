// A process with real gRPC over Penstock, its bystander, and the limits that it
// must keep.

#ifndef PENSTOCK_TESTS_ADVERSARY_VICTIM_H_
#define PENSTOCK_TESTS_ADVERSARY_VICTIM_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "grpcpp/server.h"
#include "tests/adversary/caller.h"
#include "tests/adversary/calls.h"
#include "tests/adversary/peer.h"
#include "tests/adversary/security.h"
#include "tests/adversary/service.h"
#include "tests/process/child.h"
#include "tests/process/log_file.h"

namespace penstock::adversary {

// How much memory one hostile session may make its victim hold: the budget of
// what is read (64 MiB), unread eager messages (16 MiB), windows, what waits to
// be written; and the allocator's slack. In bytes.
constexpr uint64_t kMemoryPerSession = 160 << 20;
// The same if nothing is announced and nothing left unread: a joined payload of
// 16 MiB, as it grows, or frames that came early.
constexpr uint64_t kMemoryOfAPayload = 64 << 20;
// The same if only answers wait to be written.
constexpr uint64_t kMemoryOfAnswers = 24 << 20;

struct Limits {
  uint64_t memory = kMemoryPerSession;
  // In addition to what each connection allows.
  uint64_t log = 16 * 1024;
  // In addition to what the traffic and the bystander's calls allow.
  double cpu_seconds = 1;
};

enum class Role { kServer, kClient };

struct VictimOptions {
  Role role = Role::kServer;
  uint8_t version = kNewest;  // that the attacker speaks
  std::vector<std::string> environment;
  // All connections, the attacker's too, are TLS with certificates on both
  // sides. The attacker is hostile only after the handshake.
  bool has_tls = false;
  // A server's.
  int max_streams = -1;
  int max_receive = 4 << 20;
  bool has_tcp = true;  // false: its bystander calls over shm only
  // A client's.
  Kind kind = Kind::kDuplex;
  int calls = 1;
};

// Failures fail the running test.
class Victim {
 public:
  explicit Victim(const VictimOptions& options);
  // Replaces a process that has died, so that a table goes on with its next
  // row.
  void Restart();
  ~Victim();

  // If there is no session, fails the test and returns a dead peer.
  std::unique_ptr<Peer> NewConnection();
  // The same without the handshake of TLS, even if there is TLS.
  std::unique_ptr<Peer> NewConnectionInClear();
  // Returns a connection that has negotiated, before the hellos.
  std::unique_ptr<Peer> NewNegotiation();
  // Returns a session after the hellos of both sides.
  std::unique_ptr<Peer> NewSession(Hello hello = Hello());
  // The same, where that may fail: then returns null.
  std::unique_ptr<Peer> TrySession(Hello hello = Hello());

  bool is_server() const { return options_.role == Role::kServer; }
  int port() const { return port_; }            // a server's
  int calls() const { return options_.calls; }  // a client's, at once
  process::Child* process() { return process_.get(); }
  const Traffic& traffic() const { return traffic_; }
  // Returns what the victim has written to stderr since it was attacked.
  std::string Log() const { return log_file_.Text(log_); }
  // A client's connections to the attacker, as DescribePaths gives them.
  const std::vector<std::string>& paths() const { return paths_; }

  // Returns how the client's next call ended, of those not returned yet.
  // Returns nothing if none ends in time.
  absl::optional<Outcome> AwaitOutcome();

  // Waits until the bystander has called once more on each connection.
  void AwaitCalls() { CheckBystander(); }
  // Lets the bystander call again, and compares everything with the limits.
  void Examine(const Limits& limits);

 private:
  void Start();
  void StartServer();
  void StartHonest();
  void StartClient();
  std::unique_ptr<Peer> Connect();
  std::unique_ptr<Peer> ConnectInClear();
  using Step = std::function<bool(Peer*)>;
  // Returns a connection with which `step` succeeds, or null. A client may end
  // one that it has just made: a call that queued while the last session ended
  // wakes its channel, though it fails at once and nobody needs the channel.
  std::unique_ptr<Peer> TryUntil(const Step& step);
  std::unique_ptr<Peer> OrFail(std::unique_ptr<Peer> peer);
  std::vector<std::string> Environment() const;
  // Waits for calls of the bystander that begin now. Fails the test if one has
  // failed until then.
  void CheckBystander();
  void AddOutcome(const std::string& line);
  void CheckMemory(const Limits& limits);
  void CheckCpu(const Limits& limits);
  void CheckLog(const Limits& limits);
  void CheckDescriptors();
  // Counts the attacker's and the bystander's connections, since the beginning.
  uint64_t Connections() const;

  const VictimOptions options_;
  Identity identity_;  // the victim's
  Identity others_;    // that of everybody else
  Traffic traffic_;
  process::LogFile log_file_;
  std::unique_ptr<process::Child> process_;
  int port_ = 0;
  // A server's bystander; for a client, the server that its own bystander
  // calls.
  std::unique_ptr<Bystander> bystander_;
  Service service_;
  std::unique_ptr<grpc::Server> honest_;
  Listener listener_;
  int calls_ = 0;
  int connections_ = 0;
  std::vector<std::string> paths_;
  std::deque<Outcome> outcomes_;
  // At the beginning.
  uint64_t memory_ = 0;
  double cpu_seconds_ = 0;
  uint64_t log_ = 0;
  int descriptors_ = 0;
  int calls_before_ = 0;
  int connections_before_ = 0;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_VICTIM_H_
