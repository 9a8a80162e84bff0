#include "tests/ps/failover/network.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr char kDevice[] = "cable";
constexpr size_t kMaxHosts = 100;
constexpr size_t kMaxFrame = 65536;
constexpr size_t kHeader = 14;  // Ethernet's header
constexpr size_t kLastOfMac = 5;
constexpr size_t kTypeAt = 12;
constexpr char kIpv4[] = "\x08\x00";
// Limits the memory of packets in flight. Further packets are lost, as in a
// switch.
constexpr size_t kMaxPackets = 20000;

std::string MacOf(size_t host) {
  char text[32];
  std::snprintf(text, sizeof(text), "02:00:00:00:00:%02zx", host);
  return text;
}

// Opens the TAP device of the calling thread's namespace. Returns -1 on
// failure.
int OpenTap() {
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tap < 0) return -1;
  ifreq request = {};
  std::strncpy(request.ifr_name, kDevice, sizeof(request.ifr_name) - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(tap, TUNSETIFF, &request) == 0) return tap;
  close(tap);
  return -1;
}

// Gives the calling thread's namespace its address. Adds the hardware addresses
// of all hosts, so that no host sends ARP requests over a cut cable.
bool Configure(size_t host, size_t hosts) {
  std::string commands =
      absl::StrCat("ip link set lo up && ip link set ", kDevice, " address ",
                   MacOf(host), " && ip address add ", Network::AddressOf(host),
                   "/24 dev ", kDevice, " && ip link set ", kDevice, " up");
  for (size_t other = 0; other < hosts; ++other) {
    if (other == host) continue;
    absl::StrAppend(&commands, " && ip neigh add ", Network::AddressOf(other),
                    " lladdr ", MacOf(other), " dev ", kDevice);
  }
  return std::system(commands.c_str()) == 0;
}

}  // namespace

std::unique_ptr<Network> Network::Make(size_t hosts) {
  if (hosts > kMaxHosts || unshare(CLONE_NEWNET) != 0) return nullptr;
  std::unique_ptr<Network> network(new Network());
  bool is_made = network->AddHost() && Configure(0, hosts);
  // A namespace belongs to a thread. The open descriptor keeps the namespace
  // after the thread has ended.
  std::thread([&] {
    for (size_t host = 1; host < hosts && is_made; ++host) {
      is_made = unshare(CLONE_NEWNET) == 0 && network->AddHost() &&
                Configure(host, hosts);
    }
  }).join();
  if (!is_made) return nullptr;
  {
    absl::MutexLock lock(&network->mu_);
    network->cables_.assign(hosts, std::vector<Cable>(hosts));
  }
  network->end_ = eventfd(0, EFD_CLOEXEC);
  network->thread_ = std::thread([&network = *network] { network.Loop(); });
  return network;
}

bool Network::AddHost() {
  const int tap = OpenTap();
  const int self = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (tap >= 0) taps_.push_back(tap);
  if (self >= 0) namespaces_.push_back(self);
  return tap >= 0 && self >= 0;
}

Network::~Network() {
  if (thread_.joinable()) {
    eventfd_write(end_, 1);
    thread_.join();
    close(end_);
  }
  for (const int tap : taps_) close(tap);
  for (const int each : namespaces_) close(each);
}

std::string Network::AddressOf(size_t host) {
  return absl::StrCat("10.94.0.", host + 1);
}

std::vector<std::string> Network::Enter(size_t host) const {
  return {"nsenter",
          absl::StrCat("--net=/proc/", getpid(), "/fd/", namespaces_[host]),
          "--"};
}

void Network::Set(size_t from, size_t to, const Cable& cable) {
  absl::MutexLock lock(&mu_);
  cables_[from][to] = cable;
}

void Network::SetFrom(size_t host, const Cable& cable) {
  for (size_t other = 0; other < hosts(); ++other) Set(host, other, cable);
}

void Network::SetTo(size_t host, const Cable& cable) {
  for (size_t other = 0; other < hosts(); ++other) Set(other, host, cable);
}

void Network::Heal() {
  absl::MutexLock lock(&mu_);
  cables_.assign(hosts(), std::vector<Cable>(hosts()));
}

size_t Network::TakeLost() {
  absl::MutexLock lock(&mu_);
  return std::exchange(lost_, 0);
}

void Network::Seed(unsigned seed) {
  absl::MutexLock lock(&mu_);
  random_.seed(seed);
}

void Network::Loop() {
  std::vector<pollfd> polled;
  for (const int tap : taps_) polled.push_back({tap, POLLIN, 0});
  polled.push_back({end_, POLLIN, 0});
  std::string frame(kMaxFrame, '\0');
  absl::Duration next = absl::InfiniteDuration();
  while (true) {
    const timespec limit =
        absl::ToTimespec(std::min(next, absl::Duration(absl::Seconds(1))));
    ppoll(polled.data(), polled.size(), &limit, nullptr);
    if (polled.back().revents != 0) return;
    absl::MutexLock lock(&mu_);
    for (size_t from = 0; from < taps_.size(); ++from) {
      if (polled[from].revents == 0) continue;
      ssize_t bytes = 0;
      while ((bytes = read(taps_[from], frame.data(), kMaxFrame)) > 0) {
        Switch(from, frame.substr(0, static_cast<size_t>(bytes)));
      }
    }
    next = SendDue();
  }
}

void Network::Switch(size_t from, const std::string& frame) {
  if (frame.size() < kHeader || packets_.size() >= kMaxPackets) return;
  if (frame.compare(kTypeAt, 2, kIpv4, 2) != 0) return;
  const auto to = static_cast<unsigned char>(frame[kLastOfMac]);
  if (to >= taps_.size()) return;
  const Cable& cable = cables_[from][to];
  std::uniform_real_distribution<double> share;
  if (cable.is_cut || share(random_) < cable.loss) {
    ++lost_;
    return;
  }
  packets_.push(
      {base::SteadyNow() + cable.delay + share(random_) * cable.jitter, to,
       frame});
}

absl::Duration Network::SendDue() {
  const absl::Time now = base::SteadyNow();
  while (!packets_.empty()) {
    const Packet& first = packets_.top();
    if (first.due > now) return first.due - now;
    // Ignores errors: if the device is full, the packet is lost, as on a real
    // host.
    (void)!write(taps_[first.to], first.frame.data(), first.frame.size());
    packets_.pop();
  }
  return absl::InfiniteDuration();
}

}  // namespace penstock::ps
