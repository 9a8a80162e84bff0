#include "transport/penstock.h"

#include <ostream>

namespace penstock {
void Enable(grpc::ServerBuilder*, const Options&) {}
std::shared_ptr<grpc::ChannelCredentials> Credentials(
    std::shared_ptr<grpc::ChannelCredentials> credentials, const Options&) {
  return credentials;
}
std::string PathReport::ToString() const { return path; }
std::vector<PathReport> DescribePaths(grpc::Channel&) { return {}; }
std::ostream& operator<<(std::ostream& out, const PathReport& report) {
  return out << report.ToString();
}
}  // namespace penstock
