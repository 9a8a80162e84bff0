#include "transport/monitoring/http_port.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "prometheus/collectable.h"
#include "prometheus/exposer.h"
#include "transport/base/mutex.h"
#include "transport/monitoring/close_in_child.h"
#include "transport/monitoring/exposition.h"

namespace penstock {
namespace monitoring {
namespace {

class ThisProcess : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    return ToFamilies(CollectAll());
  }
};

// While it exists, threads that are started take no signals. The library sets
// the process's action for SIGPIPE, which is the program's to choose; its
// threads do without, as they have the signal blocked.
class SignalsLeftAlone {
 public:
  SignalsLeftAlone() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask_);
    sigaction(SIGPIPE, nullptr, &on_pipe_);
  }
  ~SignalsLeftAlone() {
    sigaction(SIGPIPE, &on_pipe_, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_;
  struct sigaction on_pipe_;
};

bool ListensAt(int fd, int port) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
      listens == 0) {
    return false;
  }
  sockaddr_storage address = {};
  size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return false;
  }
  uint16_t at = 0;
  if (address.ss_family == AF_INET) {
    at = reinterpret_cast<sockaddr_in*>(&address)->sin_port;
  } else if (address.ss_family == AF_INET6) {
    at = reinterpret_cast<sockaddr_in6*>(&address)->sin6_port;
  }
  return ntohs(at) == port;
}

// The library does not tell its descriptor.
void CloseListenerInChild(int port) {
  constexpr int kDescriptorsLookedAt = 4096;
  for (int fd = 0; fd < kDescriptorsLookedAt; ++fd) {
    if (ListensAt(fd, port)) CloseInChild(fd);
  }
}

std::vector<std::string> OptionsFor(const HttpAddress& address) {
  return {"listening_ports", address.ToString(),
          // One that is slow leaves the other.
          "num_threads", "2",
          // How long one that does not read, or asks nothing, keeps a thread.
          "request_timeout_ms", "5000"};
}

}  // namespace

absl::StatusOr<int> ServeHttp(const HttpAddress& address) {
  static auto* const mu = new base::Mutex;
  base::MutexLock lock(mu);
  // Never destroyed: it may be answering as the process ends.
  static auto* const process =
      new std::shared_ptr<ThisProcess>(std::make_shared<ThisProcess>());
  const SignalsLeftAlone signals;
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(OptionsFor(address));
    exposer->RegisterCollectable(*process);
    const std::vector<int> ports = exposer->GetListeningPorts();
    const int port = ports.empty() ? address.port : ports[0];
    (void)exposer.release();
    CloseListenerInChild(port);
    return port;
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics at ", address.ToString(),
                     ": is the port taken, or the address another machine's? (",
                     error.what(), ")"));
  }
}

}  // namespace monitoring
}  // namespace penstock
