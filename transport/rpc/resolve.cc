#include "transport/rpc/resolve.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>

#include <atomic>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "transport/base/mutex.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace rpc {
namespace {

absl::StatusOr<Addresses> Look(const HostPort& target, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("resolve ", target.host, ": ", gai_strerror(error)));
  }
  Addresses addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_addrlen > sizeof(sockaddr_storage)) continue;
    sockaddr_storage& address = addresses.emplace_back();
    std::memcpy(&address, each->ai_addr, each->ai_addrlen);
  }
  freeaddrinfo(found);
  if (addresses.empty()) {
    return absl::UnavailableError(
        absl::StrCat("resolve ", target.host, ": it has no address"));
  }
  return addresses;
}

// The queries in flight. Clients that resolve the same target share a query. A
// slow name therefore occupies only one thread, even if many clients retry.
// Thread-safe.
class Questions {
 public:
  using Done = std::function<void(absl::StatusOr<Addresses>)>;

  // Returns the process's instance, which is never destroyed. A forked child
  // gets a new instance, because the threads that answer exist only in the
  // parent.
  static Questions* Get();

  // Adds a caller that waits for `target`. Returns true if no query for
  // `target` is in flight.
  bool Add(const HostPort& target, Done done);
  // Removes and returns the callers that wait for `target`.
  std::vector<Done> Take(const HostPort& target);

 private:
  using Key = std::pair<std::string, std::string>;  // host and port

  base::Mutex mu_;
  std::map<Key, std::vector<Done>> asking_ ABSL_GUARDED_BY(mu_);
};

std::atomic<Questions*> current{nullptr};

void ForgetQuestionsInChild() { current.store(nullptr); }

// Registers before main(), for the reason in base::PerProcess.
const int registered =
    pthread_atfork(nullptr, nullptr, &ForgetQuestionsInChild);

Questions* Questions::Get() {
  Questions* questions = current.load();
  if (questions != nullptr) return questions;
  auto* const made = new Questions;
  if (current.compare_exchange_strong(questions, made)) return made;
  delete made;
  return questions;
}

bool Questions::Add(const HostPort& target, Done done) {
  base::MutexLock lock(&mu_);
  std::vector<Done>& asking = asking_[{target.host, target.port}];
  asking.push_back(std::move(done));
  return asking.size() == 1;
}

std::vector<Questions::Done> Questions::Take(const HostPort& target) {
  base::MutexLock lock(&mu_);
  const auto found = asking_.find({target.host, target.port});
  std::vector<Done> asking = std::move(found->second);
  asking_.erase(found);
  return asking;
}

}  // namespace

absl::StatusOr<HostPort> SplitHostPort(absl::string_view target) {
  const size_t colon = target.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(target.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", target, "\" is no address of the form host:port"));
  }
  absl::string_view host = target.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return HostPort{std::string(host), absl::StrCat(port)};
}

absl::StatusOr<Addresses> ParseAddress(const HostPort& target) {
  return Look(target, AI_NUMERICHOST);
}

void Resolve(const HostPort& target,
             std::function<void(absl::StatusOr<Addresses>)> done) {
  absl::StatusOr<Addresses> parsed = ParseAddress(target);
  if (parsed.ok()) return done(std::move(parsed));
  Questions* const questions = Questions::Get();
  if (!questions->Add(target, std::move(done))) return;
  progress::RunAside(progress::Aside::kNames, [questions, target] {
    const absl::StatusOr<Addresses> found = Look(target, AI_ADDRCONFIG);
    for (const Questions::Done& each : questions->Take(target)) each(found);
  });
}

socklen_t LengthOf(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6)
                                       : sizeof(sockaddr_in);
}

}  // namespace rpc
}  // namespace penstock
