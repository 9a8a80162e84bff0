#include "cli/top/http_get.h"

#include <curl/curl.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxBytes = 16 << 20;

size_t Append(char* bytes, size_t, size_t size, void* page) {
  auto* const text = static_cast<std::string*>(page);
  if (text->size() + size > kMaxBytes) return 0;  // aborts the transfer
  text->append(bytes, size);
  return size;
}

}  // namespace

absl::StatusOr<std::string> HttpGet(const std::string& url,
                                    absl::Duration limit) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(),
                                                    curl_easy_cleanup);
  if (curl == nullptr) return absl::ResourceExhaustedError("no memory");
  std::string page;
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(limit)));
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &page);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) {
    return absl::UnavailableError(absl::StrCat(
        url, ": ", reason[0] == '\0' ? curl_easy_strerror(code) : reason));
  }
  return page;
}

}  // namespace penstock::cli
