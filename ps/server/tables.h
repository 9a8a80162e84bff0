// The values that one server holds, and their steps.

#ifndef PENSTOCK_PS_SERVER_TABLES_H_
#define PENSTOCK_PS_SERVER_TABLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ps/dense/dense_part.h"
#include "ps/optim/optimizer.h"
#include "ps/optim/workers.h"
#include "ps/placement/placement_map.h"
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

// The parts, by their places, and the rows, by their ids, of one call.
struct Selection {
  struct Rows {
    size_t rows;  // the place of the table in LocalModel::rows()
    std::vector<uint64_t> ids;
  };

  std::vector<size_t> parts;
  std::vector<Rows> rows;
  // Values of a longer type are rounded to this one: kF16 or kBF16.
  absl::optional<tensor::DType> dtype;
};

// Knows of no worker and no staleness: who may push, and when to apply, is
// Server's to decide.
//
// Times are those of the rows' last use; see sparse::Table.
//
// Thread-safe, but for Apply(), Maintain() and what is said to be for the
// applying thread: they are for one thread at a time.
class Tables {
 public:
  struct Options {
    // Of values that are sent; outlives all readers. Null:
    // tensor::DefaultAllocator().
    tensor::Allocator* allocator = nullptr;
    // Of the hashes of ids. A secret: draw it at random.
    uint64_t hash_seed = 0;
    // Bounds the dense values, their next versions and slots. Older versions,
    // which readers keep, have the rest, or as much as the values and their
    // next versions if that is more.
    size_t max_dense_bytes = size_t{16} << 30;
    // Bounds the sparse tables that have no budget_bytes, together; 0: nothing
    // does. Above it pushes are refused that make rows.
    size_t max_sparse_bytes = 0;
    // Bounds the memory of answers, but for dense values that are sent from
    // where they lie, until their readers have read them, or let go of them.
    size_t max_answer_bytes = size_t{4} << 30;
    // Returns a place for the rows of one sparse table that have no room in
    // memory; what it refers to outlives the tables. Null: there is none.
    std::function<std::unique_ptr<sparse::Tier>()> new_tier;
  };

  // The most that a call may ask for in rows. A peer that sends 8 bytes asks
  // for a whole row.
  static constexpr size_t kMaxRowBytesPerCall = size_t{1} << 30;

  // Returns RESOURCE_EXHAUSTED above max_dense_bytes, FAILED_PRECONDITION for a
  // table that spills without new_tier, and INVALID_ARGUMENT if the placement
  // is not of this model.
  static absl::StatusOr<std::unique_ptr<Tables>> Create(
      Model model, std::shared_ptr<const PlacementMap> placement,
      uint32_t server, const Options& options);

  const LocalModel& model() const { return model_; }
  const PlacementMap& placement() const { return *placement_; }
  // This server's place among those of the placement.
  uint32_t server() const { return server_; }
  const std::vector<Part>& parts() const { return parts_; }

  // Takes first values of parts, by their names, and copies them. Returns
  // INVALID_ARGUMENT, which names the part, if it is not here, of another type
  // or shape, or not finite. A part that has a value keeps it.
  absl::Status Initialize(const tensor::Bundle& values);
  // Returns memory for a part's value and slots, with arbitrary elements, to be
  // filled for Restore(). Returns RESOURCE_EXHAUSTED if there is none.
  absl::StatusOr<DensePart::Snapshot> MakeRoom(size_t part) const;
  // Takes a part as a checkpoint has it.
  absl::Status Restore(size_t part, DensePart::Snapshot snapshot);
  // The same of a part of which the checkpoint lacks some pieces, by their
  // places in Part::pieces: it has a value once Initialize() has given those.
  void RestoreRest(size_t part, DensePart::Snapshot snapshot,
                   std::vector<size_t> missing);
  // Says that a table of the model was not in the checkpoint that was restored.
  // Before others use the tables.
  void SetNew(size_t table) { is_new_[table] = true; }
  // Returns true once all parts have values. From then on they can be read and
  // trained.
  bool has_values() const { return missing_parts_ == 0; }

  // Returns what a pull's ids and names of parts ask for. Returns
  // INVALID_ARGUMENT, which names the table, for what is not here, ids that
  // another server has, and more than kMaxRowBytesPerCall.
  absl::StatusOr<Selection> Select(const tensor::Bundle& ids,
                                   absl::Span<const std::string> parts,
                                   bool all_parts) const;
  // Returns the policies of what is selected, each once; of nothing: none.
  std::vector<size_t> PoliciesOf(const Selection& selection) const;
  // Returns the values, by the names of parts and tables, in the order of the
  // selection. Parts share the server's memory, and are of one point in time,
  // but for those of different policies. Returns RESOURCE_EXHAUSTED if there is
  // no memory, or if older versions of dense values, or answers that nobody has
  // read, take all that they may;
  // and DATA_LOSS as CheckTiers() does.
  absl::StatusOr<tensor::Bundle> Read(const Selection& selection,
                                      absl::Time now);

  // Returns the gradients of a push, which has the form that ps.proto gives it.
  // Keeps them where they were received, as far as that goes. Returns
  // INVALID_ARGUMENT, which names the part or table, for what is not here, a
  // wrong type or shape, an element that is not finite, and ids that another
  // server has; RESOURCE_EXHAUSTED if a table has no room for the rows.
  absl::StatusOr<Gradients> Check(const tensor::Bundle& push, absl::Time now);

  // Applies the mean of what pushes, which Check() has returned, have for the
  // tables of a policy, in their order: a step for each of those tables for
  // which one has something. Returns RESOURCE_EXHAUSTED if there is no memory;
  // no step has been taken then, and it can be tried again.
  absl::Status Apply(size_t policy, absl::Span<Gradients* const> pushes,
                     absl::Time now);

  // Removes rows whose time is over. Returns soon, and whether there is more to
  // do.
  bool Maintain(absl::Time now);

  // Returns DATA_LOSS if rows that were on disk are lost: no call reads or
  // changes that table any more.
  absl::Status CheckTiers() const;

  // Returns what there is to tell of each table, in the order of the model.
  std::vector<TableReport> Report() const;

  // Return the values themselves. For the applying thread, and for readers of
  // counters.
  const DensePart& part(size_t at) const { return *dense_[at]; }
  sparse::Table& table(size_t rows) { return *sparse_[rows].table; }
  const sparse::Table& table(size_t rows) const { return *sparse_[rows].table; }
  // How many steps a sparse table has taken.
  uint64_t sparse_steps(size_t rows) const { return sparse_[rows].steps; }
  void SetSparseSteps(size_t rows, uint64_t steps) {
    sparse_[rows].steps = steps;
  }

 private:
  struct SparseTable {
    std::unique_ptr<sparse::Tier> tier;  // null: its rows stay in memory
    std::unique_ptr<sparse::Table> table;
    std::shared_ptr<const optim::Optimizer> optimizer;
    std::atomic<uint64_t> steps{0};
  };

  // A part of which a checkpoint lacks some pieces.
  struct Incomplete {
    DensePart::Snapshot snapshot;
    std::vector<size_t> missing;
  };

  Tables(LocalModel model, std::shared_ptr<const PlacementMap> placement,
         uint32_t server, const Options& options);

  absl::Status MakeOptimizers();
  absl::Status MakeSparseTables();
  absl::Status CheckDenseBytes();
  DensePart::Options OptionsOf(size_t part) const;
  // Returns the part with the missing pieces of `first`.
  absl::StatusOr<std::unique_ptr<DensePart>> Complete(size_t part,
                                                      const DensePart& first,
                                                      Incomplete rest) const;
  void SetPart(size_t at, std::unique_ptr<DensePart> part)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(setup_mu_);

  // Returns the bytes of all versions of the dense values.
  size_t VersionBytes() const;
  // Returns RESOURCE_EXHAUSTED if those that are held take more than they may.
  absl::Status CheckVersions();
  absl::StatusOr<size_t> FindPart(const std::string& name) const;
  // Returns `status`, which says that one of `elements` is not finite or is
  // above the limit of `dtype`. If the part is a pack, says instead which of
  // its variables that is: users do not know the pack.
  absl::Status NameTable(const absl::Status& status, size_t part,
                         const tensor::Tensor& elements, tensor::DType dtype,
                         absl::string_view remedy) const;
  absl::Status CheckIds(size_t rows, absl::Span<const uint64_t> ids) const;
  absl::StatusOr<DenseGradient> CheckDense(
      size_t part, absl::Span<const tensor::NamedTensor> named) const;
  absl::StatusOr<RowGradients> CheckRows(
      size_t rows, absl::Span<const tensor::NamedTensor> named, absl::Time now);
  // Returns memory for an answer. Returns RESOURCE_EXHAUSTED above
  // max_answer_bytes, or if there is none, and INVALID_ARGUMENT if it alone is
  // above.
  absl::StatusOr<tensor::Tensor> NewAnswer(tensor::DType dtype,
                                           const tensor::Shape& shape);
  // Rounds f32 and f64 to f16 or bf16, by all workers.
  absl::StatusOr<tensor::Tensor> Rounded(const tensor::Tensor& value,
                                         tensor::DType dtype);
  absl::StatusOr<tensor::Tensor> ReadRows(const Selection::Rows& rows,
                                          absl::Time now);
  absl::Status ApplyParts(size_t policy, absl::Span<Gradients* const> pushes);
  absl::Status ApplyRows(size_t rows, RowStep mean, absl::Time now);

  const LocalModel model_;
  const std::shared_ptr<const PlacementMap> placement_;
  const uint32_t server_;
  const Options options_;
  double max_version_bytes_ = 0;  // of the values of all parts
  const std::vector<Part> parts_;
  const optim::Workers workers_;
  // Readers may outlive the tables.
  const std::shared_ptr<std::atomic<size_t>> answer_bytes_ =
      std::make_shared<std::atomic<size_t>>(0);
  absl::flat_hash_map<std::string, size_t> part_of_;
  // By table of the model.
  std::vector<std::shared_ptr<const optim::Optimizer>> optimizers_;
  std::vector<bool> is_new_;

  absl::Mutex setup_mu_;
  absl::flat_hash_map<size_t, Incomplete> incomplete_
      ABSL_GUARDED_BY(setup_mu_);
  // Each is set once, before missing_parts_ counts it.
  std::vector<std::unique_ptr<DensePart>> dense_;
  std::atomic<size_t> missing_parts_;
  std::unique_ptr<sparse::Pool> pool_;  // null: no limit
  std::vector<SparseTable> sparse_;
  // Its holder sees all dense steps of a policy or none of them.
  mutable absl::Mutex readers_mu_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_TABLES_H_
