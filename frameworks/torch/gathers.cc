// Operations that gather tensors or scatter them.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/group.h"
#include "frameworks/torch/backend.h"
#include "frameworks/torch/releases.h"
#include "frameworks/torch/tensors.h"
#include "frameworks/torch/torch_headers.h"

namespace penstock {
namespace pytorch {
namespace {

using c10d::OpType;
using collectives::Group;

absl::Status AllGather(Group* group, const at::Tensor& output,
                       const at::Tensor& input) {
  const Elements elements = Moved(input);
  const Packed from(input);
  const Packed to(output);
  absl::Status status =
      group->AllGather(elements.dtype, from.data(), to.data(), elements.count);
  if (status.ok()) to.Unpack();
  return status;
}

absl::Status AllGatherList(Group* group, const std::vector<at::Tensor>& outputs,
                           const at::Tensor& input) {
  const Elements elements = Moved(input);
  const Packed from(input);
  const Flat to(outputs, input);
  absl::Status status =
      group->AllGather(elements.dtype, from.data(), to.data(), elements.count);
  if (status.ok()) to.Unpack();
  return status;
}

}  // namespace

Backend::Work Backend::allgather(TensorLists& outputs, Tensors& inputs,
                                 const c10d::AllgatherOptions& options) {
  const at::Tensor input = OnlyTensor("all_gather", inputs);
  TORCH_CHECK(outputs.size() == 1, "penstock all_gather takes one list");
  CheckList("all_gather", outputs[0], getSize(), input);
  return Start(OpType::ALLGATHER, "penstock:all_gather", IsAsync(options),
               inputs, outputs[0], [output = outputs[0], input](Group* group) {
                 return AllGatherList(group, output, input);
               });
}

Backend::Work Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                       const c10d::AllgatherOptions& options) {
  CheckTimes("all_gather_into_tensor", output, input, getSize());
  return Start(OpType::_ALLGATHER_BASE, "penstock:_all_gather_base",
               IsAsync(options), {input}, {output},
               [output, input](Group* group) {
                 return AllGather(group, output, input);
               });
}

Backend::Work Backend::allgather_coalesced(
    TensorLists& outputs, Tensors& inputs,
    const c10d::AllgatherOptions& options) {
  TORCH_CHECK(outputs.size() == static_cast<size_t>(getSize()),
              "penstock all_gather_coalesced has ", outputs.size(),
              " lists for ", getSize(), " ranks");
  TensorLists by_input(inputs.size());
  Tensors all;
  for (const Tensors& list : outputs) {
    TORCH_CHECK(list.size() == inputs.size(),
                "penstock all_gather_coalesced: ", "a list has ", list.size(),
                " tensors for ", inputs.size(), " inputs");
    for (size_t i = 0; i < list.size(); ++i) by_input[i].push_back(list[i]);
    all.insert(all.end(), list.begin(), list.end());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    CheckTensor("all_gather_coalesced", inputs[i]);
    CheckList("all_gather_coalesced", by_input[i], getSize(), inputs[i]);
  }
  return Start(OpType::ALLGATHER_COALESCED, "penstock:all_gather",
               IsAsync(options), inputs, std::move(all),
               [by_input = std::move(by_input), inputs](Group* group) {
                 absl::Status status;
                 for (size_t i = 0; i < inputs.size() && status.ok(); ++i) {
                   status = AllGatherList(group, by_input[i], inputs[i]);
                 }
                 return status;
               });
}

Backend::Work Backend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  TORCH_CHECK(outputs.size() == inputs.size(),
              "penstock all_gather_into_tensor_coalesced has ", outputs.size(),
              " outputs for ", inputs.size(), " inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    CheckTimes("all_gather_into_tensor_coalesced", outputs[i], inputs[i],
               getSize());
  }
  return Start(kAllGatherTensors, "penstock:all_gather", IsAsync(options),
               inputs, outputs, [outputs, inputs](Group* group) {
                 absl::Status status;
                 for (size_t i = 0; i < inputs.size() && status.ok(); ++i) {
                   status = AllGather(group, outputs[i], inputs[i]);
                 }
                 return status;
               });
}

Backend::Work Backend::gather(TensorLists& outputs, Tensors& inputs,
                              const c10d::GatherOptions& options) {
  const at::Tensor input = OnlyTensor("gather", inputs);
  const int root = static_cast<int>(options.rootRank);
  Tensors list;
  if (getRank() == root) {
    TORCH_CHECK(outputs.size() == 1, "penstock gather takes one list");
    CheckList("gather", outputs[0], getSize(), input);
    list = outputs[0];
  } else {
    TORCH_CHECK(outputs.empty() || outputs[0].empty(),
                "penstock gather: only the root has outputs");
  }
  return Start(OpType::GATHER, "penstock:gather", IsAsync(options), inputs,
               list, [list, input, root](Group* group) {
                 const Elements elements = Moved(input);
                 const Packed from(input);
                 if (list.empty()) {
                   return group->Gather(elements.dtype, from.data(), nullptr,
                                        elements.count, root);
                 }
                 const Flat to(list, input);
                 absl::Status status =
                     group->Gather(elements.dtype, from.data(), to.data(),
                                   elements.count, root);
                 if (status.ok()) to.Unpack();
                 return status;
               });
}

Backend::Work Backend::scatter(Tensors& outputs, TensorLists& inputs,
                               const c10d::ScatterOptions& options) {
  const at::Tensor output = OnlyTensor("scatter", outputs);
  const int root = static_cast<int>(options.rootRank);
  Tensors list;
  if (getRank() == root) {
    TORCH_CHECK(inputs.size() == 1, "penstock scatter takes one list");
    CheckList("scatter", inputs[0], getSize(), output);
    list = inputs[0];
  } else {
    TORCH_CHECK(inputs.empty() || inputs[0].empty(),
                "penstock scatter: only the root has inputs");
  }
  return Start(OpType::SCATTER, "penstock:scatter", IsAsync(options), list,
               outputs, [output, list, root](Group* group) {
                 const Elements elements = Moved(output);
                 const Packed to(output);
                 absl::Status status;
                 if (list.empty()) {
                   status = group->Scatter(elements.dtype, nullptr, to.data(),
                                           elements.count, root);
                 } else {
                   const Flat from(list, output);
                   from.Pack();
                   status = group->Scatter(elements.dtype, from.data(),
                                           to.data(), elements.count, root);
                 }
                 if (status.ok()) to.Unpack();
                 return status;
               });
}

}  // namespace pytorch
}  // namespace penstock
