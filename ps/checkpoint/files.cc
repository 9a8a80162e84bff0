#include "ps/checkpoint/files.h"

#include "absl/strings/str_cat.h"

namespace penstock::ps::checkpoint {

absl::Status WriteAll(WritableFile* file, absl::string_view bytes) {
  while (!bytes.empty()) {
    const absl::StatusOr<size_t> written = file->Write(bytes);
    if (!written.ok()) return written.status();
    if (*written == 0 || *written > bytes.size()) {
      return absl::InternalError("a write took nothing, without an error");
    }
    bytes.remove_prefix(*written);
  }
  return absl::OkStatus();
}

absl::Status ReadExactly(ReadableFile* file, uint64_t offset, char* to,
                         size_t size) {
  for (size_t done = 0; done < size;) {
    const absl::StatusOr<size_t> got =
        file->Read(offset + done, to + done, size - done);
    if (!got.ok()) return got.status();
    if (*got == 0) {
      return absl::DataLossError(absl::StrCat("ends at byte ", offset + done,
                                              ", ", size - done,
                                              " bytes too early"));
    }
    done += *got;
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps::checkpoint
