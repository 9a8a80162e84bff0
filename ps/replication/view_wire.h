// Converts views from and to bytes.

#ifndef PENSTOCK_PS_REPLICATION_VIEW_WIRE_H_
#define PENSTOCK_PS_REPLICATION_VIEW_WIRE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/replication/view.h"
#include "ps/replication/view.pb.h"

namespace penstock::ps::replication {

v1::ShardView ToMessage(const View& view);
// Converts an untrusted message. Returns INVALID_ARGUMENT as CheckView() does.
absl::StatusOr<View> FromMessage(const v1::ShardView& message);

// Converts views from and to the bytes of a message. Equal views give equal
// bytes, so that a store can compare the bytes.
std::string ToBytes(const View& view);
absl::StatusOr<View> FromBytes(absl::string_view bytes);

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_VIEW_WIRE_H_
