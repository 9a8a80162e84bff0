#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/rpc/setup/options.h"

namespace penstock {
namespace bench {

std::vector<std::string> ServerFlags(const RunOptions& options,
                                     Transport transport, Api api) {
  std::vector<std::string> flags = {
      "--server-role",
      absl::StrCat("--transports=", Name(transport)),
      absl::StrCat("--api=", Name(api)),
      absl::StrCat("--message=", Name(options.message)),
      absl::StrCat("--buffers=", options.buffers.count),
      absl::StrCat("--scheme=", Name(options.buffers.scheme)),
      absl::StrCat("--sizes=", absl::StrJoin(options.sizes, ",")),
      absl::StrCat("--threads=", options.threads),
      absl::StrCat("--address=", options.address)};
  if (options.on_device) flags.emplace_back("--memory=device");
  if (options.recording != nullptr) {
    flags.push_back(absl::StrCat("--trace=", options.recording_path));
  }
  if (!options.record_path.empty()) {
    flags.push_back(absl::StrCat("--record=", options.record_path));
  }
  if (!options.identity.empty()) {
    flags.push_back(absl::StrCat("--identity=", options.identity));
  }
  if (!options.server_device.empty()) {
    flags.push_back(absl::StrCat("--server-device=", options.server_device));
  }
  return flags;
}

std::vector<std::string> ClientFlags(const RunOptions& options,
                                     Benchmark benchmark, Transport transport,
                                     Api api) {
  std::vector<std::string> flags = ServerFlags(options, transport, api);
  flags.front() = "--client-role";
  const std::vector<std::string> own = {
      absl::StrCat("--benchmark=", Name(benchmark)),
      options.rpcs > 0 ? absl::StrCat("--rpcs=", options.rpcs)
                       : absl::StrCat("--seconds=", options.seconds),
      absl::StrCat("--window=", options.window),
      absl::StrCat("--warm-up=", options.warm_up),
      absl::StrCat("--channels=", options.channels)};
  if (options.recording != nullptr && options.speed != kMaxSpeed) {
    flags.push_back(absl::StrCat("--speed=", options.speed));
  }
  flags.insert(flags.end(), own.begin(), own.end());
  if (!options.server_addresses.empty()) {
    flags.push_back(absl::StrCat("--server-addresses=",
                                 absl::StrJoin(options.server_addresses, ",")));
  }
  if (!options.client_device.empty()) {
    flags.push_back(absl::StrCat("--client-device=", options.client_device));
  }
  return flags;
}

}  // namespace bench
}  // namespace penstock
