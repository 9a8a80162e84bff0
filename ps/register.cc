#include "ps/register.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/membership/target.h"
#include "transport/base/log.h"

namespace penstock::ps {

absl::StatusOr<std::unique_ptr<membership::Membership>> RegisterServer(
    const EtcdFlags& flags, const std::string& address, bool quiet) {
  if (flags.endpoints.empty()) return nullptr;
  const std::string target =
      absl::StrCat(membership::kScheme, flags.endpoints, "/", flags.prefix);
  auto member = membership::Membership::Open(target);
  if (!member.ok()) return member.status();
  const std::string& advertised =
      flags.advertise.empty() ? address : flags.advertise;
  absl::Status status = (*member)->RegisterServer(
      flags.name.empty() ? advertised : flags.name, advertised, flags.servers,
      [](const std::string& line) { base::LogWarning("ps: " + line); });
  if (!status.ok()) return status;
  if (!quiet) {
    base::LogInfo(absl::StrCat("ps: registered in etcd, as one of ",
                               flags.servers, " servers: workers find them by ",
                               target));
  }
  return member;
}

}  // namespace penstock::ps
