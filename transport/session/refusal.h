// A stream's end that says that it may be begun again.

#ifndef PENSTOCK_TRANSPORT_SESSION_REFUSAL_H_
#define PENSTOCK_TRANSPORT_SESSION_REFUSAL_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace penstock {
namespace session {

constexpr char kRefusalKey[] = "penstock/refused";

// For Session::SendReset(): no application has seen the stream.
inline absl::Status Refusal(absl::Status status) {
  status.SetPayload(kRefusalKey, absl::Cord());
  return status;
}

// For StreamEvents::OnReset(): whether the peer said so.
inline bool IsRefusal(const absl::Status& status) {
  return status.GetPayload(kRefusalKey).has_value();
}

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_REFUSAL_H_
