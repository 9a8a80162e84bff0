#include "ps/announce.h"

#include <limits.h>
#include <unistd.h>

#include <cstdio>

#include "ps/greeting.h"
#include "ps/membership/target.h"
#include "transport/base/log.h"

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

void Announce(const ServerFlags& flags, int port) {
  // Prints the port, because a parent process that has started this server on
  // port 0 reads this line.
  printf("port %d\n", port);
  fflush(stdout);
  const std::string warning = LocalAddressWarning(flags, port);
  if (!warning.empty()) base::LogWarning("ps: " + warning);
  if (flags.quiet) return;
  for (const std::string& line :
       GreetingLines(ListeningAt(flags, port), flags.workers)) {
    base::LogInfo("ps: " + line);
  }
}

}  // namespace penstock::ps
