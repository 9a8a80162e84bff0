// The model as a message.

#ifndef PENSTOCK_PS_MODEL_WIRE_H_
#define PENSTOCK_PS_MODEL_WIRE_H_

#include <string>

#include "absl/status/statusor.h"
#include "ps/model/model.h"
#include "ps/model/model.pb.h"

namespace penstock::ps {

v1::Model ToMessage(const Model& model);

// Takes a message that may be a peer's. Returns INVALID_ARGUMENT as
// CheckModel() does, and for what is no type, rule or schedule.
absl::StatusOr<Model> FromMessage(const v1::Model& message);

// Returns in what `ours` differs from `theirs`, in a line for people: the first
// table by name that differs, and how. Empty if the two are the same, whatever
// the order of their tables.
std::string Difference(const Model& theirs, const Model& ours);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_MODEL_WIRE_H_
