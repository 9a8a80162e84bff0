// Extreme metadata entries.

#ifndef PENSTOCK_TESTS_ADVERSARY_METADATA_H_
#define PENSTOCK_TESTS_ADVERSARY_METADATA_H_

#include <string>
#include <vector>

namespace penstock::adversary {

// Returns blocks of one or two metadata entries: every numbered key and pair,
// known keys as literals, and unusual keys, with unusual values.
std::vector<std::string> OddEntries();

// Returns requests that lack one of the mandatory entries, or all of them, or
// have unusual entries instead.
std::vector<std::string> LackingRequests();

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_METADATA_H_
