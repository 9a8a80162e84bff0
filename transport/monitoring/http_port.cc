#include "transport/monitoring/http_port.h"

#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <exception>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
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
    return AllFamilies();
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

bool Listens(int fd) {
  int listens = 0;
  socklen_t size = sizeof listens;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 &&
         listens != 0;
}

// 0: none.
int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  }
  return 0;
}

// The sockets of this process that listen.
std::set<int> Listeners() {
  std::set<int> found;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    int fd = -1;
    if (absl::SimpleAtoi(entry->d_name, &fd) && Listens(fd)) found.insert(fd);
  }
  closedir(folder);
  return found;
}

// The library does not tell its descriptor. The program may listen at the same
// port of another address, with a socket that it had before.
void CloseListenerInChild(const std::set<int>& before, int port) {
  for (const int fd : Listeners()) {
    if (before.count(fd) == 0 && PortOf(fd) == port) CloseInChild(fd);
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
  const std::set<int> before = Listeners();
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(OptionsFor(address));
    exposer->RegisterCollectable(*process);
    const std::vector<int> ports = exposer->GetListeningPorts();
    const int port = ports.empty() ? address.port : ports[0];
    (void)exposer.release();
    CloseListenerInChild(before, port);
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
