#include "transport/base/join_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock {
namespace base {

std::string JoinWords(absl::Span<const absl::string_view> words,
                      absl::string_view last) {
  const size_t most = words.size() - 1;
  return absl::StrCat(absl::StrJoin(words.first(most), ", "), " ", last, " ",
                      words[most]);
}

}  // namespace base
}  // namespace penstock
