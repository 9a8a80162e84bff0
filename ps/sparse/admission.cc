#include "ps/sparse/admission.h"

#include <algorithm>

namespace penstock::ps::sparse {

size_t Admission::BytesFor(size_t candidates) {
  size_t sets = 1;
  while (sets * kWays < candidates) sets *= 2;
  return sets * kSetBytes;
}

Admission::Admission(uint32_t min_count, size_t candidates, const HashKey* hash,
                     Memory* memory)
    : min_count_(min_count),
      hash_(*hash),
      memory_(memory),
      max_sets_(BytesFor(candidates) / kSetBytes) {}

Admission::~Admission() {
  for (size_t i = 0; i < kMaxPieces && pieces_[i] != nullptr; ++i) {
    memory_->Free(pieces_[i], SetsIn(i) * kSetBytes);
  }
}

bool Admission::AddPiece(size_t piece) {
  const size_t sets = SetsIn(piece);
  pieces_[piece] = static_cast<Candidate*>(
      memory_->Allocate(sets * kSetBytes, /*huge=*/false));
  if (pieces_[piece] == nullptr) return false;
  std::fill_n(pieces_[piece], sets * kWays, Candidate{0, 0, 0});
  return true;
}

void Admission::Split(size_t set, size_t other) {
  Candidate* const from = SetAt(set);
  Candidate* to = SetAt(other);
  for (Candidate* candidate = from; candidate < from + kWays; ++candidate) {
    // Skips candidates that do not belong to `other`, whose number is that of
    // `set` plus one more bit of the hash.
    if (candidate->count == 0 || (hash_(candidate->id) & other) != other) {
      continue;
    }
    *to++ = *candidate;
    candidate->count = 0;
  }
}

bool Admission::Grow(size_t byte_limit) {
  if (sets_ * 2 > max_sets_ || sets_ * 2 * kSetBytes > byte_limit) return false;
  if (!AddPiece(PieceOf(sets_))) return false;
  sets_ *= 2;
  for (size_t set = 0; set < sets_ / 2; ++set) Split(set, set + sets_ / 2);
  return true;
}

Admission::Candidate* Admission::FindFree(uint32_t tag) const {
  Candidate* const set = SetOf(tag);
  Candidate* const free = std::find_if(
      set, set + kWays,
      [](const Candidate& candidate) { return candidate.count == 0; });
  return free == set + kWays ? nullptr : free;
}

bool Admission::Admit(uint64_t id, uint32_t tag, size_t byte_limit) {
  if (min_count_ <= 1) return true;
  if (pieces_[0] == nullptr && !AddPiece(0)) return false;
  ++counted_;
  Candidate* const set = SetOf(tag);
  Candidate* const known = std::find_if(
      set, set + kWays,
      [id](const Candidate& each) { return each.count > 0 && each.id == id; });
  if (known != set + kWays) {
    if (++known->count < min_count_) return false;
    known->count = 0;
    return true;
  }
  Candidate* place = FindFree(tag);
  while (place == nullptr && Grow(byte_limit)) place = FindFree(tag);
  if (place == nullptr) place = Rarest(tag);
  *place = {id, 1, counted_};
  return false;
}

Admission::Candidate* Admission::Rarest(uint32_t tag) const {
  Candidate* const set = SetOf(tag);
  // Compares the differences between count and age, because the count may wrap
  // around.
  return std::min_element(
      set, set + kWays, [this](const Candidate& a, const Candidate& b) {
        return a.count != b.count ? a.count < b.count
                                  : counted_ - a.since > counted_ - b.since;
      });
}

bool Admission::Return(uint64_t id, uint32_t tag) {
  if (min_count_ <= 1) return false;
  *FindFree(tag) = {id, min_count_ - 1, counted_};
  return true;
}

bool Admission::WouldAdmit(uint64_t id, uint32_t tag) const {
  if (min_count_ <= 1) return true;
  if (pieces_[0] == nullptr) return false;
  const Candidate* const set = SetOf(tag);
  return std::any_of(set, set + kWays, [&](const Candidate& candidate) {
    return candidate.count > 0 && candidate.id == id &&
           candidate.count + 1 >= min_count_;
  });
}

}  // namespace penstock::ps::sparse
