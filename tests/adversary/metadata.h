// Extreme metadata entries.

#ifndef PENSTOCK_TESTS_ADVERSARY_METADATA_H_
#define PENSTOCK_TESTS_ADVERSARY_METADATA_H_

#include <string>
#include <vector>

namespace penstock::adversary {

// Returns blocks of one or two entries: every numbered key and pair, known keys
// as literals, and unusual keys, with unusual values.
std::vector<std::string> OddEntries();

// Returns requests without one of the mandatory entries, or without all of
// them, or with unusual entries instead.
std::vector<std::string> LackingRequests();

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_METADATA_H_
