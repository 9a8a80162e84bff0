// Lists the RDMA addresses of this machine, for people.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_SURVEY_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_SURVEY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/verbs/options.h"

namespace penstock {
namespace fabric {
namespace verbs {

class Api;

// An RDMA address of this machine, as offered to peers.
struct LocalAddress {
  std::string address;      // "10.9.0.1"
  std::string device;       // "rxe0"
  int port = 0;             // of the device
  std::string description;  // "rxe0/1, GID 1, RoCE v2, mtu 1024"
  // OK if the device's memory windows are trusted. Messages are then sent
  // without a copy. Otherwise the reason (window_trial.h).
  absl::Status windows;
};

// Returns OK if libibverbs and librdmacm can be opened. Otherwise returns
// NOT_FOUND, with the package of the missing library.
absl::Status OpenLibraries();

// Returns the addresses that a process with `options` would offer to its peers.
// Returns NOT_FOUND if the libraries are missing or no address is usable, and
// RESOURCE_EXHAUSTED if too little memory may be locked.
//
// Blocks for the trial of each device's windows, up to a second for each
// device.
absl::StatusOr<std::vector<LocalAddress>> SurveyAddresses(
    const Options& options);
// Surveys over `api`, without checking the limit of locked memory.
absl::StatusOr<std::vector<LocalAddress>> SurveyAddresses(
    Api* api, const Options& options);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_SURVEY_H_
