#include "transport/session/landing.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/memory/memory.h"

namespace penstock {
namespace session {
namespace {

// The alignment of a memory::Block, in bytes. A piece is in the block at its
// offset in the message, modulo this number.
constexpr uint64_t kAlignment = 64;

// Returns true if `next` directly follows `part` in the peer's memory. Compares
// without sums, which may overflow because the peer chose the numbers.
bool IsNext(const fabric::RemotePart& part, const fabric::RemotePart& next) {
  return part.key == next.key && part.offset <= next.offset &&
         next.offset - part.offset == part.length &&
         next.length <= UINT64_MAX - part.length;
}

// Finds destinations by size. Returns each destination once.
class Finder {
 public:
  explicit Finder(const std::vector<memory::Destination>& by_size)
      : by_size_(by_size) {}

  // Returns the next unused destination of that size, or null.
  const memory::Destination* Find(uint64_t size) {
    auto found = next_.find(size);
    if (found == next_.end()) {
      const auto first =
          std::lower_bound(by_size_.begin(), by_size_.end(), size,
                           [](const memory::Destination& one, uint64_t wanted) {
                             return one.size < wanted;
                           });
      found = next_.emplace(size, first - by_size_.begin()).first;
    }
    const size_t next = found->second;
    if (next == by_size_.size() || by_size_[next].size != size) return nullptr;
    ++found->second;
    return &by_size_[next];
  }

 private:
  const std::vector<memory::Destination>& by_size_;
  std::map<uint64_t, size_t> next_;  // by size
};

}  // namespace

absl::StatusOr<std::unique_ptr<Landing>> Landing::Choose(
    const fabric::RemoteRegion& region,
    const std::shared_ptr<memory::Destinations>& destinations,
    fabric::Endpoint* path) {
  auto landing = absl::WrapUnique(new Landing);
  const uint64_t block_bytes =
      landing->Arrange(region, landing->Match(region, destinations, path));
  if (block_bytes > 0) {
    absl::StatusOr<memory::Block> block = path->AllocateForRead(block_bytes);
    if (!block.ok()) return block.status();
    landing->block_ = *std::move(block);
  }
  landing->Locate();
  return landing;
}

std::vector<const memory::Destination*> Landing::Match(
    const fabric::RemoteRegion& region,
    const std::shared_ptr<memory::Destinations>& destinations,
    fabric::Endpoint* path) {
  std::vector<const memory::Destination*> matches;
  if (destinations == nullptr) return matches;
  taken_ = memory::Destinations::Take(destinations);
  if (taken_ == nullptr) return matches;
  Finder finder(destinations->by_size());
  for (const fabric::RemotePart& part : region) {
    const memory::Destination* found = finder.Find(part.length);
    std::shared_ptr<const void> prepared;
    if (found != nullptr) prepared = path->PrepareToRead(*found);
    matches.push_back(prepared == nullptr ? nullptr : found);
    if (prepared != nullptr) prepared_.push_back(std::move(prepared));
  }
  if (prepared_.empty()) taken_.reset();
  return matches;
}

uint64_t Landing::Arrange(
    const fabric::RemoteRegion& region,
    const std::vector<const memory::Destination*>& matches) {
  uint64_t at_message = 0;
  uint64_t at_block = 0;
  for (size_t i = 0; i < region.size(); ++i) {
    const memory::Destination* match = matches.empty() ? nullptr : matches[i];
    const bool goes_on = match == nullptr && !pieces_.empty() &&
                         pieces_.back().destination == nullptr;
    if (match == nullptr && !goes_on) {
      at_block += (at_message - at_block) % kAlignment;
    }
    if (!goes_on) pieces_.push_back(Piece{0, at_block, match});
    pieces_.back().size += region[i].length;
    AddPart(region[i], goes_on);
    at_message += region[i].length;
    if (match == nullptr) at_block += region[i].length;
  }
  return at_block;
}

void Landing::AddPart(const fabric::RemotePart& part, bool joins) {
  if (joins && IsNext(parts_.back(), part)) {
    parts_.back().length += part.length;
    return;
  }
  parts_.push_back(part);
  piece_of_.push_back(pieces_.size() - 1);
}

void Landing::Locate() {
  uint64_t in_piece = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (i > 0 && piece_of_[i] != piece_of_[i - 1]) in_piece = 0;
    const Piece& piece = pieces_[piece_of_[i]];
    uint8_t* const begin = piece.destination != nullptr
                               ? piece.destination->data
                               : block_.data.get() + piece.at_block;
    at_.push_back(begin + in_piece);
    in_piece += parts_[i].length;
  }
}

std::vector<uint64_t> Landing::lengths() const {
  std::vector<uint64_t> lengths;
  for (const fabric::RemotePart& part : parts_) lengths.push_back(part.length);
  return lengths;
}

memory::Payload Landing::Message() const {
  memory::Payload message;
  for (const Piece& piece : pieces_) {
    if (piece.destination != nullptr) {
      message.Append(memory::Bytes{piece.destination->data,
                                   piece.destination->size, taken_,
                                   piece.destination->device});
    } else {
      message.Append(block_.AsBytes().Part(piece.at_block, piece.size));
    }
  }
  return message;
}

}  // namespace session
}  // namespace penstock
