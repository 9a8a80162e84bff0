#include "frameworks/torch/blocks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "collectives/group.h"
#include "tensor_service/dtype.h"

namespace penstock {
namespace pytorch {
namespace {

using collectives::Group;
using tensor::DType;

// Limits the memory of a round.
constexpr int64_t kRoundBytes = int64_t{4} << 20;

// The sizes that all ranks send and expect. Each rank has a row of the sizes of
// `in`, then a row of those of `out`.
class Sizes {
 public:
  explicit Sizes(int ranks) : ranks_(ranks), rows_(2 * ranks * ranks) {}

  absl::Status Gather(Group* group, absl::Span<const ConstBlock> in,
                      absl::Span<const Block> out) {
    std::vector<int64_t> own;
    for (const ConstBlock& block : in) own.push_back(block.bytes);
    for (const Block& block : out) own.push_back(block.bytes);
    return group->AllGather(DType::kInt64, own.data(), rows_.data(),
                            2 * ranks_);
  }

  // Checks the sizes. All ranks get the same result.
  absl::Status Check() const {
    for (int from = 0; from < ranks_; ++from) {
      for (int to = 0; to < ranks_; ++to) {
        const int64_t sent = rows_[(2 * from) * ranks_ + to];
        const int64_t expected = rows_[(2 * to + 1) * ranks_ + from];
        if (sent == expected && sent >= 0) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("rank ", from, " has ", sent, " bytes for rank ", to,
                         ", which expects ", expected));
      }
    }
    return absl::OkStatus();
  }

  int64_t Largest() const {
    return *std::max_element(rows_.begin(), rows_.end());
  }

 private:
  const int ranks_;
  std::vector<int64_t> rows_;
};

// Returns how many bytes of a block belong to the round that begins at `begin`.
int64_t Share(int64_t bytes, int64_t begin, int64_t most) {
  return std::clamp<int64_t>(bytes - begin, 0, most);
}

}  // namespace

absl::Status ExchangeBlocks(Group* group, absl::Span<const ConstBlock> in,
                            absl::Span<const Block> out) {
  const int ranks = group->ranks();
  if (static_cast<int>(in.size()) != ranks ||
      static_cast<int>(out.size()) != ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        in.size(), " and ", out.size(), " blocks for ", ranks, " ranks"));
  }
  Sizes sizes(ranks);
  absl::Status status = sizes.Gather(group, in, out);
  if (status.ok()) status = sizes.Check();
  if (!status.ok()) return status;
  const int64_t largest = sizes.Largest();
  const int64_t most = std::min(largest, kRoundBytes / ranks);
  std::vector<uint8_t> sent(most * ranks);
  std::vector<uint8_t> received(most * ranks);
  for (int64_t begin = 0; begin < largest; begin += most) {
    for (int to = 0; to < ranks; ++to) {
      const int64_t share = Share(in[to].bytes, begin, most);
      if (share == 0) continue;
      std::memcpy(sent.data() + to * most,
                  static_cast<const uint8_t*>(in[to].data) + begin, share);
    }
    status = group->AllToAll(DType::kUint8, sent.data(), received.data(), most);
    if (!status.ok()) return status;
    for (int from = 0; from < ranks; ++from) {
      const int64_t share = Share(out[from].bytes, begin, most);
      if (share == 0) continue;
      std::memcpy(static_cast<uint8_t*>(out[from].data) + begin,
                  received.data() + from * most, share);
    }
  }
  return absl::OkStatus();
}

}  // namespace pytorch
}  // namespace penstock
