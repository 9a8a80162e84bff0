#include "tests/oracle/outcome.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::oracle {
namespace {

using oracle::ToText;

std::string Shortened(const std::string& text) {
  constexpr size_t kMost = 200;
  const std::string escaped = absl::CHexEscape(text.substr(0, kMost));
  if (text.size() <= kMost) return absl::StrCat("\"", escaped, "\"");
  return absl::StrCat("\"", escaped, "\" and so on, ", text.size(), " bytes");
}

std::string ToText(const Metadata& metadata) {
  std::string text = "{";
  for (const auto& each : metadata) {
    absl::StrAppend(&text, " ", each.first, ": ", Shortened(each.second));
  }
  return text + " }";
}

std::string ToText(const std::vector<Digest>& digests) {
  std::string text = absl::StrCat(digests.size(), " messages:");
  for (const Digest& each : digests) {
    absl::StrAppendFormat(&text, " %d (%04x)", each.size, each.sum & 0xffff);
  }
  return text;
}

std::string ToText(int number) { return absl::StrCat(number); }

bool IsSame(const grpc::Status& a, const grpc::Status& b) {
  return a.error_code() == b.error_code() &&
         a.error_message() == b.error_message() &&
         a.error_details() == b.error_details();
}
template <typename T>
bool IsSame(const T& a, const T& b) {
  return a == b;
}

class Comparison {
 public:
  Comparison(const std::string& a, const std::string& b) : a_(a), b_(b) {}

  template <typename T>
  void Add(const char* what, const T& a, const T& b) {
    if (IsSame(a, b)) return;
    absl::StrAppend(&text_, "  ", what, "\n    ", a_, ": ", ToText(a), "\n    ",
                    b_, ": ", ToText(b), "\n");
  }
  const std::string& text() const { return text_; }

 private:
  const std::string& a_;
  const std::string& b_;
  std::string text_;
};

}  // namespace

std::string ToText(const grpc::Status& status) {
  std::string text =
      absl::StrCat(status.error_code(), " ", Shortened(status.error_message()));
  if (!status.error_details().empty()) {
    absl::StrAppend(&text, ", details ", Shortened(status.error_details()));
  }
  return text;
}

std::string DifferenceOf(const std::string& a_name, const Outcome& a,
                         const std::string& b_name, const Outcome& b) {
  Comparison comparison(a_name, b_name);
  comparison.Add("the client's status", a.status, b.status);
  comparison.Add("initial metadata", a.initial, b.initial);
  comparison.Add("trailing metadata", a.trailing, b.trailing);
  comparison.Add("received by the client", a.received, b.received);
  comparison.Add("runs of the handler", a.runs, b.runs);
  comparison.Add("the client's metadata", a.client_metadata, b.client_metadata);
  comparison.Add("received by the server", a.server_received,
                 b.server_received);
  return comparison.text();
}

}  // namespace penstock::oracle
