// The probe of the Python programs that `penstock run` can carry.

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/doctor/probes.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr char kGroup[] = "Process";
constexpr char kSubject[] = "Python";
constexpr char kRemedy[] = "install penstock-tools again, or build //cli";
constexpr size_t kMaxTextBytes = 100;

// Returns the first name in `folder` that begins with `beginning`, or an empty
// string.
std::string Find(const Files& files, const std::string& folder,
                 const std::string& beginning) {
  for (const std::string& name : files.List(folder)) {
    if (absl::StartsWith(name, beginning)) return name;
  }
  return "";
}

}  // namespace

Findings ProbePython(const Host& host) {
  if (host.preload_folder.empty()) {
    return {{kGroup, kSubject, Level::kNote,
             "penstock run has no library to preload", kRemedy}};
  }
  const std::string folder = absl::StrCat(host.preload_folder, "/python");
  const std::string package = absl::StrCat(folder, "/penstock");
  const std::string module = Find(host.files, folder, "cygrpc.");
  std::vector<std::string> missing;
  if (module.empty()) {
    missing.push_back("grpcio 1.51.1, because cygrpc is missing");
  }
  if (Find(host.files, package, "_rpc.").empty() ||
      !host.files.Exists(absl::StrCat(package, "/grpc/_run.py"))) {
    missing.push_back("other grpcio, because penstock.grpc is missing");
  }
  if (missing.empty()) {
    return {{kGroup, kSubject, Level::kOk,
             absl::StrCat("penstock run carries any grpcio of the Python of ",
                          base::Printable(module, kMaxTextBytes)),
             ""}};
  }
  Findings findings;
  for (const std::string& what : missing) {
    findings.push_back(
        {kGroup, kSubject, Level::kNote,
         absl::StrCat("penstock run does not carry ", what, " in ", folder),
         kRemedy});
  }
  return findings;
}

}  // namespace penstock::cli
