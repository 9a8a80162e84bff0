#include "ps/server/dense_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ps/compression/decompress.h"
#include "ps/optim/dense.h"
#include "ps/optim/gradient.h"
#include "ps/server/row_tensors.h"
#include "transport/base/printable.h"

namespace penstock::ps {

absl::StatusOr<std::unique_ptr<DenseParts>> DenseParts::Create(
    const LocalModel* model, Optimizers optimizers,
    const optim::Workers* workers, const Options& options) {
  std::unique_ptr<DenseParts> parts(
      new DenseParts(model, std::move(optimizers), workers, options));
  absl::Status status = parts->CheckBytes();
  if (!status.ok()) return status;
  return parts;
}

DenseParts::DenseParts(const LocalModel* model, Optimizers optimizers,
                       const optim::Workers* workers, const Options& options)
    : model_(*model),
      optimizers_(std::move(optimizers)),
      workers_(*workers),
      options_(options),
      layout_(LayOut(model_)),
      parts_(layout_.size()),
      missing_parts_(layout_.size()) {
  for (size_t i = 0; i < layout_.size(); ++i) part_of_[layout_[i].name] = i;
}

// Checks that the values, their next versions and the slots fit into max_bytes.
// Computes the sum in floating point, because it may overflow an integer.
absl::Status DenseParts::CheckBytes() {
  double values = 0;  // and their next versions
  double slots = 0;
  for (const Part& part : layout_) {
    auto value = tensor::ByteSize(part.dtype, part.shape);
    if (!value.ok()) return value.status();
    const auto elements = static_cast<double>(ElementsOf(part));
    values += 2 * elements * tensor::ElementSize(part.dtype);
    for (const optim::DenseSlot& slot :
         optim::DenseSlotsOf(*optimizers_[part.table], part.dtype)) {
      slots += elements * tensor::ElementSize(slot.dtype);
    }
  }
  const auto most = static_cast<double>(options_.max_bytes);
  const double bytes = values + slots;
  if (bytes <= most) {
    max_version_bytes_ = std::max(most - slots, 2 * values);
    value_bytes_ = static_cast<uint64_t>(values / 2);
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the dense tables take %.0f bytes at this server, with their next "
      "versions and slots, and it may use %d: add servers, or raise --memory",
      bytes, options_.max_bytes));
}

DensePart::Options DenseParts::OptionsOf(size_t part) const {
  DensePart::Options options;
  options.name =
      absl::StrCat("variable ", base::Printable(layout_[part].name, 100));
  options.optimizer = optimizers_[layout_[part].table];
  options.workers = &workers_;
  options.allocator = options_.allocator;
  return options;
}

absl::StatusOr<size_t> DenseParts::Find(const std::string& name) const {
  const absl::optional<size_t> found = IndexOf(name);
  if (found.has_value()) return *found;
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", base::Printable(name, 100),
                   ": this server has no such part; GetModel() names them"));
}

absl::optional<size_t> DenseParts::IndexOf(const std::string& name) const {
  const auto found = part_of_.find(name);
  if (found == part_of_.end()) return absl::nullopt;
  return found->second;
}

void DenseParts::SetPart(size_t at, std::unique_ptr<DensePart> part) {
  parts_[at] = std::move(part);
  --missing_parts_;
}

absl::Status DenseParts::NameTable(const absl::Status& status, size_t part,
                                   const tensor::Tensor& elements,
                                   tensor::DType dtype,
                                   absl::string_view remedy) const {
  const Part& pack = layout_[part];
  if (pack.pieces.size() < 2 || elements.shape() != pack.shape) return status;
  const size_t size = tensor::ElementSize(elements.dtype());
  for (const Part::Piece& piece : pack.pieces) {
    const absl::Status found = optim::CheckGradient(
        {elements.dtype(), elements.bytes().data() + piece.first * size,
         piece.elements},
        dtype, workers_);
    if (found.ok()) continue;
    return absl::Status(
        status.code(),
        absl::StrCat("variable ", model_.ranges()[piece.range].name, ": ",
                     found.message(), remedy));
  }
  return status;
}

absl::Status DenseParts::Initialize(const tensor::Bundle& values) {
  absl::MutexLock lock(&setup_mu_);
  for (const tensor::NamedTensor& named : values.tensors) {
    const auto at = Find(named.name);
    if (!at.ok()) return at.status();
    if (parts_[*at] != nullptr) continue;
    const Part& part = layout_[*at];
    if (named.tensor.dtype() != part.dtype ||
        named.tensor.shape() != part.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", base::Printable(part.name, 100),
                       ": its first value is ", named.tensor.ToString(),
                       ", it is ", tensor::Describe(part.dtype, part.shape)));
    }
    // Copy the value, which refers to the received message, into memory from
    // which it can be sent.
    auto copy = named.tensor.Copy(options_.allocator);
    if (!copy.ok()) return copy.status();
    auto made = DensePart::Create(OptionsOf(*at), *std::move(copy));
    if (!made.ok()) {
      return NameTable(made.status(), *at, named.tensor, tensor::DType::kF64,
                       "");
    }
    if (const auto rest = incomplete_.find(*at); rest != incomplete_.end()) {
      auto whole = Complete(*at, **made, rest->second);
      if (!whole.ok()) return whole.status();
      made = std::move(whole);
      incomplete_.erase(rest);
    }
    SetPart(*at, *std::move(made));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DensePart>> DenseParts::Complete(
    size_t part, const DensePart& first, Incomplete rest) const {
  const DensePart::Snapshot from = first.TakeSnapshot();
  const auto copy = [](const Part::Piece& piece, const tensor::Tensor& source,
                       const tensor::Tensor& to) {
    const size_t size = tensor::ElementSize(to.dtype());
    // Writes without a lock, because no other thread can read this memory yet.
    std::memcpy(to.buffer()->mutable_data() + piece.first * size,
                source.bytes().data() + piece.first * size,
                piece.elements * size);
  };
  for (const size_t at : rest.missing) {
    const Part::Piece& piece = layout_[part].pieces[at];
    copy(piece, from.value, rest.snapshot.value);
    for (size_t i = 0; i < rest.snapshot.slots.size(); ++i) {
      copy(piece, from.slots[i].tensor, rest.snapshot.slots[i].tensor);
    }
  }
  return DensePart::Restore(OptionsOf(part), std::move(rest.snapshot));
}

absl::StatusOr<DensePart::Snapshot> DenseParts::MakeRoom(size_t part) const {
  const Part& layout = layout_[part];
  DensePart::Snapshot room;
  auto value =
      tensor::Tensor::Allocate(layout.dtype, layout.shape, options_.allocator);
  if (!value.ok()) return value.status();
  room.value = *std::move(value);
  for (const optim::DenseSlot& slot :
       optim::DenseSlotsOf(*optimizers_[layout.table], layout.dtype)) {
    auto memory = tensor::Tensor::Allocate(slot.dtype, layout.shape,
                                           tensor::HeapAllocator());
    if (!memory.ok()) return memory.status();
    room.slots.push_back({std::string(slot.name), *std::move(memory)});
  }
  return room;
}

absl::Status DenseParts::Restore(size_t part, DensePart::Snapshot snapshot) {
  absl::MutexLock lock(&setup_mu_);
  auto made = DensePart::Restore(OptionsOf(part), std::move(snapshot));
  if (!made.ok()) return made.status();
  SetPart(part, *std::move(made));
  return absl::OkStatus();
}

void DenseParts::RestoreRest(size_t part, DensePart::Snapshot snapshot,
                             std::vector<size_t> missing) {
  absl::MutexLock lock(&setup_mu_);
  incomplete_[part] = {std::move(snapshot), std::move(missing)};
}

size_t DenseParts::VersionBytes() const {
  size_t bytes = 0;
  for (const auto& part : parts_) bytes += part->version_bytes();
  return bytes;
}

absl::Status DenseParts::CheckVersions() {
  const auto fits = [this](size_t bytes) {
    return static_cast<double>(bytes) <= max_version_bytes_;
  };
  if (fits(VersionBytes())) return absl::OkStatus();
  for (const auto& part : parts_) part->TrimVersions();
  const size_t bytes = VersionBytes();
  if (fits(bytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "versions of the dense values take %d bytes, because readers keep older "
      "versions or do not read their answers, and may take %.0f: release "
      "pulled values, or raise --memory",
      bytes, max_version_bytes_));
}

absl::Status DenseParts::Read(absl::Span<const size_t> parts,
                              tensor::Bundle* bundle) {
  absl::Status status = CheckVersions();
  if (!status.ok()) return status;
  absl::MutexLock lock(&readers_mu_);
  for (const size_t part : parts) {
    bundle->tensors.push_back(
        {layout_[part].name, parts_[part]->Current().value});
  }
  return absl::OkStatus();
}

absl::StatusOr<DenseGradient> DenseParts::Check(
    size_t part, absl::Span<const tensor::NamedTensor> named) const {
  std::vector<tensor::Tensor> list;
  list.reserve(named.size());
  for (const tensor::NamedTensor& each : named) list.push_back(each.tensor);
  auto gradient = compression::Decompress(layout_[part].shape, list, workers_);
  if (!gradient.ok()) {
    return absl::Status(gradient.status().code(),
                        absl::StrCat("variable ", Shown(named[0].name), ": ",
                                     gradient.status().message()));
  }
  absl::Status status = parts_[part]->Check(*gradient);
  if (!status.ok()) {
    return NameTable(status, part, *gradient, layout_[part].dtype,
                     optim::kSmallerGradients);
  }
  return DenseGradient{part, *std::move(gradient)};
}

absl::Status DenseParts::Apply(size_t policy,
                               absl::Span<Gradients* const> pushes) {
  std::vector<DensePart::Step> steps;
  std::vector<size_t> step_of(layout_.size(), layout_.size());
  for (const Gradients* push : pushes) {
    for (const DenseGradient& each : push->dense) {
      if (layout_[each.part].policy != policy) continue;
      if (step_of[each.part] == layout_.size()) {
        step_of[each.part] = steps.size();
        steps.emplace_back();
        steps.back().part = parts_[each.part].get();
      }
      steps[step_of[each.part]].gradients.push_back(each.gradient);
    }
  }
  if (steps.empty()) return absl::OkStatus();
  return DensePart::Apply(steps, workers_, &readers_mu_);
}

void DenseParts::AddTo(std::vector<TableReport>* reports) const {
  for (size_t i = 0; has_values() && i < layout_.size(); ++i) {
    for (const Part::Piece& piece : layout_[i].pieces) {
      const LocalRange& range = model_.ranges()[piece.range];
      TableReport& report = (*reports)[range.table];
      report.rows += range.shape.empty() ? 1 : range.shape[0];
      report.bytes += parts_[i]->held_bytes() * piece.elements /
                      std::max<size_t>(1, ElementsOf(layout_[i]));
      report.steps = std::max(report.steps, parts_[i]->steps());
    }
  }
}

}  // namespace penstock::ps
