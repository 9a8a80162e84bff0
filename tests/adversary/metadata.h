// Entries of metadata at their extremes.

#ifndef PENSTOCK_TESTS_ADVERSARY_METADATA_H_
#define PENSTOCK_TESTS_ADVERSARY_METADATA_H_

#include <string>
#include <vector>

namespace penstock::adversary {

// Returns blocks of one or two entries each: every numbered key and pair, known
// keys as literals, and odd keys, with odd values.
std::vector<std::string> OddEntries();

// Returns requests that lack one of the entries that a request must have, or
// all of them, or have odd entries in their place.
std::vector<std::string> LackingRequests();

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_METADATA_H_
