#include "collectives/letter.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "collectives/call.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {
namespace {

std::string Elements(const CallWords& words) {
  const auto dtype = static_cast<int>(words[0] & 0xFF);
  if (words[0] > 0xFF || !tensor::IsDType(dtype)) return "an unknown type";
  return absl::StrCat(words[1], " ",
                      tensor::Name(static_cast<tensor::DType>(dtype)));
}

}  // namespace

CallWords Encode(const Letter& letter) {
  return {static_cast<uint64_t>(letter.dtype),
          static_cast<uint64_t>(letter.count)};
}

std::string DescribeMismatch(const CallWords& sent, const Letter& wanted,
                             int receiver) {
  return absl::StrCat("rank ", wanted.peer, " sends ", Elements(sent),
                      " with tag ", wanted.tag, ", rank ", receiver,
                      " receives ", Elements(Encode(wanted)));
}

}  // namespace penstock::collectives
