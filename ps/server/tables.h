// The values of one server's tables, and their optimizer steps.

#ifndef PENSTOCK_PS_SERVER_TABLES_H_
#define PENSTOCK_PS_SERVER_TABLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ps/optim/optimizer.h"
#include "ps/optim/workers.h"
#include "ps/placement/placement_map.h"
#include "ps/server/dense_parts.h"
#include "ps/server/gradients.h"
#include "ps/server/local_model.h"
#include "ps/server/parts.h"
#include "ps/server/report.h"
#include "ps/server/row_step.h"
#include "ps/sparse/pool.h"
#include "ps/sparse/table.h"
#include "ps/sparse/tier.h"
#include "tensor_service/allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The parts and rows that one call selects. Parts are named by index, rows by
// id.
struct Selection {
  struct Rows {
    size_t rows;  // index of the table in LocalModel::rows()
    std::vector<uint64_t> ids;
  };

  std::vector<size_t> parts;
  std::vector<Rows> rows;
  // The type of the answer: kF16 or kBF16, to which f32 and f64 values are
  // rounded. nullopt: each table's own type.
  absl::optional<tensor::DType> dtype;
};

// The dense and sparse tables of one server. Tables does not know workers or
// staleness: Server decides who may push, and when to apply.
//
// The `now` arguments set the time of the rows' last use; see sparse::Table.
//
// Thread-safe, except for Apply(), Maintain() and the methods for the applying
// thread. Call those from one thread at a time.
class Tables {
 public:
  struct Options {
    // The allocator of values that are sent to workers. Outlives all readers.
    // Null: tensor::DefaultAllocator().
    tensor::Allocator* allocator = nullptr;
    // The secret seed of the hashes of ids: draw a random number.
    uint64_t hash_seed = 0;
    // Limits the bytes of dense values, their next versions and slots. The rest
    // of this memory may hold older versions that readers still use. Older
    // versions may always use as much memory as the values and their next
    // versions, even if the rest is less.
    size_t max_dense_bytes = size_t{16} << 30;
    // Limits the total bytes of all sparse tables that have no budget_bytes. 0
    // means no limit. Above the limit, pushes that would create rows are
    // refused.
    size_t max_sparse_bytes = 0;
    // Limits the bytes of answers that readers have not released yet. Excludes
    // dense values that are sent without a copy.
    size_t max_answer_bytes = size_t{4} << 30;
    // Called with the size in bytes of dense values before they are allocated,
    // to make room for them. Null: the allocator needs no such call.
    std::function<void(uint64_t bytes)> make_dense_room;
    // Returns the storage for rows of one sparse table that do not fit in
    // memory. All objects that the storage refers to must outlive the tables.
    // Null: no such storage.
    std::function<std::unique_ptr<sparse::Tier>()> new_tier;
  };

  // Caps the bytes of rows that one call may request. The size of the request
  // does not limit them: a request has 8 bytes for a row of any length.
  static constexpr size_t kMaxRowBytesPerCall = size_t{1} << 30;

  // Creates the tables without values. Fails with:
  //   RESOURCE_EXHAUSTED   above max_dense_bytes
  //   FAILED_PRECONDITION  if a table spills and new_tier is null
  //   INVALID_ARGUMENT     if the placement is not of this model
  static absl::StatusOr<std::unique_ptr<Tables>> Create(
      Model model, std::shared_ptr<const PlacementMap> placement,
      uint32_t server, const Options& options);

  const LocalModel& model() const { return model_; }
  const PlacementMap& placement() const { return *placement_; }
  // Returns the index of this server in the placement.
  uint32_t server() const { return server_; }
  const std::vector<Part>& parts() const { return dense_->layout(); }
  DenseParts& dense() { return *dense_; }
  const DenseParts& dense() const { return *dense_; }

  // Records that the restored checkpoint lacks this table. Call before other
  // threads use the tables.
  void SetNew(size_t table) { is_new_[table] = true; }

  // Returns the parts and rows that a pull requests. Returns INVALID_ARGUMENT,
  // with the name of the table, for:
  //   - a part or table that this server does not have
  //   - ids that another server has
  //   - more than kMaxRowBytesPerCall
  absl::StatusOr<Selection> Select(const tensor::Bundle& ids,
                                   absl::Span<const std::string> parts,
                                   bool all_parts) const;
  // Returns the policies of the selected parts and rows, each once.
  std::vector<size_t> PoliciesOf(const Selection& selection) const;
  // Returns the values of a selection, in its order, under the names of the
  // parts and tables. Parts share the server's memory. Parts with the same
  // policy are of one point in time. Fails with:
  //   RESOURCE_EXHAUSTED  if memory runs out, or older versions of dense values
  //                       or unread answers are at their limit
  //   DATA_LOSS           as CheckTiers() does
  absl::StatusOr<tensor::Bundle> Read(const Selection& selection,
                                      absl::Time now);

  // Checks a push in the form of ps.proto, and returns its gradients. Gradients
  // stay in the received message where possible. Fails with:
  //   INVALID_ARGUMENT    names the part or table: not here, wrong type or
  //                       shape, an element that is not finite, or ids that
  //                       another server has
  //   RESOURCE_EXHAUSTED  a table has no room for the rows
  absl::StatusOr<Gradients> Check(const tensor::Bundle& push, absl::Time now);

  // Applies the mean of the pushes to the tables of a policy. `pushes` are
  // results of Check(); their gradients are added in this order. Each table
  // with a gradient takes one step. Returns RESOURCE_EXHAUSTED if there is no
  // memory. In that case no table has changed, and the call may be repeated.
  absl::Status Apply(size_t policy, absl::Span<Gradients* const> pushes,
                     absl::Time now);

  // Removes some of the expired rows. Returns true if more are left. Takes
  // little time.
  bool Maintain(absl::Time now);

  // Returns OK, or DATA_LOSS if a table has lost rows that were on disk. Calls
  // no longer read or change such a table.
  absl::Status CheckTiers() const;

  // Returns the reports of the tables, in the order of the model.
  std::vector<TableReport> Report() const;

  // Return a sparse table. For the applying thread, and for readers of
  // counters.
  sparse::Table& table(size_t rows) { return *sparse_[rows].table; }
  const sparse::Table& table(size_t rows) const { return *sparse_[rows].table; }
  // Returns the number of steps that a sparse table has taken.
  uint64_t sparse_steps(size_t rows) const { return sparse_[rows].steps; }
  void SetSparseSteps(size_t rows, uint64_t steps) {
    sparse_[rows].steps = steps;
  }

 private:
  struct SparseTable {
    std::unique_ptr<sparse::Tier> tier;  // null: all rows stay in memory
    std::unique_ptr<sparse::Table> table;
    std::shared_ptr<const optim::Optimizer> optimizer;
    std::atomic<uint64_t> steps{0};
  };

  Tables(LocalModel model, std::shared_ptr<const PlacementMap> placement,
         uint32_t server, const Options& options);

  absl::Status MakeOptimizers();
  absl::Status MakeDenseParts();
  absl::Status MakeSparseTables();

  absl::Status CheckIds(size_t rows, absl::Span<const uint64_t> ids) const;
  absl::StatusOr<RowGradients> CheckRows(
      size_t rows, absl::Span<const tensor::NamedTensor> named, absl::Time now);
  // Returns memory for an answer. Fails with:
  //   RESOURCE_EXHAUSTED  if all answers together exceed max_answer_bytes, or
  //                       there is no memory
  //   INVALID_ARGUMENT    if this answer alone exceeds max_answer_bytes
  absl::StatusOr<tensor::Tensor> NewAnswer(tensor::DType dtype,
                                           const tensor::Shape& shape);
  // Returns an f32 or f64 tensor rounded to f16 or bf16. Uses all threads of
  // workers_.
  absl::StatusOr<tensor::Tensor> Rounded(const tensor::Tensor& value,
                                         tensor::DType dtype);
  absl::StatusOr<tensor::Tensor> ReadRows(const Selection::Rows& rows,
                                          absl::Time now);
  absl::Status ApplyRows(size_t rows, RowStep mean, absl::Time now);

  const LocalModel model_;
  const std::shared_ptr<const PlacementMap> placement_;
  const uint32_t server_;
  const Options options_;
  const optim::Workers workers_;
  // The bytes of answers that readers have not released. Shared with the
  // answers, because readers may outlive the tables.
  const std::shared_ptr<std::atomic<size_t>> answer_bytes_ =
      std::make_shared<std::atomic<size_t>>(0);
  // The optimizer of each table, by the table's index in the model.
  DenseParts::Optimizers optimizers_;
  std::vector<bool> is_new_;

  std::unique_ptr<DenseParts> dense_;
  std::unique_ptr<sparse::Pool> pool_;  // null: no limit
  std::vector<SparseTable> sparse_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_TABLES_H_
