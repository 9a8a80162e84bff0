// Describes each setting, for the test that compares docs/settings.md with it.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_DESCRIPTION_H_
#define PENSTOCK_TRANSPORT_SETTINGS_DESCRIPTION_H_

#include <string>
#include <vector>

namespace penstock {

struct Description {
  std::string variable;       // of the environment
  std::string field;          // of Options; empty if it is for the process
  std::string values;         // the allowed ones, in words
  std::string default_value;  // as written in the environment; may be empty
  std::string default_note;   // what else to know about the default, or empty
  std::string effect;         // what the setting decides
  std::string topic;          // the heading of its paragraph in the document
};

// Returns all settings, in the order of table.h.
std::vector<Description> DescribeSettings();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_DESCRIPTION_H_
