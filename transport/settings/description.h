// Describes each setting, for the test that compares docs/settings.md with the
// table, and for `penstock doctor`, which checks the environment.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_DESCRIPTION_H_
#define PENSTOCK_TRANSPORT_SETTINGS_DESCRIPTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock {

struct Description {
  std::string variable;       // of the environment
  std::string field;          // of Options; empty for a setting of the process
  std::string values;         // the allowed ones, in words
  std::string default_value;  // as written in the environment; may be empty
  std::string default_note;   // a remark about the default, or empty
  std::string effect;         // the decision that the setting makes
  std::string topic;          // the heading of its paragraph in the document
};

// Returns all settings, in the order of table.h.
std::vector<Description> DescribeSettings();

// Checks a value of an environment variable. Returns OK if `text` is allowed or
// empty; an empty text counts as unset. Otherwise returns INVALID_ARGUMENT with
// the allowed values. Returns NOT_FOUND if no setting has this variable.
absl::Status CheckVariable(absl::string_view variable, absl::string_view text);

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_DESCRIPTION_H_
