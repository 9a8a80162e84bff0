#include "python/collectives/words.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::python {
namespace {

using collectives::Operation;
using collectives::ReduceOp;
using tensor::DType;

// Finds a word among the words of the enumerators `first` to `last`.
template <typename Enum>
absl::StatusOr<Enum> Find(absl::string_view title, absl::string_view word,
                          Enum first, Enum last) {
  std::string words;
  for (int i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
    const absl::string_view name = Name(static_cast<Enum>(i));
    if (name == word) return static_cast<Enum>(i);
    absl::StrAppend(&words, words.empty() ? "" : ", ", name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(title, " is '", word, "', expected one of: ", words));
}

}  // namespace

absl::StatusOr<Operation> ParseOperation(absl::string_view word) {
  return Find("operation", word, Operation::kAllReduce, Operation::kBarrier);
}

absl::StatusOr<ReduceOp> ParseReduceOp(absl::string_view word) {
  return Find("op", word, ReduceOp::kSum, ReduceOp::kXor);
}

absl::StatusOr<DType> ParseType(absl::string_view word) {
  return Find("type", word, DType::kF32, DType::kBool);
}

}  // namespace penstock::python
