#include "transport/metrics/labels.h"

#include <algorithm>

namespace penstock {
namespace metrics {
namespace {

struct Texts {
  absl::string_view name;
  absl::Span<const absl::string_view> values;
};

constexpr absl::string_view kRoles[] = {"client", "server"};
constexpr absl::string_view kPathNames[] = {"shm", "verbs", "tcp", "http2",
                                            "other"};
constexpr absl::string_view kFabricNames[] = {"shm", "verbs", "tcp", "other"};
constexpr absl::string_view kKindNames[] = {"eager", "announced"};
constexpr absl::string_view kDirectionNames[] = {"sent", "received"};
constexpr absl::string_view kReasons[] = {
    "none",        "not_enabled",      "unusable_here",
    "not_offered", "unusable_at_peer", "setup_failed",
    "lost",        "stock_peer",       "flood"};
constexpr absl::string_view kRefusals[] = {"stock_peer", "flood", "token",
                                           "version"};
constexpr absl::string_view kEnds[] = {"closed", "timeout", "error"};
constexpr absl::string_view kBudgets[] = {"replies", "answers", "outbox",
                                          "unread", "read"};
constexpr absl::string_view kPools[] = {"shm", "verbs"};
constexpr absl::string_view kCompletions[] = {
    "loc_len_err",    "loc_qp_op_err",    "loc_prot_err",   "wr_flush_err",
    "mw_bind_err",    "bad_resp_err",     "loc_access_err", "rem_inv_req_err",
    "rem_access_err", "rem_op_err",       "retry_exc_err",  "rnr_retry_exc_err",
    "rem_abort_err",  "resp_timeout_err", "fatal_err",      "general_err",
    "other"};

// The names and values of the labels, in the order of Label.
constexpr Texts kLabels[] = {
    {"role", kRoles},
    {"path", kPathNames},
    {"path", kFabricNames},
    {"kind", kKindNames},
    {"direction", kDirectionNames},
    {"reason", kReasons},
    {"reason", kRefusals},
    {"end", kEnds},
    {"budget", kBudgets},
    {"pool", kPools},
    {"status", kCompletions},
};

template <typename Enum>
absl::optional<Enum> Find(Label label, absl::string_view name) {
  const absl::Span<const absl::string_view> values = ValuesOf(label);
  const auto it = std::find(values.begin(), values.end(), name);
  if (it == values.end()) return absl::nullopt;
  return static_cast<Enum>(it - values.begin());
}

}  // namespace

absl::string_view NameOf(Label label) {
  return kLabels[static_cast<int>(label)].name;
}

absl::Span<const absl::string_view> ValuesOf(Label label) {
  return kLabels[static_cast<int>(label)].values;
}

absl::string_view NameOf(Role role) { return kRoles[static_cast<int>(role)]; }

absl::optional<Role> RoleOf(absl::string_view name) {
  return Find<Role>(Label::kRole, name);
}

Fabric FabricOf(absl::string_view name) {
  return Find<Fabric>(Label::kFabric, name).value_or(Fabric::kOther);
}

Path PathOf(absl::string_view name) {
  return Find<Path>(Label::kPath, name).value_or(Path::kOther);
}

}  // namespace metrics
}  // namespace penstock
