// Converts a model from and to a message.

#ifndef PENSTOCK_PS_MODEL_WIRE_H_
#define PENSTOCK_PS_MODEL_WIRE_H_

#include <string>

#include "absl/status/statusor.h"
#include "ps/model/model.h"
#include "ps/model/model.pb.h"

namespace penstock::ps {

v1::Model ToMessage(const Model& model);

// Converts an untrusted message. Returns INVALID_ARGUMENT as CheckModel() does,
// and for an unknown type, rule or schedule.
absl::StatusOr<Model> FromMessage(const v1::Model& message);

// Describes the first difference between `ours` and `theirs`, by table name, in
// a line for people. Returns "" if both are equal, in any order of tables.
std::string Difference(const Model& theirs, const Model& ours);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_MODEL_WIRE_H_
