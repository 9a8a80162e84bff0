// A process with real gRPC over Penstock, an honest bystander, and the limits
// that the process must respect.

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

// Limits the memory that one hostile session may occupy in its victim, in
// bytes. Covers the read budget (64 MiB), unread eager messages (16 MiB),
// windows, pending output and the allocator's slack.
constexpr uint64_t kMemoryPerSession = 160 << 20;
// Limits the memory of a session without announcements and unread messages, in
// bytes. Suffices for a joined payload of 16 MiB while it grows, or for frames
// that came early.
constexpr uint64_t kMemoryOfAPayload = 64 << 20;
// Limits a session in which only unwritten answers use memory.
constexpr uint64_t kMemoryOfAnswers = 24 << 20;

struct Limits {
  uint64_t memory = kMemoryPerSession;
  // The log bytes allowed in addition to the allowance per connection.
  uint64_t log = 16 * 1024;
  // The CPU time allowed in addition to the traffic and the bystander's calls.
  double cpu_seconds = 1;
};

enum class Role { kServer, kClient };

struct VictimOptions {
  Role role = Role::kServer;
  uint8_t version = kNewest;  // the attacker's version
  std::vector<std::string> environment;
  // Secures all connections, including the attacker's, by TLS with certificates
  // on both sides. The attacker is hostile only after the handshake.
  bool has_tls = false;
  // The options of a server: the limits of streams and of message size, -1 for
  // none.
  int max_streams = -1;
  int max_receive = 4 << 20;
  bool has_tcp = true;  // false: the bystander calls over shm only
  // Options of a client.
  Kind kind = Kind::kDuplex;
  int calls = 1;
};

// A victim process and its bystander. Failures fail the running test.
class Victim {
 public:
  explicit Victim(const VictimOptions& options);
  // Replaces a process that has died, so that a table can continue with its
  // next row.
  void Restart();
  ~Victim();

  // Makes a session. On failure, fails the test and returns a closed peer.
  std::unique_ptr<Peer> NewConnection();
  // Makes a connection without the TLS handshake, even if the victim uses TLS.
  std::unique_ptr<Peer> NewConnectionInClear();
  // Returns a connection that has negotiated, but has not exchanged hellos.
  std::unique_ptr<Peer> NewNegotiation();
  // Returns a session after both hellos.
  std::unique_ptr<Peer> NewSession(Hello hello = Hello());
  // Returns a session after both hellos, or null on failure.
  std::unique_ptr<Peer> TrySession(Hello hello = Hello());

  bool is_server() const { return options_.role == Role::kServer; }
  int port() const { return port_; }  // the port of a server
  // The number of simultaneous calls of a client.
  int calls() const { return options_.calls; }
  process::Child* process() { return process_.get(); }
  const Traffic& traffic() const { return traffic_; }
  // Returns the victim's output on stderr since the start of the attack.
  std::string Log() const { return log_file_.Text(log_); }
  // Returns a client's connections to the attacker, as DescribePaths() shows
  // them.
  const std::vector<std::string>& paths() const { return paths_; }

  // Returns the outcome of the client's next call. Returns nothing if no call
  // ends in time.
  absl::optional<Outcome> AwaitOutcome();

  // Waits until the bystander has made another call on each connection.
  void AwaitCalls() { CheckBystander(); }
  // Waits until the bystander has called again, and checks all limits.
  void Examine(const Limits& limits);

 private:
  void Start();
  void StartServer();
  void StartHonest();
  void StartClient();
  std::unique_ptr<Peer> Connect();
  std::unique_ptr<Peer> ConnectInClear();
  using Step = std::function<bool(Peer*)>;
  // Returns a connection on which `step` succeeds, or null. Tries several
  // connections, because a client may close a new connection immediately. This
  // happens if a call of the previous session reconnects the channel and then
  // fails: no call needs the new connection.
  std::unique_ptr<Peer> TryUntil(const Step& step);
  std::unique_ptr<Peer> OrFail(std::unique_ptr<Peer> peer);
  std::vector<std::string> Environment() const;
  // Waits for new calls of the bystander. Fails the test if one has failed.
  void CheckBystander();
  void AddOutcome(const std::string& line);
  void CheckMemory(const Limits& limits);
  void CheckCpu(const Limits& limits);
  void CheckLog(const Limits& limits);
  void CheckDescriptors();
  // Returns the number of the attacker's and the bystander's connections so
  // far.
  uint64_t Connections() const;

  const VictimOptions options_;
  Identity identity_;  // the victim's
  Identity others_;    // the identity of all processes except the victim
  Traffic traffic_;
  process::LogFile log_file_;
  std::unique_ptr<process::Child> process_;
  int port_ = 0;
  // The bystander of a server. If the victim is a client, this is the server
  // that the client's own bystander calls.
  std::unique_ptr<Bystander> bystander_;
  Service service_;
  std::unique_ptr<grpc::Server> honest_;
  Listener listener_;
  int calls_ = 0;
  int connections_ = 0;
  std::vector<std::string> paths_;
  std::deque<Outcome> outcomes_;
  // The victim's resources before the attack.
  uint64_t memory_ = 0;
  double cpu_seconds_ = 0;
  uint64_t log_ = 0;
  int descriptors_ = 0;
  int calls_before_ = 0;
  int connections_before_ = 0;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_VICTIM_H_
