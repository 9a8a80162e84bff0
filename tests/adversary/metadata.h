// Entries of metadata at their extremes.

#ifndef PENSTOCK_TESTS_ADVERSARY_METADATA_H_
#define PENSTOCK_TESTS_ADVERSARY_METADATA_H_

#include <string>
#include <vector>

namespace penstock::adversary {

// Blocks of one or two entries each: every numbered key and pair, keys that
// gRPC knows as literals, and odd keys, with odd values.
std::vector<std::string> OddEntries();

// Requests with one of the entries that each has left out, or all of them, and
// with odd ones in their place.
std::vector<std::string> LackingRequests();

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_METADATA_H_
