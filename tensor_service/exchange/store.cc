#include "tensor_service/store.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/text.h"

namespace penstock::tensor {

namespace {

size_t HeldBy(const std::string& name, const Tensor& tensor) {
  return TensorStore::kEntryBytes + name.size() + tensor.held_bytes();
}

size_t BytesOnDevices(const Bundle& bundle) {
  size_t bytes = 0;
  for (const NamedTensor& named : bundle.tensors) {
    if (!named.tensor.device().is_host()) bytes += named.tensor.byte_size();
  }
  return bytes;
}

// The smallest default of answer_bytes. Enough for a Get of thousands of
// tensors, even with a small budget.
constexpr size_t kMinAnswerBytes = size_t{16} << 20;

TensorStore::Options Complete(TensorStore::Options options) {
  if (options.answer_bytes == 0) {
    options.answer_bytes = std::max(options.budget_bytes / 4, kMinAnswerBytes);
  }
  return options;
}

TensorStore::Options WithBudget(size_t budget_bytes) {
  TensorStore::Options options;
  options.budget_bytes = budget_bytes;
  return options;
}

absl::Time SteadyNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

absl::Status Refused(const std::string& operation, const absl::Status& why,
                     const char* remedy) {
  return absl::Status(why.code(),
                      absl::StrCat(operation, ": ", why.message(), remedy));
}

}  // namespace

TensorStore::TensorStore(size_t budget_bytes)
    : TensorStore(WithBudget(budget_bytes)) {}

TensorStore::TensorStore(const Options& options)
    : stall_limit_(options.stall_limit),
      budget_(options.budget_bytes),
      gathering_(options.budget_bytes, options.client_share),
      answers_(Complete(options).answer_bytes),
      answers_of_clients_(answers_.limit(), options.client_share) {}

absl::StatusOr<size_t> TensorStore::Put(const Bundle& bundle,
                                        Bundle* replaced) {
  // Checks the size first, to avoid device copies of a bundle that can never
  // fit.
  const size_t on_devices = BytesOnDevices(bundle);
  if (on_devices > budget_.limit()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "put of ", on_devices, " bytes on devices: the store's budget is ",
        budget_.limit(), "; raise it"));
  }
  absl::StatusOr<Bundle> own = OwnOnDevices(bundle);
  if (!own.ok()) return own.status();
  return PutOwn(*own, replaced, /*reserved=*/nullptr);
}

size_t TensorStore::FreedByLocked(const Entries& fresh,
                                  bool keeps_replaced) const {
  size_t freed = 0;
  for (const auto& entry : fresh) {
    const auto old = entries_.find(entry.first);
    if (old == entries_.end() || keeps_replaced) continue;
    // Counts an entry that no other code holds. Other code can acquire the
    // entry only under the lock.
    if (old->second.hold.use_count() == 1) freed += old->second.hold->bytes();
  }
  return freed;
}

absl::StatusOr<size_t> TensorStore::PutOwn(const Bundle& bundle,
                                           Bundle* replaced,
                                           StoreReservation* reserved) {
  Entries fresh;
  for (const NamedTensor& named : bundle.tensors) {
    if (named.name.empty()) {
      return absl::InvalidArgumentError("put: a tensor has no name");
    }
    absl::StatusOr<Tensor> kept =
        named.tensor.device().is_host() ? named.tensor.Compact() : named.tensor;
    if (!kept.ok()) return kept.status();
    fresh[named.name].tensor = *std::move(kept);
  }
  size_t bytes = 0;
  for (const auto& entry : fresh) {
    bytes += HeldBy(entry.first, entry.second.tensor);
  }
  absl::StatusOr<size_t> stored = StoreFresh(bytes, &fresh, replaced, reserved);
  if (absl::IsResourceExhausted(stored.status()) && EvictStalled()) {
    stored = StoreFresh(bytes, &fresh, replaced, reserved);
  }
  if (stored.ok()) return stored;
  return Refused(
      absl::StrCat("put of ", bundle.byte_size(), " bytes"), stored.status(),
      "; delete tensors, wait for answers that still hold replaced tensors, "
      "or raise it");
}

absl::StatusOr<size_t> TensorStore::StoreFresh(size_t bytes, Entries* fresh,
                                               Bundle* replaced,
                                               StoreReservation* reserved) {
  absl::MutexLock lock(&mu_);
  const size_t freed = FreedByLocked(*fresh, replaced != nullptr) +
                       (reserved == nullptr ? 0 : reserved->bytes_);
  absl::StatusOr<Budget::Hold> hold = budget_.Take(bytes, freed);
  if (!hold.ok()) return hold.status();
  if (reserved != nullptr) {
    reserved->parts_.clear();
    reserved->bytes_ = 0;
  }
  for (auto& entry : *fresh) {
    const size_t held = HeldBy(entry.first, entry.second.tensor);
    entry.second.hold = std::make_shared<Budget::Hold>(hold->Split(held));
    bytes_ += held;
    auto slot = entries_.find(entry.first);
    if (slot == entries_.end()) {
      name_bytes_ += entry.first.size();
      entries_.insert(std::move(entry));
      continue;
    }
    std::swap(slot->second, entry.second);
    bytes_ -= entry.second.hold->bytes();
    if (replaced != nullptr) {
      replaced->tensors.push_back({entry.first, Lent(entry.second)});
    }
    // Releases the bytes under the lock, so that the next Put() finds the room.
    // Frees the memory after the lock is released, because the memory's holder
    // may run code of the program.
    entry.second.hold.reset();
  }
  return bytes_;
}

Tensor TensorStore::Lent(const Entry& entry) {
  const Tensor& tensor = entry.tensor;
  if (tensor.buffer() == nullptr) return tensor;  // holds no memory
  // FromBuffer() cannot fail here, because type, shape and size are those of
  // the original.
  return *Tensor::FromBuffer(tensor.dtype(), tensor.shape(),
                             Buffer::With(tensor.buffer(), entry.hold));
}

absl::StatusOr<Bundle> TensorStore::Get(
    absl::Span<const std::string> names) const {
  Bundle bundle;
  absl::MutexLock lock(&mu_);
  for (const std::string& name : names) {
    auto found = entries_.find(name);
    if (found == entries_.end()) {
      return absl::NotFoundError(absl::StrCat("get: no tensor ", Quoted(name)));
    }
    bundle.tensors.push_back({name, found->second.tensor});
  }
  return bundle;
}

absl::StatusOr<Bundle> TensorStore::Lend(
    absl::Span<const std::string> names) const {
  Bundle bundle;
  bundle.tensors.reserve(names.size());
  absl::MutexLock lock(&mu_);
  for (const std::string& name : names) {
    auto found = entries_.find(name);
    if (found == entries_.end()) {
      return absl::NotFoundError(absl::StrCat("get: no tensor ", Quoted(name)));
    }
    bundle.tensors.push_back({name, Lent(found->second)});
  }
  return bundle;
}

absl::StatusOr<TensorStore::AnswerRoom> TensorStore::ReserveAnswer(
    const std::string& client, size_t tensors, size_t more_bytes) {
  const size_t most = (SIZE_MAX - more_bytes) / kAnswerEntryBytes;
  const size_t bytes =
      tensors > most ? SIZE_MAX : tensors * kAnswerEntryBytes + more_bytes;
  constexpr char kRemedy[] =
      "; request fewer tensors at a time, or raise answer_bytes";
  const auto operation = [tensors] {
    return absl::StrCat("answer with ", tensors, " tensors");
  };
  AnswerRoom room;
  absl::StatusOr<ClientShares::Hold> of_client =
      answers_of_clients_.Take(client, bytes);
  if (!of_client.ok()) return Refused(operation(), of_client.status(), kRemedy);
  absl::StatusOr<Budget::Hold> hold = answers_.Take(bytes);
  if (!hold.ok()) return Refused(operation(), hold.status(), kRemedy);
  room.of_client_ = *std::move(of_client);
  room.bytes_ = *std::move(hold);
  return room;
}

size_t TensorStore::Delete(absl::Span<const std::string> names) {
  size_t deleted = 0;
  std::vector<Tensor> old;  // freed after the lock is released
  absl::MutexLock lock(&mu_);
  for (const std::string& name : names) {
    auto found = entries_.find(name);
    if (found == entries_.end()) continue;
    bytes_ -= found->second.hold->bytes();
    name_bytes_ -= name.size();
    old.push_back(std::move(found->second.tensor));
    entries_.erase(found);
    ++deleted;
  }
  return deleted;
}

Bundle TensorStore::All() const {
  Bundle bundle;
  absl::MutexLock lock(&mu_);
  for (const auto& entry : entries_) {
    bundle.tensors.push_back({entry.first, entry.second.tensor});
  }
  return bundle;
}

TensorStore::Usage TensorStore::usage() const {
  absl::MutexLock lock(&mu_);
  return {entries_.size(), name_bytes_, budget_.held(), answers_.held()};
}

bool TensorStore::EvictStalled() {
  std::vector<std::function<void()>> evictions;
  {
    absl::MutexLock lock(&above_mu_);
    const absl::Time now = SteadyNow();
    for (const auto& above : above_) {
      if (above.second.stalls_at <= now) {
        evictions.push_back(above.second.evict);
      }
    }
  }
  for (const std::function<void()>& evict : evictions) evict();
  return !evictions.empty();
}

absl::StatusOr<Budget::Hold> TensorStore::TakeFor(size_t bytes) {
  absl::StatusOr<Budget::Hold> hold = budget_.Take(bytes);
  if (hold.ok() || !EvictStalled()) return hold;
  return budget_.Take(bytes);
}

StoreReservation::~StoreReservation() {
  if (!is_above_) return;
  absl::MutexLock lock(&store_->above_mu_);
  store_->above_.erase(this);
}

absl::Status StoreReservation::Add(const std::string& name, size_t held_bytes) {
  size_t bytes = TensorStore::kEntryBytes + name.size() + held_bytes;
  if (bytes < held_bytes) bytes = SIZE_MAX;
  const auto operation = [held_bytes] {
    return absl::StrCat("put of a tensor of ", held_bytes, " bytes");
  };
  Part part;
  absl::StatusOr<ClientShares::Hold> of_client =
      store_->gathering_.Take(client_, bytes);
  if (!of_client.ok() && evict_ == nullptr) {
    return Refused(operation(), of_client.status(),
                   ", or raise the budget or client_share");
  }
  absl::StatusOr<Budget::Hold> hold = store_->TakeFor(bytes);
  if (!hold.ok()) {
    return Refused(operation(), hold.status(), "; delete tensors or raise it");
  }
  if (of_client.ok()) {
    part.of_client = *std::move(of_client);
  } else if (!is_above_) {
    is_above_ = true;
    absl::MutexLock lock(&store_->above_mu_);
    store_->above_[this] = {SteadyNow() + store_->stall_limit_, evict_};
  }
  part.bytes = *std::move(hold);
  parts_.push_back(std::move(part));
  bytes_ += bytes;
  return absl::OkStatus();
}

void StoreReservation::Arrived(size_t bytes) {
  if (!is_above_) return;
  const absl::Duration earned = absl::Seconds(
      static_cast<double>(bytes) / TensorStore::kStreamBytesPerSecond);
  absl::MutexLock lock(&store_->above_mu_);
  absl::Time& stalls_at = store_->above_[this].stalls_at;
  stalls_at = std::min(stalls_at + earned, SteadyNow() + store_->stall_limit_);
}

}  // namespace penstock::tensor
