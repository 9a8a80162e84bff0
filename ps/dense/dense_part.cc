#include "ps/dense/dense_part.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/optim/elements.h"
#include "ps/optim/gradient.h"

namespace penstock::ps {

using optim::GradientView;
using tensor::Tensor;

namespace {

GradientView ViewOf(const Tensor& tensor) {
  return {tensor.dtype(), tensor.bytes().data(), tensor.num_elements()};
}

absl::StatusOr<Tensor> FirstSlot(const optim::DenseSlot& description,
                                 const Tensor& value) {
  absl::StatusOr<Tensor> slot = Tensor::Allocate(
      description.dtype, value.shape(), tensor::HeapAllocator());
  if (!slot.ok() || slot->byte_size() == 0) return slot;
  optim::InitializeSlot(description, value.dtype(), value.bytes().data(),
                        value.num_elements(), slot->buffer()->mutable_data());
  return slot;
}

// Returns OK if all elements are finite. Values and sums of squares may be
// larger than gradients.
absl::Status CheckFinite(const Tensor& tensor) {
  const double most = tensor.dtype() == tensor::DType::kF64
                          ? std::numeric_limits<double>::max()
                          : std::numeric_limits<float>::max();
  const size_t count = tensor.num_elements();
  const size_t found =
      optim::FindBeyond(tensor.dtype(), tensor.bytes().data(), most, count);
  if (found == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("element ", found, " is not finite"));
}

absl::Status About(absl::string_view name, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(name, ": ", status.message()));
}

}  // namespace

DensePart::DensePart(Options options, Snapshot first)
    : options_(std::move(options)),
      value_(std::move(first.value), options_.allocator),
      slots_(std::move(first.slots)),
      steps_(first.steps) {}

absl::StatusOr<std::unique_ptr<DensePart>> DensePart::Make(Options options,
                                                           Snapshot first) {
  absl::StatusOr<Tensor> aligned = first.value.Aligned();
  if (!aligned.ok()) return About(options.name, aligned.status());
  first.value = *std::move(aligned);
  std::unique_ptr<DensePart> part(
      new DensePart(std::move(options), std::move(first)));
  const absl::Status status = part->CheckFirst();
  if (!status.ok()) return part->Refuse(status);
  return part;
}

absl::StatusOr<std::unique_ptr<DensePart>> DensePart::Create(Options options,
                                                             Tensor value) {
  Snapshot first;
  first.value = std::move(value);
  auto part = Make(std::move(options), std::move(first));
  if (!part.ok()) return part;
  const absl::Status status = (*part)->AddSlots();
  if (!status.ok()) return (*part)->Refuse(status);
  return part;
}

absl::StatusOr<std::unique_ptr<DensePart>> DensePart::Restore(
    Options options, Snapshot snapshot) {
  auto part = Make(std::move(options), std::move(snapshot));
  if (!part.ok()) return part;
  const absl::Status status = (*part)->CheckSlots();
  if (!status.ok()) return (*part)->Refuse(status);
  return part;
}

absl::Status DensePart::Refuse(const absl::Status& status) const {
  return About(options_.name, status);
}

absl::Status DensePart::CheckFirst() const {
  const Tensor value = Current().value;
  absl::Status trainable = optim::CheckTrainable(value.dtype());
  return trainable.ok() ? CheckFinite(value) : trainable;
}

absl::Status DensePart::AddSlots() {
  const Tensor value = Current().value;
  for (const optim::DenseSlot& description :
       optim::DenseSlotsOf(*options_.optimizer, value.dtype())) {
    absl::StatusOr<Tensor> slot = FirstSlot(description, value);
    if (!slot.ok()) return slot.status();
    slot_bytes_ += slot->byte_size();
    slots_.push_back({std::string(description.name), *std::move(slot)});
  }
  return absl::OkStatus();
}

absl::Status DensePart::CheckSlots() {
  const Tensor value = Current().value;
  const std::vector<optim::DenseSlot> wanted =
      optim::DenseSlotsOf(*options_.optimizer, value.dtype());
  if (slots_.size() != wanted.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", slots_.size(), " slots; its optimizer keeps ",
                     wanted.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const tensor::NamedTensor& slot = slots_[i];
    if (slot.name != wanted[i].name || slot.tensor.dtype() != wanted[i].dtype ||
        slot.tensor.shape() != value.shape()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "slot ", i, " is ", slot.name, " ", slot.tensor.ToString(),
          "; its optimizer keeps ", wanted[i].name, " ",
          tensor::Describe(wanted[i].dtype, value.shape())));
    }
    absl::Status here = slot.tensor.CheckOnHost("restore slot");
    if (!here.ok()) return here;
    const absl::Status finite = CheckFinite(slot.tensor);
    if (!finite.ok()) return About(absl::StrCat("slot ", slot.name), finite);
    slot_bytes_ += slot.tensor.byte_size();
  }
  return absl::OkStatus();
}

absl::Status DensePart::Check(const Tensor& gradient) const {
  const Tensor value = Current().value;
  if (gradient.shape() != value.shape() ||
      !optim::IsFloating(gradient.dtype())) {
    return Refuse(absl::InvalidArgumentError(
        absl::StrCat("its gradient is ", gradient.ToString(), ", it is ",
                     value.ToString())));
  }
  absl::Status here = gradient.CheckOnHost("apply the gradient of");
  if (!here.ok()) return Refuse(here);
  absl::Status finite =
      optim::CheckGradient(ViewOf(gradient), value.dtype(), *options_.workers);
  if (finite.ok()) return finite;
  return Refuse(absl::InvalidArgumentError(
      absl::StrCat(finite.message(), optim::kSmallerGradients)));
}

DensePart::Snapshot DensePart::TakeSnapshot() const {
  return {steps_, Current().value, slots_};
}

absl::Status DensePart::OwnSlots() {
  for (tensor::NamedTensor& slot : slots_) {
    if (slot.tensor.IsExclusive()) continue;
    absl::StatusOr<Tensor> copy = slot.tensor.Copy(tensor::HeapAllocator());
    if (!copy.ok()) return Refuse(copy.status());
    slot.tensor = *std::move(copy);
  }
  return absl::OkStatus();
}

// One step of one part. Make() prepares the step and may fail. Later calls
// cannot fail.
class DensePart::Prepared {
 public:
  // Prepares a step of one part. `before` is the prepared step of another part,
  // whose scalars are reused if they are equal.
  static absl::StatusOr<Prepared> Make(const Step& step,
                                       const Prepared* before) {
    DensePart* const part = step.part;
    Prepared prepared;
    prepared.part_ = part;
    absl::Status owned = part->OwnSlots();
    if (!owned.ok()) return owned;
    absl::StatusOr<Tensor> next = part->value_.Next();
    if (!next.ok()) return part->Refuse(next.status());
    prepared.current_ = part->Current().value;
    prepared.next_ = *std::move(next);
    for (const Tensor& gradient : step.gradients) {
      prepared.gradients_.push_back(ViewOf(gradient));
    }
    for (const tensor::NamedTensor& slot : part->slots_) {
      prepared.slots_.push_back(slot.tensor.buffer()->mutable_data());
    }
    prepared.SetScalars(before);
    return prepared;
  }

  optim::DenseStep Describe() const {
    optim::DenseStep step;
    step.optimizer = part_->options_.optimizer.get();
    step.scalars = &scalars_;
    step.dtype = next_.dtype();
    step.count = next_.num_elements();
    step.gradients = gradients_;
    step.value = current_.bytes().data();
    step.updated = next_.buffer()->mutable_data();
    step.slots = slots_;
    return step;
  }

  void Publish() { part_->value_.Publish(std::move(next_)); }

 private:
  Prepared() = default;

  // Sets the scalars of the step: those of `before` if both parts have equal
  // scalars. Computing them takes some powers, which is expensive for a small
  // variable.
  void SetScalars(const Prepared* before) {
    const optim::Optimizer* const optimizer = part_->options_.optimizer.get();
    const bool same = before != nullptr &&
                      before->part_->options_.optimizer.get() == optimizer &&
                      before->part_->steps_ == part_->steps_;
    scalars_ =
        same ? before->scalars_ : optimizer->ScalarsOf(part_->steps_ + 1);
  }

  DensePart* part_ = nullptr;
  Tensor current_;
  Tensor next_;
  std::vector<GradientView> gradients_;
  std::vector<void*> slots_;
  optim::Scalars scalars_;
};

absl::Status DensePart::Apply(absl::Span<const Step> steps,
                              const optim::Workers& workers,
                              absl::Mutex* readers) {
  std::vector<Prepared> all;
  all.reserve(steps.size());
  std::vector<optim::DenseStep> described;
  described.reserve(steps.size());
  for (const Step& step : steps) {
    if (step.part->Current().value.byte_size() == 0) continue;
    absl::StatusOr<Prepared> prepared =
        Prepared::Make(step, all.empty() ? nullptr : &all.back());
    if (!prepared.ok()) return prepared.status();
    all.push_back(*std::move(prepared));
  }
  for (const Prepared& prepared : all) described.push_back(prepared.Describe());
  absl::Status applied = optim::ApplyDense(described, workers);
  if (!applied.ok()) return applied;
  {
    absl::MutexLockMaybe lock(readers);
    for (Prepared& prepared : all) prepared.Publish();
  }
  for (const Step& step : steps) ++step.part->steps_;
  return absl::OkStatus();
}

}  // namespace penstock::ps
