// Marks a reset stream as safe to retry.

#ifndef PENSTOCK_TRANSPORT_SESSION_REFUSAL_H_
#define PENSTOCK_TRANSPORT_SESSION_REFUSAL_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace penstock {
namespace session {

constexpr char kRefusalKey[] = "penstock/refused";

// Returns `status`, marked as a refusal, for StreamOutput::SendReset(). By a
// refusal, the server promises that no application has seen the stream.
inline absl::Status Refusal(absl::Status status) {
  status.SetPayload(kRefusalKey, absl::Cord());
  return status;
}

// Returns true if the peer marked the reset as a refusal. For
// StreamEvents::OnReset().
inline bool IsRefusal(const absl::Status& status) {
  return status.GetPayload(kRefusalKey).has_value();
}

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_REFUSAL_H_
