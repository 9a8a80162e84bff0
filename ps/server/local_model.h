// The part of a model that one server holds.

#ifndef PENSTOCK_PS_SERVER_LOCAL_MODEL_H_
#define PENSTOCK_PS_SERVER_LOCAL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/consistency/policy.h"
#include "ps/model/model.h"
#include "ps/placement/placement_map.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A range of rows of a dense table.
struct LocalRange {
  std::string name;  // for people: "kernel", or "kernel[300:600]"
  size_t table;      // index in Model::tables
  size_t policy;     // index in LocalModel::policies()
  uint64_t first_row;
  tensor::Shape shape;  // of the range
};

// The rows of a sparse table that belong to this server.
struct LocalRows {
  size_t table;
  size_t policy;
};

// The ranges, rows and policies of one server. Immutable.
//
// Tables with the same staleness and backup workers share a policy, so that a
// thousand variables cost as much as one.
class LocalModel {
 public:
  // Makes the model of one server. Returns INVALID_ARGUMENT if `placement` is
  // not of this model, or has no such server.
  static absl::StatusOr<LocalModel> Create(Model model,
                                           const PlacementMap& placement,
                                           uint32_t server);

  const Model& model() const { return model_; }
  const TableSpec& table(size_t at) const { return model_.tables[at]; }
  // Returns the policies of the server's tables. If the server has no tables,
  // returns the policies of all tables of the model, so that the staleness
  // limits of other servers hold here too. The list is never empty, because a
  // policy keeps the clock.
  const std::vector<ConsistencyPolicy::Options>& policies() const {
    return policies_;
  }
  const std::vector<LocalRange>& ranges() const { return ranges_; }
  const std::vector<LocalRows>& rows() const { return rows_; }

  // Returns the index in rows() of `table`. Returns NOT_FOUND, with a
  // description of the table, if this server does not have the table.
  absl::StatusOr<size_t> FindRows(absl::string_view table) const;

  // Returns the indices in ranges() of all ranges of a dense table, in order of
  // their rows. Returns an empty list if this server has none.
  const std::vector<size_t>& RangesOf(absl::string_view table) const;

 private:
  LocalModel() = default;

  size_t PolicyFor(const TableSpec& table);
  void AddPoliciesOfOthers();
  void AddRanges(size_t table, const PlacedTable& placed, uint32_t server);
  absl::Status NotHere(absl::string_view table) const;

  Model model_;
  std::vector<ConsistencyPolicy::Options> policies_;
  std::vector<LocalRange> ranges_;
  std::vector<LocalRows> rows_;
  absl::flat_hash_map<std::string, size_t> tables_;  // of the whole model
  absl::flat_hash_map<std::string, std::vector<size_t>> ranges_of_;
  absl::flat_hash_map<std::string, size_t> rows_of_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_LOCAL_MODEL_H_
