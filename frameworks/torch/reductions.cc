// Reductions, broadcast and barrier.

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

absl::Status Broadcast(Group* group, const at::Tensor& tensor, int root) {
  const Elements elements = Moved(tensor);
  const Packed packed(tensor);
  absl::Status status =
      group->Broadcast(elements.dtype, packed.data(), elements.count, root);
  if (status.ok()) packed.Unpack();
  return status;
}

absl::Status AllReduce(Group* group, const at::Tensor& tensor,
                       const Reduction& how) {
  const Packed packed(tensor);
  absl::Status status =
      group->AllReduce(how.op, how.dtype, packed.data(), packed.data(),
                       tensor.numel() * how.width);
  if (status.ok()) packed.Unpack();
  return status;
}

absl::Status ReduceScatter(Group* group, const at::Tensor& output,
                           const void* input, const Reduction& how) {
  const Packed to(output);
  absl::Status status = group->ReduceScatter(
      how.op, how.dtype, input, to.data(), output.numel() * how.width);
  if (status.ok()) to.Unpack();
  return status;
}

absl::Status ReduceScatterTensor(Group* group, const at::Tensor& output,
                                 const at::Tensor& input,
                                 const Reduction& how) {
  const at::Tensor apart = Overlap(input, output) ? input.clone() : input;
  const Packed from(apart);
  return ReduceScatter(group, output, from.data(), how);
}

}  // namespace

Backend::Work Backend::broadcast(Tensors& tensors,
                                 const c10d::BroadcastOptions& options) {
  const at::Tensor tensor = OnlyTensor("broadcast", tensors);
  const int root = static_cast<int>(options.rootRank);
  return Start(OpType::BROADCAST, "penstock:broadcast", IsAsync(options),
               tensors, tensors, [tensor, root](Group* group) {
                 return Broadcast(group, tensor, root);
               });
}

Backend::Work Backend::allreduce(Tensors& tensors,
                                 const c10d::AllreduceOptions& options) {
  const at::Tensor tensor = OnlyTensor("all_reduce", tensors);
  const Reduction how = ReductionOf("all_reduce", options.reduceOp, tensor);
  return Start(OpType::ALLREDUCE, "penstock:all_reduce", IsAsync(options),
               tensors, tensors, [tensor, how](Group* group) {
                 return AllReduce(group, tensor, how);
               });
}

Backend::Work Backend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  std::vector<Reduction> how;
  for (const at::Tensor& tensor : tensors) {
    CheckTensor("all_reduce_coalesced", tensor);
    how.push_back(
        ReductionOf("all_reduce_coalesced", options.reduceOp, tensor));
  }
  return Start(OpType::ALLREDUCE_COALESCED, "penstock:all_reduce",
               IsAsync(options), tensors, tensors,
               [tensors, how = std::move(how)](Group* group) {
                 absl::Status status;
                 for (size_t i = 0; i < tensors.size() && status.ok(); ++i) {
                   status = AllReduce(group, tensors[i], how[i]);
                 }
                 return status;
               });
}

Backend::Work Backend::reduce(Tensors& tensors,
                              const c10d::ReduceOptions& options) {
  const at::Tensor tensor = OnlyTensor("reduce", tensors);
  const Reduction how = ReductionOf("reduce", options.reduceOp, tensor);
  const int root = static_cast<int>(options.rootRank);
  return Start(OpType::REDUCE, "penstock:reduce", IsAsync(options), tensors,
               tensors, [tensor, how, root](Group* group) {
                 const Packed packed(tensor);
                 absl::Status status = group->Reduce(
                     how.op, how.dtype, packed.data(), packed.data(),
                     tensor.numel() * how.width, root);
                 if (status.ok() && group->rank() == root) packed.Unpack();
                 return status;
               });
}

Backend::Work Backend::reduce_scatter(
    Tensors& outputs, TensorLists& inputs,
    const c10d::ReduceScatterOptions& options) {
  const at::Tensor output = OnlyTensor("reduce_scatter", outputs);
  TORCH_CHECK(inputs.size() == 1, "penstock reduce_scatter takes one list");
  CheckList("reduce_scatter", inputs[0], getSize(), output);
  const Reduction how = ReductionOf("reduce_scatter", options.reduceOp, output);
  return Start(OpType::REDUCE_SCATTER, "penstock:reduce_scatter",
               IsAsync(options), inputs[0], outputs,
               [output, list = inputs[0], how](Group* group) {
                 const Flat from(list, output);
                 from.Pack();
                 return ReduceScatter(group, output, from.data(), how);
               });
}

Backend::Work Backend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input,
    const c10d::ReduceScatterOptions& options) {
  CheckTimes("reduce_scatter_tensor", input, output, getSize());
  const Reduction how =
      ReductionOf("reduce_scatter_tensor", options.reduceOp, output);
  return Start(OpType::_REDUCE_SCATTER_BASE, "penstock:_reduce_scatter_base",
               IsAsync(options), {input}, {output},
               [output, input, how](Group* group) {
                 return ReduceScatterTensor(group, output, input, how);
               });
}

Backend::Work Backend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs,
    const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK(outputs.size() == inputs.size(),
              "penstock reduce_scatter_tensor_coalesced has ", outputs.size(),
              " outputs for ", inputs.size(), " inputs");
  std::vector<Reduction> how;
  for (size_t i = 0; i < inputs.size(); ++i) {
    CheckTimes("reduce_scatter_tensor_coalesced", inputs[i], outputs[i],
               getSize());
    how.push_back(ReductionOf("reduce_scatter_tensor_coalesced",
                              options.reduceOp, outputs[i]));
  }
  return Start(
      kReduceScatterTensors, "penstock:reduce_scatter", IsAsync(options),
      inputs, outputs, [outputs, inputs, how = std::move(how)](Group* group) {
        absl::Status status;
        for (size_t i = 0; i < inputs.size() && status.ok(); ++i) {
          status = ReduceScatterTensor(group, outputs[i], inputs[i], how[i]);
        }
        return status;
      });
}

Backend::Work Backend::barrier(const c10d::BarrierOptions& options) {
  return Start(OpType::BARRIER, "penstock:barrier", IsAsync(options), {}, {},
               [](Group* group) { return group->Barrier(); });
}

}  // namespace pytorch
}  // namespace penstock
