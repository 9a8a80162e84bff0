// Exchanges of all ranks with all ranks.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/group.h"
#include "frameworks/torch/backend.h"
#include "frameworks/torch/blocks.h"
#include "frameworks/torch/releases.h"
#include "frameworks/torch/tensors.h"
#include "frameworks/torch/torch_headers.h"

namespace penstock {
namespace pytorch {
namespace {

using c10d::OpType;
using collectives::Group;

// Returns the number of bytes of a tensor that each rank gets. The tensor is
// divided along its first dimension: by `sizes`, or into equal parts.
std::vector<int64_t> PartsOf(const char* operation, const at::Tensor& tensor,
                             const std::vector<int64_t>& sizes, int ranks) {
  const int64_t rows = tensor.dim() == 0 ? 0 : tensor.size(0);
  if (sizes.empty()) {
    TORCH_CHECK(rows % ranks == 0, "penstock ", operation, ": ", rows,
                " rows cannot be divided into ", ranks, " equal parts");
    return std::vector<int64_t>(ranks,
                                static_cast<int64_t>(tensor.nbytes()) / ranks);
  }
  TORCH_CHECK(sizes.size() == static_cast<size_t>(ranks), "penstock ",
              operation, " has ", sizes.size(), " sizes for ", ranks, " ranks");
  const int64_t row =
      rows == 0 ? 0 : static_cast<int64_t>(tensor.nbytes()) / rows;
  int64_t sum = 0;
  std::vector<int64_t> bytes;
  for (const int64_t size : sizes) {
    TORCH_CHECK(size >= 0, "penstock ", operation, ": a size is negative");
    sum += size;
    bytes.push_back(size * row);
  }
  TORCH_CHECK(sum == rows, "penstock ", operation, ": the sizes are ", sum,
              " rows together, and the tensor has ", rows);
  return bytes;
}

template <typename BlockType>
std::vector<BlockType> BlocksOf(void* data, const std::vector<int64_t>& bytes) {
  std::vector<BlockType> blocks;
  char* next = static_cast<char*>(data);
  for (const int64_t part : bytes) {
    blocks.push_back({next, part});
    next += part;
  }
  return blocks;
}

}  // namespace

Backend::Work Backend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                     std::vector<int64_t>& output_sizes,
                                     std::vector<int64_t>& input_sizes,
                                     const c10d::AllToAllOptions& options) {
  CheckTensor("all_to_all_single", output);
  CheckTensor("all_to_all_single", input);
  TORCH_CHECK(output.scalar_type() == input.scalar_type(),
              "penstock all_to_all_single: input and output have different "
              "types");
  std::vector<int64_t> received =
      PartsOf("all_to_all_single", output, output_sizes, getSize());
  std::vector<int64_t> sent =
      PartsOf("all_to_all_single", input, input_sizes, getSize());
  const bool even = output_sizes.empty() && input_sizes.empty();
  TORCH_CHECK(!even || output.numel() == input.numel(),
              "penstock all_to_all_single: input and output differ in size");
  return Start(
      OpType::ALLTOALL_BASE, "penstock:all_to_all", IsAsync(options), {input},
      {output},
      [output, input, even, received = std::move(received),
       sent = std::move(sent)](Group* group) {
        const at::Tensor apart = Overlap(input, output) ? input.clone() : input;
        const Packed from(apart);
        const Packed to(output);
        absl::Status status;
        if (even) {
          const Elements elements = Moved(input);
          status = group->AllToAll(elements.dtype, from.data(), to.data(),
                                   elements.count / group->ranks());
        } else {
          status =
              ExchangeBlocks(group, BlocksOf<ConstBlock>(from.data(), sent),
                             BlocksOf<Block>(to.data(), received));
        }
        if (status.ok()) to.Unpack();
        return status;
      });
}

Backend::Work Backend::alltoall(Tensors& outputs, Tensors& inputs,
                                const c10d::AllToAllOptions& options) {
  const auto size = static_cast<size_t>(getSize());
  TORCH_CHECK(outputs.size() == size && inputs.size() == size,
              "penstock all_to_all has lists of ", inputs.size(), " and ",
              outputs.size(), " tensors for ", size, " ranks");
  for (const at::Tensor& tensor : inputs) CheckTensor("all_to_all", tensor);
  for (const at::Tensor& tensor : outputs) CheckTensor("all_to_all", tensor);
  return Start(
      OpType::ALLTOALL, "penstock:all_to_all", IsAsync(options), inputs,
      outputs, [outputs, inputs](Group* group) {
        std::vector<Packed> from(inputs.begin(), inputs.end());
        std::vector<Packed> to(outputs.begin(), outputs.end());
        std::vector<ConstBlock> sent;
        std::vector<Block> received;
        for (const Packed& packed : from) {
          sent.push_back(
              {packed.data(), static_cast<int64_t>(packed.tensor().nbytes())});
        }
        for (const Packed& packed : to) {
          received.push_back(
              {packed.data(), static_cast<int64_t>(packed.tensor().nbytes())});
        }
        absl::Status status = ExchangeBlocks(group, sent, received);
        for (const Packed& packed : to) {
          if (status.ok()) packed.Unpack();
        }
        return status;
      });
}

}  // namespace pytorch
}  // namespace penstock
