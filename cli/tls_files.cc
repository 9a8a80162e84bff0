#include "cli/tls_files.h"

#include <algorithm>
#include <fstream>
#include <ios>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/pem.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr std::streamsize kMaxFileBytes = 16 << 20;
constexpr size_t kMaxTextBytes = 400;

// Returns a file's text, up to 16 MiB. The error names the file.
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes, '\0');
  file.read(text.data(), kMaxFileBytes);
  text.resize(std::max<std::streamsize>(file.gcount(), 0));
  if (file.bad() || text.empty()) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", base::Printable(path, kMaxTextBytes),
                     ", or it is empty"));
  }
  return text;
}

absl::Status CheckTexts(const TlsFiles& files, const TlsTexts& texts) {
  absl::Status status;
  if (!files.ca.empty()) {
    status = ps::CheckAuthorities({files.ca, texts.ca});
  }
  if (status.ok() && !files.cert.empty()) {
    status = ps::CheckPair({files.cert, texts.cert}, {files.key, texts.key});
  }
  return {status.code(), base::Printable(status.message(), 2 * kMaxTextBytes)};
}

}  // namespace

absl::Status TlsFiles::Check() const {
  if (cert.empty() != key.empty()) {
    return absl::InvalidArgumentError(
        "--cert and --key belong together: give both");
  }
  return absl::OkStatus();
}

absl::StatusOr<TlsTexts> TlsFiles::Read() const {
  TlsTexts texts;
  for (const auto& [path, text] :
       {std::pair{&ca, &texts.ca}, std::pair{&cert, &texts.cert},
        std::pair{&key, &texts.key}}) {
    if (path->empty()) continue;
    absl::StatusOr<std::string> read = ReadFile(*path);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  const absl::Status good = CheckTexts(*this, texts);
  if (!good.ok()) return good;
  return texts;
}

}  // namespace penstock::cli
