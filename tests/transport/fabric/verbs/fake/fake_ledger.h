// Records living objects and misuse.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_LEDGER_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_LEDGER_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace fabric {
namespace verbs {

class FakeLedger {
 public:
  // Records a new object. `kind` is a literal: "ibv_pd".
  void Made(absl::string_view kind, const void* object) {
    living_[object] = std::string(kind);
  }
  // Returns true if the object lives. Otherwise records the misuse.
  bool IsAlive(absl::string_view kind, const void* object) {
    const auto found = living_.find(object);
    if (found != living_.end() && found->second == kind) return true;
    Misused(absl::StrCat("use of a ", kind, " that does not exist"));
    return false;
  }
  void Ended(const void* object) { living_.erase(object); }
  int CountOf(absl::string_view kind) const {
    int count = 0;
    for (const auto& entry : living_) count += entry.second == kind;
    return count;
  }
  // Returns lines such as "2 ibv_mr alive".
  std::vector<std::string> Living() const {
    std::map<std::string, int> kinds;
    for (const auto& entry : living_) ++kinds[entry.second];
    std::vector<std::string> lines;
    for (const auto& kind : kinds) {
      lines.push_back(absl::StrCat(kind.second, " ", kind.first, " alive"));
    }
    return lines;
  }

  void Misused(std::string what) { misuse_.push_back(std::move(what)); }
  const std::vector<std::string>& misuse() const { return misuse_; }

 private:
  std::map<const void*, std::string> living_;
  std::vector<std::string> misuse_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_LEDGER_H_
