// What people are told of each setting, for the test that holds
// docs/settings.md to it.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_DESCRIPTION_H_
#define PENSTOCK_TRANSPORT_SETTINGS_DESCRIPTION_H_

#include <string>
#include <vector>

namespace penstock {

struct Description {
  std::string variable;       // of the environment
  std::string field;          // of Options; empty: for the whole process
  std::string values;         // what is allowed, in words
  std::string default_value;  // as the environment has it; empty: nothing
  std::string default_note;   // what to know of the default, or empty
  std::string effect;         // what the setting decides
  std::string topic;          // the heading of its paragraph in the document
};

// In the order of the table.
std::vector<Description> DescribeSettings();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_DESCRIPTION_H_
