#include "ps/announce.h"

#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "ps/greeting.h"
#include "ps/membership/target.h"
#include "transport/base/log.h"
#include "transport/base/status_util.h"

namespace penstock::ps {
namespace {

Listening ListeningAt(const ServerFlags& flags, int port) {
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, sizeof(host) - 1);
  return {flags.listen, port, host};
}

std::string LocalAddressWarning(const ServerFlags& flags, int port) {
  const auto endpoints = membership::ParseEndpoints(flags.etcd.endpoints);
  if (!endpoints.ok()) return "";  // there is no etcd
  return WarnOfLocalAddress(OwnAddress(flags, port), *endpoints);
}

}  // namespace

std::string OwnAddress(const ServerFlags& flags, int port) {
  return flags.etcd.advertise.empty()
             ? AddressForWorkers(ListeningAt(flags, port))
             : flags.etcd.advertise;
}

absl::Status Announce(const ServerFlags& flags, int port) {
  if (printf("port %d\n", port) < 0 || fflush(stdout) != 0) {
    return base::ErrnoStatus(errno, "write the port to standard output");
  }
  const std::string warning = LocalAddressWarning(flags, port);
  if (!warning.empty()) base::LogWarning("ps: " + warning);
  if (flags.quiet) return absl::OkStatus();
  for (const std::string& line :
       GreetingLines(ListeningAt(flags, port), flags.workers)) {
    base::LogInfo("ps: " + line);
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps
