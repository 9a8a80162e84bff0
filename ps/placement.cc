#include "ps/placement.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace penstock::ps {

absl::StatusOr<std::vector<size_t>> Place(
    absl::Span<const VariableSpec> variables, size_t servers) {
  if (servers == 0) {
    return absl::InvalidArgumentError("place variables: no servers");
  }
  std::vector<size_t> bytes;
  for (const VariableSpec& variable : variables) {
    absl::StatusOr<size_t> size =
        tensor::ByteSize(variable.dtype, variable.shape);
    if (!size.ok()) return size.status();
    bytes.push_back(*size);
  }
  std::vector<size_t> order(variables.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (bytes[a] != bytes[b]) return bytes[a] > bytes[b];
    return variables[a].name < variables[b].name;
  });
  std::vector<std::string> names;
  for (const VariableSpec& variable : variables) names.push_back(variable.name);
  std::sort(names.begin(), names.end());
  auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end() || (!names.empty() && names.front().empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "place variables: name '", repeated != names.end() ? *repeated : "",
        "' is empty or repeated"));
  }
  std::vector<size_t> load(servers, 0);
  std::vector<size_t> placement(variables.size(), 0);
  for (size_t variable : order) {
    size_t server = std::min_element(load.begin(), load.end()) - load.begin();
    placement[variable] = server;
    load[server] += bytes[variable];
  }
  return placement;
}

}  // namespace penstock::ps
