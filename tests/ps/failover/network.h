// Hosts as network namespaces, with cables that a test can cut.

#ifndef PENSTOCK_TESTS_PS_FAILOVER_NETWORK_H_
#define PENSTOCK_TESTS_PS_FAILOVER_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace penstock::ps {

// One direction of the cable between two hosts.
struct Cable {
  bool is_cut = false;
  double loss = 0;  // the share of lost packets
  // The time that each packet takes, and the maximum of a random addition. With
  // jitter, packets may overtake others.
  absl::Duration delay;
  absl::Duration jitter;
};

// Hosts that a switch connects. Each host is a network namespace with a TAP
// device. The switch is a thread of this process, so the kernel needs neither
// netem nor packet filters. Thread-safe.
class Network {
 public:
  // Makes hosts. The calling process becomes host 0, and so may have only one
  // thread. Returns null if namespaces or TAP devices are not permitted.
  static std::unique_ptr<Network> Make(size_t hosts);
  ~Network();

  static std::string AddressOf(size_t host);
  // Returns the words before a command that make it run on a host.
  std::vector<std::string> Enter(size_t host) const;
  size_t hosts() const { return taps_.size(); }

  // Changes one direction of a cable.
  void Set(size_t from, size_t to, const Cable& cable) ABSL_LOCKS_EXCLUDED(mu_);
  // Changes all cables from and to a host.
  void SetFrom(size_t host, const Cable& cable) ABSL_LOCKS_EXCLUDED(mu_);
  void SetTo(size_t host, const Cable& cable) ABSL_LOCKS_EXCLUDED(mu_);
  // Repairs all cables.
  void Heal() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns how many packets cables have lost since the last call.
  size_t TakeLost() ABSL_LOCKS_EXCLUDED(mu_);
  // Seeds the random losses and delays.
  void Seed(unsigned seed) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Packet {
    absl::Time due;
    size_t to;
    std::string frame;
    bool operator<(const Packet& other) const { return due > other.due; }
  };

  Network() = default;
  // Adds a host whose namespace is that of the calling thread.
  bool AddHost();
  void Loop();
  void Switch(size_t from, const std::string& frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the packets that are due. Returns the time until the next one.
  absl::Duration SendDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::vector<int> taps_;        // by host
  std::vector<int> namespaces_;  // by host
  int end_ = -1;                 // readable once the thread has to end
  absl::Mutex mu_;
  size_t lost_ ABSL_GUARDED_BY(mu_) = 0;
  std::mt19937 random_ ABSL_GUARDED_BY(mu_);
  std::vector<std::vector<Cable>> cables_ ABSL_GUARDED_BY(mu_);  // from, to
  std::priority_queue<Packet> packets_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_FAILOVER_NETWORK_H_
