#include "ps/client/gradients.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/client/dense_values.h"
#include "ps/optim/gradient.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

constexpr size_t kMaxNameBytesShown = 100;

}  // namespace

GradientSplitter::GradientSplitter(
    std::shared_ptr<const TrainingConnection> connection, sparse::HashKey hash)
    : connection_(std::move(connection)), hash_(hash) {
  coders_.resize(connection_->layout().parts().size());
}

absl::Status GradientSplitter::MakeCoders(const MakeGradientCoder& make) {
  const Layout& layout = connection_->layout();
  for (size_t at = 0; at < coders_.size() && make; ++at) {
    const PlacedPart& part = layout.parts()[at];
    if (part.is_pack()) continue;
    auto coder = make(layout.tables()[part.pieces[0].table].name, part);
    if (!coder.ok()) return coder.status();
    coders_[at] = *std::move(coder);
  }
  return absl::OkStatus();
}

void GradientSplitter::TakeBack(std::vector<ServerGradients::Coded> coded) {
  absl::MutexLock lock(&mu_);
  for (ServerGradients::Coded& one : coded) returned_.push_back(std::move(one));
}

absl::StatusOr<std::vector<ServerGradients>> GradientSplitter::Split(
    const StepGradients& gradients, uint64_t step) {
  std::vector<ServerGradients::Coded> returned;
  {
    absl::MutexLock lock(&mu_);
    returned.swap(returned_);
  }
  for (const ServerGradients::Coded& one : returned) {
    coders_[one.part]->TakeBack(one.tensors);
  }
  std::vector<ServerGradients> servers(connection_->servers());
  // Checks the rows of all tables first, because an error must leave all coders
  // unchanged.
  for (size_t i = 0; i < gradients.rows.size(); ++i) {
    const GradientRows& rows = gradients.rows[i];
    for (size_t j = 0; j < i; ++j) {
      if (gradients.rows[j].table != rows.table) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "table ", base::Printable(rows.table, kMaxNameBytesShown),
          ": its rows were given twice"));
    }
    absl::Status status = AddRows(rows, &servers);
    if (!status.ok()) return status;
  }
  absl::Status status = AddDense(gradients.dense, step, &servers);
  if (status.ok()) return servers;
  for (ServerGradients& server : servers) TakeBack(std::move(server.coded));
  return status;
}

absl::Status GradientSplitter::AddRows(const GradientRows& rows,
                                       std::vector<ServerGradients>* servers) {
  const TableSpec* const table = connection_->model().Find(rows.table);
  if (table == nullptr || table->is_dense()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", base::Printable(rows.table, kMaxNameBytesShown),
                     ": the model has no sparse table of that name"));
  }
  auto pushes =
      SplitRows(*connection_->placement().Find(rows.table), servers->size(),
                rows, absl::get<SparseSpec>(table->rows).dim, hash_);
  if (!pushes.ok()) return pushes.status();
  absl::Status status =
      CheckElements(rows.table, rows.gradients, tensor::DType::kF32);
  if (!status.ok()) return status;
  for (size_t server = 0; server < servers->size(); ++server) {
    absl::optional<RowPush>& push = (*pushes)[server];
    if (!push.has_value()) continue;
    auto& tensors = (*servers)[server].bundle.tensors;
    tensors.push_back({rows.table, std::move(push->ids)});
    tensors.push_back({rows.table, std::move(push->gradients)});
  }
  return absl::OkStatus();
}

absl::Status GradientSplitter::CheckElements(const std::string& table,
                                             const tensor::Tensor& gradients,
                                             tensor::DType value) const {
  if (connection_->servers() < 2) return absl::OkStatus();
  absl::Status status = optim::CheckGradient(
      {gradients.dtype(), gradients.bytes().data(), gradients.num_elements()},
      value, workers_);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("table ", base::Printable(table, kMaxNameBytesShown), ": ",
                   status.message(), optim::kSmallerGradients));
}

absl::Status GradientSplitter::AddDense(const tensor::Bundle& dense,
                                        uint64_t step,
                                        std::vector<ServerGradients>* servers) {
  const Layout& layout = connection_->layout();
  auto parts = SplitTables(layout, dense, DenseKind::kGradients);
  if (!parts.ok()) return parts.status();
  for (const tensor::NamedTensor& named : dense.tensors) {
    const PlacedDense& table = layout.tables()[*layout.Find(named.name)];
    absl::Status status = CheckElements(table.name, named.tensor, table.dtype);
    if (!status.ok()) return status;
  }
  for (PartTensor& part : *parts) {
    const PlacedPart& placed = layout.parts()[part.part];
    ServerGradients& server = (*servers)[placed.server];
    GradientCoder* const coder = coders_[part.part].get();
    if (coder == nullptr) {
      server.bundle.tensors.push_back({placed.name, std::move(part.tensor)});
      continue;
    }
    auto coded = coder->Encode(part.tensor, step);
    if (!coded.ok()) return coded.status();
    for (const tensor::Tensor& tensor : *coded) {
      server.bundle.tensors.push_back({placed.name, tensor});
    }
    server.coded.push_back({part.part, *std::move(coded)});
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps
