#include "ps/sparse/admission.h"

#include <algorithm>

namespace penstock::ps::sparse {

size_t Admission::BytesFor(size_t candidates) {
  size_t sets = 1;
  while (sets * kWays < candidates) sets *= 2;
  return sets * kWays * sizeof(Candidate);
}

Admission::Admission(uint32_t min_count, size_t candidates, Memory* memory)
    : min_count_(min_count),
      memory_(memory),
      bytes_(BytesFor(candidates)),
      mask_(bytes_ / (kWays * sizeof(Candidate)) - 1) {}

Admission::~Admission() {
  if (candidates_ != nullptr) memory_->Free(candidates_, bytes_);
}

bool Admission::Prepare() {
  if (candidates_ != nullptr) return true;
  candidates_ =
      static_cast<Candidate*>(memory_->Allocate(bytes_, /*huge=*/false));
  if (candidates_ == nullptr) return false;
  std::fill_n(candidates_, (mask_ + 1) * kWays, Candidate{0, 0, 0});
  return true;
}

bool Admission::Admit(uint64_t id, uint32_t tag) {
  if (min_count_ <= 1) return true;
  if (!Prepare()) return false;
  ++counted_;
  Candidate* const set = SetOf(tag);
  Candidate* rarest = set;
  for (Candidate* candidate = set; candidate < set + kWays; ++candidate) {
    if (candidate->count > 0 && candidate->id == id) {
      if (++candidate->count < min_count_) return false;
      candidate->count = 0;
      return true;
    }
    // Compares ages as differences, so that the count may wrap.
    if (candidate->count < rarest->count ||
        (candidate->count == rarest->count &&
         counted_ - candidate->since > counted_ - rarest->since)) {
      rarest = candidate;
    }
  }
  *rarest = {id, 1, counted_};
  return false;
}

bool Admission::Return(uint64_t id, uint32_t tag) {
  if (min_count_ <= 1) return false;
  Candidate* const set = SetOf(tag);
  Candidate* const free = std::find_if(
      set, set + kWays,
      [](const Candidate& candidate) { return candidate.count == 0; });
  *free = {id, min_count_ - 1, counted_};
  return true;
}

bool Admission::WouldAdmit(uint64_t id, uint32_t tag) const {
  if (min_count_ <= 1) return true;
  if (candidates_ == nullptr) return false;
  const Candidate* const set = SetOf(tag);
  return std::any_of(set, set + kWays, [&](const Candidate& candidate) {
    return candidate.count > 0 && candidate.id == id &&
           candidate.count + 1 >= min_count_;
  });
}

}  // namespace penstock::ps::sparse
