#include "collectives/group.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "collectives/call.h"
#include "collectives/elements.h"
#include "collectives/letter.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/plan.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

// Limits the bytes of a buffer. No address space has more. Therefore the number
// of parts of a message always fits into a uint32_t.
constexpr int64_t kMostBytes = int64_t{1} << 47;

absl::Status CheckApart(const void* in, size_t in_bytes, const void* out,
                        size_t out_bytes) {
  const auto a = reinterpret_cast<uintptr_t>(in);
  const auto b = reinterpret_cast<uintptr_t>(out);
  if (a + in_bytes <= b || b + out_bytes <= a) return absl::OkStatus();
  return absl::InvalidArgumentError("input and output overlap");
}

// Returns OK if `part` is at `place`, or does not overlap any of `bytes`.
absl::Status CheckPlaceOrApart(const void* part, size_t part_bytes,
                               const void* place, const void* whole,
                               size_t bytes) {
  return part == place ? absl::OkStatus()
                       : CheckApart(part, part_bytes, whole, bytes);
}

}  // namespace

absl::Status Group::CheckCall(const Call& call, int blocks) const {
  const int64_t most = kMostBytes / blocks /
                       static_cast<int64_t>(tensor::ElementSize(call.dtype));
  if (call.count < 0 || call.count > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("count is ", call.count, ", expected 0 to ", most));
  }
  if (call.root < 0 || call.root >= ranks()) {
    return absl::InvalidArgumentError(
        absl::StrCat("root is ", call.root, ", expected 0 to ", ranks() - 1));
  }
  return CheckReduction(call.op, call.dtype);
}

absl::Status Group::AllReduce(ReduceOp op, DType dtype, const void* in,
                              void* out, int64_t count) {
  const Call call = {Operation::kAllReduce, op, dtype, 0, count};
  absl::Status status = CheckCall(call, 1);
  if (!status.ok()) return status;
  const size_t bytes = BytesOf(dtype, count);
  status = CheckPlaceOrApart(in, bytes, out, out, bytes);
  return status.ok() ? Run(call, in, out) : status;
}

absl::Status Group::Reduce(ReduceOp op, DType dtype, const void* in, void* out,
                           int64_t count, int root) {
  const Call call = {Operation::kReduce, op, dtype, root, count};
  absl::Status status = CheckCall(call, 1);
  if (!status.ok()) return status;
  if (rank() != root) return Run(call, in, nullptr);
  const size_t bytes = BytesOf(dtype, count);
  status = CheckPlaceOrApart(in, bytes, out, out, bytes);
  return status.ok() ? Run(call, in, out) : status;
}

absl::Status Group::ReduceScatter(ReduceOp op, DType dtype, const void* in,
                                  void* out, int64_t count) {
  const Call call = {Operation::kReduceScatter, op, dtype, 0, count};
  absl::Status status = CheckCall(call, ranks());
  if (!status.ok()) return status;
  const size_t bytes = BytesOf(dtype, count);
  status = CheckApart(in, bytes * ranks(), out, bytes);
  return status.ok() ? Run(call, in, out) : status;
}

absl::Status Group::AllGather(DType dtype, const void* in, void* out,
                              int64_t count) {
  const Call call = {Operation::kAllGather, ReduceOp::kMax, dtype, 0, count};
  absl::Status status = CheckCall(call, ranks());
  if (!status.ok()) return status;
  const size_t bytes = BytesOf(dtype, count);
  status = CheckPlaceOrApart(in, bytes, At(out, rank() * count, dtype), out,
                             bytes * ranks());
  return status.ok() ? Run(call, in, out) : status;
}

absl::Status Group::Gather(DType dtype, const void* in, void* out,
                           int64_t count, int root) {
  const Call call = {Operation::kGather, ReduceOp::kMax, dtype, root, count};
  absl::Status status = CheckCall(call, ranks());
  if (!status.ok()) return status;
  if (rank() != root) return Run(call, in, nullptr);
  const size_t bytes = BytesOf(dtype, count);
  status = CheckPlaceOrApart(in, bytes, At(out, rank() * count, dtype), out,
                             bytes * ranks());
  return status.ok() ? Run(call, in, out) : status;
}

absl::Status Group::Scatter(DType dtype, const void* in, void* out,
                            int64_t count, int root) {
  const Call call = {Operation::kScatter, ReduceOp::kMax, dtype, root, count};
  absl::Status status = CheckCall(call, ranks());
  if (!status.ok()) return status;
  if (rank() != root) return Run(call, nullptr, out);
  const size_t bytes = BytesOf(dtype, count);
  status = CheckPlaceOrApart(out, bytes, At(in, root * count, dtype), in,
                             bytes * ranks());
  return status.ok() ? Run(call, in, out) : status;
}

absl::Status Group::Broadcast(DType dtype, void* data, int64_t count,
                              int root) {
  const Call call = {Operation::kBroadcast, ReduceOp::kMax, dtype, root, count};
  absl::Status status = CheckCall(call, 1);
  return status.ok() ? Run(call, data, data) : status;
}

absl::Status Group::AllToAll(DType dtype, const void* in, void* out,
                             int64_t count) {
  const Call call = {Operation::kAllToAll, ReduceOp::kMax, dtype, 0, count};
  absl::Status status = CheckCall(call, ranks());
  if (!status.ok()) return status;
  const size_t bytes = BytesOf(dtype, count) * ranks();
  status = CheckApart(in, bytes, out, bytes);
  return status.ok() ? Run(call, in, out) : status;
}

absl::Status Group::CheckLetter(const Letter& letter) const {
  absl::Status status = CheckCall(
      {Operation::kBroadcast, ReduceOp::kMax, letter.dtype, 0, letter.count},
      1);
  if (!status.ok()) return status;
  if (letter.peer < 0 || letter.peer >= ranks() || letter.peer == rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the other rank is ", letter.peer, ", expected 0 to ",
                     ranks() - 1, " without ", rank()));
  }
  return absl::OkStatus();
}

absl::Status Group::Send(DType dtype, const void* data, int64_t count, int to,
                         uint32_t tag) {
  const Letter letter = {dtype, count, to, tag};
  const absl::Status status = CheckLetter(letter);
  return status.ok() ? SendLetter(letter, data) : status;
}

absl::Status Group::Receive(DType dtype, void* data, int64_t count, int from,
                            uint32_t tag) {
  const Letter letter = {dtype, count, from, tag};
  const absl::Status status = CheckLetter(letter);
  return status.ok() ? ReceiveLetter(letter, data) : status;
}

absl::Status Group::Barrier() { return Run(Call(), nullptr, nullptr); }

}  // namespace penstock::collectives
