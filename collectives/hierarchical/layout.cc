#include "collectives/hierarchical/layout.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::collectives {

Layout Layout::Of(const std::vector<int>& hosts) {
  Layout layout;
  layout.host_of = hosts;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto host = static_cast<size_t>(hosts[rank]);
    if (host >= layout.ranks_of.size()) layout.ranks_of.resize(host + 1);
    layout.place_of.push_back(static_cast<int>(layout.ranks_of[host].size()));
    layout.ranks_of[host].push_back(static_cast<int>(rank));
  }
  return layout;
}

int Layout::largest() const {
  size_t largest = 0;
  for (const auto& ranks : ranks_of) largest = std::max(largest, ranks.size());
  return static_cast<int>(largest);
}

std::vector<int> Layout::Leaders() const {
  std::vector<int> leaders;
  for (const auto& ranks : ranks_of) leaders.push_back(ranks[0]);
  return leaders;
}

std::string RenameRanks(absl::string_view text, const std::vector<int>& ranks) {
  constexpr absl::string_view kRank = "rank ";
  std::string renamed;
  while (true) {
    const size_t at = text.find(kRank);
    if (at == absl::string_view::npos) break;
    const size_t begin = at + kRank.size();
    size_t end = begin;
    while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
    size_t number = 0;
    const absl::string_view digits = text.substr(begin, end - begin);
    absl::StrAppend(&renamed, text.substr(0, begin));
    const bool is_known = !absl::EndsWith(renamed, "from rank ") &&
                          absl::SimpleAtoi(digits, &number) &&
                          number < ranks.size();
    if (is_known) {
      absl::StrAppend(&renamed, ranks[number]);
    } else {
      absl::StrAppend(&renamed, digits);
    }
    text.remove_prefix(end);
  }
  return absl::StrCat(renamed, text);
}

}  // namespace penstock::collectives
