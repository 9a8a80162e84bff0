#include "collectives/call.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::collectives {
namespace {

bool Reduces(Operation operation) {
  return operation == Operation::kAllReduce ||
         operation == Operation::kReduceScatter ||
         operation == Operation::kReduce;
}

bool HasRoot(Operation operation) {
  return operation == Operation::kBroadcast ||
         operation == Operation::kReduce || operation == Operation::kGather ||
         operation == Operation::kScatter;
}

}  // namespace

CallWords Encode(const Call& call) {
  return {static_cast<uint64_t>(call.operation) |
              static_cast<uint64_t>(call.op) << 8 |
              static_cast<uint64_t>(call.dtype) << 16 |
              static_cast<uint64_t>(call.root) << 32,
          static_cast<uint64_t>(call.count)};
}

std::string Describe(const CallWords& words) {
  const auto operation = static_cast<int>(words[0] & 0xFF);
  const auto op = static_cast<int>(words[0] >> 8 & 0xFF);
  const auto dtype = static_cast<int>(words[0] >> 16 & 0xFFFF);
  if (operation > static_cast<int>(Operation::kBarrier) ||
      op > static_cast<int>(ReduceOp::kXor) || !tensor::IsDType(dtype)) {
    return "an unknown operation";
  }
  const auto kind = static_cast<Operation>(operation);
  std::string text(Name(kind));
  if (kind == Operation::kBarrier) return text;
  if (Reduces(kind)) {
    absl::StrAppend(&text, " (", Name(static_cast<ReduceOp>(op)), ")");
  }
  absl::StrAppend(&text, " of ", words[1], " ",
                  tensor::Name(static_cast<tensor::DType>(dtype)));
  if (HasRoot(kind)) absl::StrAppend(&text, " with root ", words[0] >> 32);
  return text;
}

}  // namespace penstock::collectives
