#include "bench/ps/training/report.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_format.h"
#include "bench/rpc/report/statistics.h"

namespace penstock::bench {
namespace {

using Figure = double Figures::*;

std::vector<double> Samples(const Row& row, Figure figure) {
  std::vector<double> samples;
  samples.reserve(row.rounds.size());
  for (const Figures& round : row.rounds) samples.push_back(round.*figure);
  return samples;
}

// Returns the median and the quartiles as text: "12.3 (11.9-12.8)". Returns "-"
// for a missing figure.
std::string Quartiles(const std::vector<double>& samples) {
  const double median = Median(samples);
  if (median == 0) return "-";
  return absl::StrFormat("%.4g (%.4g-%.4g)", median, Percentile(samples, 25),
                         Percentile(samples, 75));
}

// Returns the ratio of `upper` to `lower` for each round.
std::vector<double> Ratios(const std::vector<double>& upper,
                           const std::vector<double>& lower) {
  std::vector<double> ratios;
  ratios.reserve(upper.size());
  for (size_t i = 0; i < std::min(upper.size(), lower.size()); ++i) {
    ratios.push_back(lower[i] == 0 ? 0 : upper[i] / lower[i]);
  }
  return ratios;
}

using Cells = std::function<std::vector<double>(Figure)>;

void PrintLine(const std::string& label, const Cells& cells,
               std::ostream& out) {
  out << absl::StrFormat("  %-22s", label);
  for (const FigureName& each : kFigures) {
    out << absl::StrFormat("%26s", Quartiles(cells(each.figure)));
  }
  out << "\n";
}

void PrintHeading(const std::string& heading, std::ostream& out) {
  out << absl::StrFormat("%-24s", heading);
  for (const FigureName& each : kFigures) {
    out << absl::StrFormat("%26s", each.name);
  }
  out << "\n";
}

void PrintRates(const Row& row, size_t ids, std::ostream& out) {
  PrintLine(
      "Mids/s, " + row.contender,
      [&](Figure figure) {
        std::vector<double> samples = Samples(row, figure);
        for (double& sample : samples) {
          sample = sample == 0 ? 0 : static_cast<double>(ids) / sample / 1e6;
        }
        return samples;
      },
      out);
}

void PrintRatio(const Row& upper, const Row& lower, std::ostream& out) {
  PrintLine(
      upper.contender + " / " + lower.contender,
      [&](Figure figure) {
        return Ratios(Samples(upper, figure), Samples(lower, figure));
      },
      out);
}

}  // namespace

void PrintTable(const std::string& workload, size_t ids,
                const std::vector<Row>& rows, std::ostream& out) {
  PrintHeading(workload + ", ms", out);
  for (const Row& row : rows) {
    PrintLine(
        row.contender,
        [&](Figure figure) {
          std::vector<double> samples = Samples(row, figure);
          for (double& sample : samples) sample *= 1e3;
          return samples;
        },
        out);
  }
  for (const Row& row : rows) {
    if (ids > 0) PrintRates(row, ids, out);
  }
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].contender != kPlain) {
      PrintRatio(rows[0], rows[i], out);
      continue;
    }
    for (size_t other = 0; other < i; ++other) {
      PrintRatio(rows[other], rows[i], out);
    }
  }
  out.flush();
}

nlohmann::json ToJson(const std::vector<Row>& rows) {
  nlohmann::json json = nlohmann::json::object();
  for (const Row& row : rows) {
    for (const FigureName& each : kFigures) {
      json[row.contender][std::string(each.name)] = Samples(row, each.figure);
    }
  }
  return json;
}

}  // namespace penstock::bench
