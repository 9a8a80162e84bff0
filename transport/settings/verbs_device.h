// An RDMA device, or one port of it, as a setting names it.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_VERBS_DEVICE_H_
#define PENSTOCK_TRANSPORT_SETTINGS_VERBS_DEVICE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock {

struct VerbsDevice {
  std::string name;  // empty: any
  int port = 0;      // 0: any

  // "mlx5_0", "mlx5_0/1", or "" for any; none for what is not of this form.
  static absl::optional<VerbsDevice> Parse(absl::string_view text);
};

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_VERBS_DEVICE_H_
