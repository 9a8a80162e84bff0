// An RDMA device, or one port of it, as named in a setting.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_VERBS_DEVICE_H_
#define PENSTOCK_TRANSPORT_SETTINGS_VERBS_DEVICE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock {

struct VerbsDevice {
  std::string name;  // empty: any
  int port = 0;      // 0: any

  // Parses "mlx5_0", "mlx5_0/1", or "" for any. Returns nothing for text of
  // another form.
  static absl::optional<VerbsDevice> Parse(absl::string_view text);
};

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_VERBS_DEVICE_H_
