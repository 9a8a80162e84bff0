// c10d's Store as the board of a rendezvous.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_STORE_BOARD_H_
#define PENSTOCK_FRAMEWORKS_TORCH_STORE_BOARD_H_

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "frameworks/torch/rendezvous.h"
#include "frameworks/torch/torch_headers.h"

namespace penstock {
namespace pytorch {

class StoreBoard final : public Board {
 public:
  explicit StoreBoard(const c10::intrusive_ptr<c10d::Store>& store)
      : store_(store) {}

  absl::Status Set(const std::string& key, const std::string& value) override {
    try {
      store_->set(key, std::vector<uint8_t>(value.begin(), value.end()));
    } catch (const std::exception& error) {
      return Failed("set", key, error);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Count(const std::string& key) override {
    try {
      return store_->add(key, 1);
    } catch (const std::exception& error) {
      return Failed("add to", key, error);
    }
  }

  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override {
    try {
      store_->wait({key}, absl::ToChronoMilliseconds(timeout));
      const std::vector<uint8_t> value = store_->get(key);
      return std::string(value.begin(), value.end());
    } catch (const std::exception& error) {
      return Failed("get", key, error);
    }
  }

  // Returns the host of the store, as all ranks name it, or nothing if the
  // store has none, such as a file.
  std::string Host() const {
    c10::intrusive_ptr<c10d::Store> store = store_;
    if (auto* prefix = dynamic_cast<c10d::PrefixStore*>(store.get())) {
      store = prefix->getUnderlyingNonPrefixStore();
    }
    if (const auto* tcp = dynamic_cast<c10d::TCPStore*>(store.get())) {
      return tcp->getHost();
    }
    const char* const master = getenv("MASTER_ADDR");
    return master == nullptr ? "" : master;
  }

 private:
  static absl::Status Failed(const char* call, const std::string& key,
                             const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("the Store cannot ", call, " '",
                                               key, "': ", error.what()));
  }

  const c10::intrusive_ptr<c10d::Store>& store_;
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_STORE_BOARD_H_
