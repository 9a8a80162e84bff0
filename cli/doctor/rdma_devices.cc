// Probes of RDMA devices and their ports, from /sys and the survey.

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/doctor/probes.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

using fabric::verbs::LocalAddress;

constexpr char kGroup[] = "RDMA";
constexpr char kDevices[] = "/sys/class/infiniband";
constexpr size_t kMaxNameBytes = 40;
// The largest packet payload of RoCE and InfiniBand.
constexpr int kMaxMtu = 4096;

std::string Name(absl::string_view text) {
  return base::Printable(text, kMaxNameBytes);
}

// One port, with its folder in /sys.
struct Port {
  std::string device;
  std::string number;
  std::string folder;
  std::string interface;  // with the port's addresses; may be empty

  std::string Subject() const {
    return absl::StrCat(Name(device), "/", Name(number));
  }
};

// Returns the driver, and the interface below a software device.
std::string DriverOf(const Files& files, const std::string& device) {
  const std::string folder = absl::StrCat(kDevices, "/", device);
  const std::string parent = files.Line(absl::StrCat(folder, "/parent"));
  std::string text = files.LinkName(absl::StrCat(folder, "/device/driver"));
  if (text.empty() && !parent.empty()) {
    text = absl::StrCat("software, on ", parent);
  }
  const std::string firmware = files.Line(absl::StrCat(folder, "/fw_ver"));
  if (!firmware.empty() && parent.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "firmware ", firmware);
  }
  return text;
}

std::string InterfaceOf(const Files& files, const std::string& port_folder) {
  const std::string folder = absl::StrCat(port_folder, "/gid_attrs/ndevs");
  for (const std::string& gid : files.List(folder)) {
    std::string line = files.Line(absl::StrCat(folder, "/", gid));
    if (!line.empty()) return line;
  }
  return "";
}

// Counts the GIDs in use: an unused table entry is all zeros.
int CountGids(const Files& files, const std::string& port_folder) {
  int count = 0;
  const std::string folder = absl::StrCat(port_folder, "/gids");
  for (const std::string& gid : files.List(folder)) {
    const std::string line = files.Line(absl::StrCat(folder, "/", gid));
    if (line.find_first_not_of("0:") != std::string::npos) ++count;
  }
  return count;
}

std::vector<const LocalAddress*> AddressesOf(const Host& host,
                                             const Port& port) {
  std::vector<const LocalAddress*> found;
  if (!host.rdma.ok()) return found;
  for (const LocalAddress& each : *host.rdma) {
    if (each.device == port.device && absl::StrCat(each.port) == port.number) {
      found.push_back(&each);
    }
  }
  return found;
}

// Returns "ACTIVE" for "4: ACTIVE".
std::string StateOf(const Files& files, const Port& port) {
  const std::string line = files.Line(absl::StrCat(port.folder, "/state"));
  const size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

Finding Down(const Host& host, const Port& port, const std::string& state) {
  const bool is_infiniband =
      host.files.Line(absl::StrCat(port.folder, "/link_layer")) == "InfiniBand";
  std::string remedy;
  if (is_infiniband && state == "INIT") {
    remedy = "start a subnet manager (opensm) on this fabric";
  } else if (port.interface.empty()) {
    remedy = "check the cable and the switch, then: rdma link";
  } else {
    remedy = absl::StrCat("ip link set ", port.interface,
                          " up; check the cable and the switch");
  }
  return {kGroup, port.Subject(), Level::kProblem,
          absl::StrCat("the port is ", state.empty() ? "unreadable" : state,
                       ", not ACTIVE"),
          remedy};
}

std::string RemedyWithoutAddress(const Port& port) {
  if (port.interface.empty()) {
    return "give the port's network interface an IP address (see: rdma link)";
  }
  return absl::StrCat("ip address add ADDRESS/PREFIX dev ", port.interface);
}

int MtuOf(const std::string& description) {
  const size_t at = description.rfind("mtu ");
  int mtu = 0;
  if (at == std::string::npos ||
      !absl::SimpleAtoi(description.substr(at + 4), &mtu)) {
    return 0;
  }
  return mtu;
}

// Reports the survey's choice on this port. The connection manager binds an IP
// address, which determines the GID.
Finding Chosen(const Host& host, const Port& port, const LocalAddress& local) {
  absl::string_view rest = local.description;
  absl::ConsumePrefix(&rest, absl::StrCat(port.Subject(), ", "));
  std::string text = absl::StrCat(local.address, ": ", rest);
  const std::string rate = host.files.Line(absl::StrCat(port.folder, "/rate"));
  // Omits the rate of a software device, which reports an arbitrary rate.
  const bool is_software =
      host.files.Exists(absl::StrCat(kDevices, "/", port.device, "/parent"));
  if (!rate.empty() && !is_software) absl::StrAppend(&text, ", ", rate);
  const int gids = CountGids(host.files, port.folder);
  if (gids > 1) {
    absl::StrAppend(&text, "; of the port's ", gids,
                    " GIDs, that of this address");
  }
  Finding finding{kGroup, port.Subject(), Level::kOk, text, ""};
  const int mtu = MtuOf(local.description);
  if (mtu > 0 && mtu < kMaxMtu && !port.interface.empty() &&
      absl::StrContains(rest, "RoCE")) {
    finding.level = Level::kNote;
    finding.remedy = absl::StrCat(
        "larger packets, if the network carries them: ip link set ",
        port.interface, " mtu 4200 (or 9000), on all machines and switches");
  }
  return finding;
}

Finding WindowsOf(const Port& port, const LocalAddress& local) {
  if (local.windows.ok()) {
    return {kGroup, port.Subject(), Level::kOk,
            "memory windows hold: large messages are sent without a copy", ""};
  }
  return {kGroup, port.Subject(), Level::kNote,
          absl::StrCat("large messages are copied before they are sent: ",
                       local.windows.message()),
          ""};
}

Findings ProbePort(const Host& host, const Port& port) {
  const std::string state = StateOf(host.files, port);
  if (state != "ACTIVE") return {Down(host, port, state)};
  const std::vector<const LocalAddress*> addresses = AddressesOf(host, port);
  Findings findings;
  for (const LocalAddress* each : addresses) {
    findings.push_back(Chosen(host, port, *each));
  }
  if (!addresses.empty()) {
    findings.push_back(WindowsOf(port, *addresses.front()));
  } else if (host.rdma.ok()) {
    findings.push_back({kGroup, port.Subject(), Level::kNote,
                        "no address of this port is used",
                        RemedyWithoutAddress(port)});
  }
  return findings;
}

// Returns an interface that could carry a software device.
std::string AnInterface(const Files& files) {
  for (const std::string& name : files.List("/sys/class/net")) {
    const std::string folder = absl::StrCat("/sys/class/net/", name);
    if (files.Line(absl::StrCat(folder, "/operstate")) == "up" &&
        files.Exists(absl::StrCat(folder, "/device"))) {
      return Name(name);
    }
  }
  return "eth0";
}

// Returns true if there is an adapter of Mellanox (now NVIDIA) without a
// driver, which therefore is not among the RDMA devices.
bool HasUndrivenAdapter(const Files& files) {
  for (const std::string& name : files.List("/sys/bus/pci/devices")) {
    const std::string folder = absl::StrCat("/sys/bus/pci/devices/", name);
    if (files.Line(absl::StrCat(folder, "/vendor")) == "0x15b3" &&
        absl::StartsWith(files.Line(absl::StrCat(folder, "/class")), "0x02")) {
      return true;
    }
  }
  return false;
}

Finding NoDevice(const Host& host) {
  if (HasUndrivenAdapter(host.files)) {
    return {kGroup, "devices", Level::kProblem,
            "a Mellanox adapter is on the bus, but it is no RDMA device",
            "modprobe mlx5_ib (mlx4_ib for ConnectX-3)"};
  }
  return {kGroup, "devices", Level::kNote, "none here",
          absl::StrCat("an adapter needs its driver; to try RDMA without one: ",
                       "rdma link add rxe0 type rxe netdev ",
                       AnInterface(host.files))};
}

}  // namespace

Findings ProbeDevices(const Host& host) {
  const std::vector<std::string> devices = host.files.List(kDevices);
  if (devices.empty()) return {NoDevice(host)};
  Findings findings;
  for (const std::string& device : devices) {
    const std::string ports = absl::StrCat(kDevices, "/", device, "/ports");
    const std::string driver = DriverOf(host.files, device);
    if (!driver.empty()) {
      findings.push_back({kGroup, Name(device), Level::kOk, driver, ""});
    }
    for (const std::string& number : host.files.List(ports)) {
      const std::string folder = absl::StrCat(ports, "/", number);
      const Findings more = ProbePort(
          host, {device, number, folder, InterfaceOf(host.files, folder)});
      findings.insert(findings.end(), more.begin(), more.end());
    }
  }
  // Reports the error of the survey, for example if no device has the address
  // of the settings.
  if (!host.rdma.ok()) {
    findings.push_back({kGroup, "address", Level::kProblem,
                        std::string(host.rdma.status().message()), ""});
  }
  return findings;
}

}  // namespace penstock::cli
