// The names of a training's keys in etcd.

#ifndef PENSTOCK_PS_MEMBERSHIP_KEYS_H_
#define PENSTOCK_PS_MEMBERSHIP_KEYS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::ps::membership {

// All keys of a training begin with its prefix and a slash. A key of the first
// group is deleted when its owner's lease ends. The keys of the second group
// stay.
//
//   servers/NAME   Server      a server that listens
//   workers/RANK   Worker      a worker; rank 0 is the chief
//   leaving/NAME   Server      an incarnation of a server that should hold
//                              nothing. Stays once the server holds nothing
//   move           Move        a command that moves shards
//
//   identity       16 bytes    drawn at random by whoever comes first
//   model          any bytes   as the chief has chosen it
//   view           View        the newest one
//   cut            Cut         the newest good checkpoint
constexpr char kServers[] = "servers/";
constexpr char kWorkers[] = "workers/";
constexpr char kLeaving[] = "leaving/";
constexpr char kMove[] = "move";
constexpr char kIdentity[] = "identity";
constexpr char kModel[] = "model";
constexpr char kView[] = "view";
constexpr char kCut[] = "cut";

constexpr char kDefaultPrefix[] = "penstock";
constexpr size_t kMaxNameBytes = 253;  // a host's name

std::string ServerKey(absl::string_view name);
std::string WorkerKey(uint32_t rank);
std::string LeavingKey(absl::string_view name);

// Returns INVALID_ARGUMENT if `name` is not the name of a server: empty, too
// long, or with other characters than letters, digits and "-_.:[]".
absl::Status CheckServerName(absl::string_view name);
// Returns INVALID_ARGUMENT if `prefix` is not valid. A prefix may have the
// characters of a server's name, and slashes between them.
absl::Status CheckPrefix(absl::string_view prefix);

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_KEYS_H_
