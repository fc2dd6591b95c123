// Columns as a Perfetto trace: the packets of track events, in order of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace torchtrt_viz::perfetto {

// Spread spans over lanes so that on each lane of a track they nest: the viewer draws slices that cut into
// one another wrongly or not at all. Returns for each span its lane, 0 for the track itself.
std::vector<std::int32_t> assign_lanes(std::span<const std::int32_t> track,
                                       std::span<const std::int64_t> start,
                                       std::span<const std::int64_t> dur);

struct TrackRow {
  std::uint64_t uuid = 0;
  std::uint64_t parent = 0;
  std::string name;
  bool process = false;
  bool thread = false;
  bool counter = false;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  std::string unit;
  std::int32_t order = 0;
  bool explicit_order = false;  // of its children
  std::string description;
};

// Rows of spans; every column has the same length. Names, runs, and the three
// columns that become categories (category, domain, timing) are numbers, -1 none.
struct SpanColumns {
  std::span<const std::uint64_t> lane;  // uuid of the track
  std::span<const std::int32_t> name;
  std::span<const std::int32_t> category;
  std::span<const std::int32_t> domain;
  std::span<const std::int32_t> timing;
  std::span<const std::int64_t> start;
  std::span<const std::int64_t> dur;  // -1: a slice without an end
  std::span<const std::int64_t> correlation;
  std::span<const std::int64_t> external_id;
  std::span<const std::int32_t> iteration;
  std::span<const std::int32_t> run;
};

struct InstantColumns {
  std::span<const std::uint64_t> lane;
  std::span<const std::int32_t> name;
  std::span<const std::int32_t> category;
  std::span<const std::int32_t> domain;
  std::span<const std::int64_t> ts;
};

struct CounterColumns {
  std::span<const std::uint64_t> lane;
  std::span<const std::int64_t> ts;
  std::span<const double> value;
};

struct FlowColumns {
  std::span<const std::int64_t> source;  // rows of the spans
  std::span<const std::int64_t> target;
};

class Encoder {
 public:
  // Times are brought to `origin` = 0. The spans passed are views, which must stay while the encoder is used.
  Encoder(SpanColumns spans, InstantColumns instants, CounterColumns counters, FlowColumns flows,
          std::vector<std::string> names, std::vector<std::string> categories, std::vector<std::string> runs,
          std::int64_t origin);

  // Encoded DebugAnnotations of each span (empty: none), for callers that want arguments in the trace.
  void set_arguments(std::vector<std::string> arguments);

  // Packets that come first: clocks, metadata, tracks, interned strings.
  std::string head(const std::vector<TrackRow>& tracks, bool has_unix, std::int64_t unix_ns_of_origin,
                   std::string_view metadata_name, std::string_view metadata) const;
  [[nodiscard]] std::size_t events() const { return order_.size(); }
  // Packets of the events [begin, end).
  std::string packets(std::size_t begin, std::size_t end) const;

  // Rows of the spans that have an end, in the order in which they begin in the trace.
  [[nodiscard]] std::vector<std::int64_t> written_rows() const;
  // Flows whose target begins before their source, which the format cannot express.
  [[nodiscard]] std::uint64_t flows_left_out() const { return flows_left_out_; }

 private:
  struct Event {
    enum class Type : std::uint8_t { kBegin, kEnd, kInstant, kCounter };
    std::int64_t ts;
    std::int64_t row;
    Type type;
  };

  void order_events();
  void order_lanes();
  void assign_flows();
  void write_event(const Event& event, std::string& out, std::string& scratch, std::string& body) const;

  SpanColumns spans_;
  InstantColumns instants_;
  CounterColumns counters_;
  FlowColumns flows_;
  std::vector<std::string> names_, categories_, runs_, arguments_;
  std::int64_t origin_;
  std::vector<Event> order_;
  // Flows of each span as a compressed table: first_flow_[row] .. first_flow_[row + 1] in flow_uses_.
  std::vector<std::uint32_t> first_flow_;
  struct FlowUse {
    std::uint64_t id;
    bool terminating;
  };
  std::vector<FlowUse> flow_uses_;
  std::uint64_t flows_left_out_ = 0;
};

}  // namespace torchtrt_viz::perfetto
