// The ranks of each host.

#ifndef PENSTOCK_COLLECTIVES_HIERARCHICAL_LAYOUT_H_
#define PENSTOCK_COLLECTIVES_HIERARCHICAL_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock::collectives {

// Numbers hosts in the order of their lowest ranks, which are their leaders.
struct Layout {
  // Returns the layout. `hosts` has the host of each rank, numbered from 0 in
  // the order of the ranks.
  static Layout Of(const std::vector<int>& hosts);

  int ranks() const { return static_cast<int>(host_of.size()); }
  int hosts() const { return static_cast<int>(ranks_of.size()); }
  // Returns the ranks of the largest host.
  int largest() const;
  // Returns true if equal shares for all hosts would waste memory. A share has
  // room for the blocks of the largest host. Wasteful means that all shares
  // together are more than twice as large as the blocks of all ranks.
  bool IsSkewed() const { return hosts() * largest() > 2 * ranks(); }
  // Returns the lowest rank of each host.
  std::vector<int> Leaders() const;

  std::vector<int> host_of;                // by rank
  std::vector<int> place_of;               // by rank: its place on its host
  std::vector<std::vector<int>> ranks_of;  // by host, in ascending order
};

// Replaces N by ranks[N] in each "rank N" of the text, if there is such an
// element, because an inner group numbers its members from 0. Leaves "from rank
// N" unchanged, because that names the root of a call.
std::string RenameRanks(absl::string_view text, const std::vector<int>& ranks);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HIERARCHICAL_LAYOUT_H_
