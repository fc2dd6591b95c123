// Module torchtrt_viz._native.etdump: ETDump files as columns, and the tree of their events.
#include <nanobind/stl/vector.h>

#include <span>
#include <vector>

#include "bindings/failures.hpp"
#include "bindings/handover.hpp"
#include "formats/etdump/arrange.hpp"
#include "formats/etdump/decode.hpp"
#include "formats/etdump/dictionary.hpp"

namespace etdump = torchtrt_viz::etdump;
namespace flatbuffer = torchtrt_viz::flatbuffer;
namespace nb = nanobind;
using namespace torchtrt_viz::bindings;

namespace {

nb::object text_or_bytes(std::string_view bytes, bool& valid) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  PyObject* object = PyUnicode_DecodeUTF8(bytes.data(), size, "strict");
  valid = object != nullptr;
  if (!valid) {
    PyErr_Clear();
    object = PyUnicode_DecodeUTF8(bytes.data(), size, "replace");
    if (object == nullptr) throw nb::python_error();
  }
  return nb::steal<nb::object>(object);
}

const char* name_of(flatbuffer::Fault fault) {
  switch (fault) {
    case flatbuffer::Fault::kNone:
      return "none";
    case flatbuffer::Fault::kReference:
      return "reference";
    case flatbuffer::Fault::kVtable:
      return "vtable";
    case flatbuffer::Fault::kField:
      return "field";
    case flatbuffer::Fault::kVector:
      return "vector";
    case flatbuffer::Fault::kText:
      return "text";
    case flatbuffer::Fault::kOverlap:
      return "overlap";
    case flatbuffer::Fault::kEmpty:
      return "empty";
  }
  return "none";
}

nb::object place(const flatbuffer::Damage& damage) {
  if (damage.fault == flatbuffer::Fault::kNone) return nb::none();
  return nb::make_tuple(name_of(damage.fault), damage.offset);
}

nb::dict events(etdump::Events&& e) {
  nb::dict out;
  out["run"] = give(std::move(e.run));
  out["chain"] = give(std::move(e.chain));
  out["instruction"] = give(std::move(e.instruction));
  out["name"] = give(std::move(e.name));
  out["delegate_name"] = give(std::move(e.delegate_name));
  out["delegate_id"] = give(std::move(e.delegate_id));
  out["role"] = give(std::move(e.role));
  out["start"] = give(std::move(e.start));
  out["end"] = give(std::move(e.end));
  out["metadata_offset"] = give(std::move(e.metadata_offset));
  out["metadata_length"] = give(std::move(e.metadata_length));
  return out;
}

nb::dict runs(etdump::Runs&& r) {
  nb::dict out;
  out["name"] = give(std::move(r.name));
  out["bundled_input"] = give(std::move(r.bundled_input));
  out["first"] = give(std::move(r.first));
  out["count"] = give(std::move(r.count));
  out["signature"] = give(std::move(r.signature));
  out["segment"] = give(std::move(r.segment));
  return out;
}

nb::dict allocations(etdump::Allocations&& a) {
  nb::dict out;
  out["run"] = give(std::move(a.run));
  out["after"] = give(std::move(a.after));
  out["allocator"] = give(std::move(a.allocator));
  out["size"] = give(std::move(a.size));
  return out;
}

nb::dict debugs(etdump::Debugs&& d) {
  nb::dict out;
  out["run"] = give(std::move(d.run));
  out["after"] = give(std::move(d.after));
  out["chain"] = give(std::move(d.chain));
  out["instruction"] = give(std::move(d.instruction));
  out["name"] = give(std::move(d.name));
  out["delegate_name"] = give(std::move(d.delegate_name));
  out["delegate_id"] = give(std::move(d.delegate_id));
  out["type"] = give(std::move(d.type));
  out["output"] = give(std::move(d.output));
  out["integer"] = give(std::move(d.integer));
  out["real"] = give(std::move(d.real));
  out["tensor_first"] = give(std::move(d.tensor_first));
  out["tensor_count"] = give(std::move(d.tensor_count));
  return out;
}

nb::dict tensors(etdump::Tensors&& t) {
  nb::dict out;
  out["scalar_type"] = give(std::move(t.scalar_type));
  out["offset"] = give(std::move(t.offset));
  out["size_first"] = give(std::move(t.size_first));
  out["size_count"] = give(std::move(t.size_count));
  out["stride_first"] = give(std::move(t.stride_first));
  out["stride_count"] = give(std::move(t.stride_count));
  out["sizes"] = give(std::move(t.sizes));
  out["strides"] = give(std::move(t.strides));
  return out;
}

nb::dict decode(const ConstColumn<std::uint8_t>& data) {
  etdump::Dump dump = [&] {
    nb::gil_scoped_release released;
    return etdump::decode(view(data));
  }();
  nb::dict out;
  nb::list strings;
  nb::list invalid_text;
  for (std::size_t i = 0; i < dump.strings.size(); ++i) {
    bool valid = true;
    strings.append(text_or_bytes(dump.strings[i], valid));
    if (!valid) {
      const auto* at = reinterpret_cast<const std::uint8_t*>(dump.strings[i].data());
      invalid_text.append(nb::make_tuple(i, at - data.data()));
    }
  }
  nb::list damages;
  for (const auto& damage : dump.damages) damages.append(place(damage));
  nb::dict allocators;
  allocators["run"] = give(std::move(dump.allocators.run));
  allocators["name"] = give(std::move(dump.allocators.name));
  out["version"] = dump.version;
  out["events"] = events(std::move(dump.events));
  out["runs"] = runs(std::move(dump.runs));
  out["allocators"] = allocators;
  out["allocations"] = allocations(std::move(dump.allocations));
  out["debugs"] = debugs(std::move(dump.debugs));
  out["tensors"] = tensors(std::move(dump.tensors));
  out["strings"] = strings;
  out["invalid_text"] = invalid_text;
  out["fatal"] = place(dump.fatal);
  out["damages"] = damages;
  out["damage_count"] = dump.damage_count;
  out["size_prefixed"] = dump.size_prefixed;
  out["segments"] = dump.segments;
  out["claimed_bytes"] = dump.claimed_bytes;
  out["trailing_offset"] = dump.trailing_offset;
  out["trailing_bytes"] = dump.trailing_bytes;
  return out;
}

nb::tuple arrange(const ConstColumn<std::int32_t>& run, const ConstColumn<std::int32_t>& chain,
                  const ConstColumn<std::int32_t>& instruction, const ConstColumn<std::uint8_t>& role,
                  const ConstColumn<std::int64_t>& start_ns, const ConstColumn<std::int64_t>& dur_ns,
                  const ConstColumn<std::int32_t>& shape, const ConstColumn<std::uint8_t>& placing,
                  const ConstColumn<std::uint8_t>& in_engine) {
  const std::size_t rows = run.shape(0);
  for (const std::size_t length :
       {chain.shape(0), instruction.shape(0), role.shape(0), start_ns.shape(0), dur_ns.shape(0)}) {
    if (length != rows) throw nb::value_error("the columns differ in length");
  }
  for (const std::size_t length : {placing.shape(0), in_engine.shape(0)}) {
    if (length != rows && length != 0) throw nb::value_error("the columns differ in length");
  }
  for (std::size_t i = 0; i < rows; ++i) {
    if (run.data()[i] < 0 || static_cast<std::size_t>(run.data()[i]) >= shape.shape(0) ||
        (i > 0 && run.data()[i] < run.data()[i - 1])) {
      throw nb::value_error("run has to rise, and shape to have a value for each run");
    }
    if (role.data()[i] > static_cast<std::uint8_t>(etdump::Role::kLayer)) {
      throw nb::value_error("no such role");
    }
    if (dur_ns.data()[i] < 0) throw nb::value_error("a duration is negative");
  }
  etdump::Arrangement made = [&] {
    nb::gil_scoped_release released;
    return etdump::arrange({.run = view(run),
                            .chain = view(chain),
                            .instruction = view(instruction),
                            .role = view(role),
                            .start = view(start_ns),
                            .duration = view(dur_ns),
                            .placing = view(placing),
                            .in_engine = view(in_engine),
                            .shape = view(shape)});
  }();
  return nb::make_tuple(give(std::move(made.parent)), give(std::move(made.depth)),
                        give(std::move(made.self_ns)), give(std::move(made.call)),
                        give(std::move(made.modeled)), made.overlaps);
}

nb::tuple group_rows(const std::vector<ConstColumn<std::int32_t>>& columns) {
  std::vector<std::span<const std::int32_t>> views;
  for (const auto& column : columns) {
    if (column.shape(0) != columns.front().shape(0)) {
      throw nb::value_error("the columns differ in length");
    }
    views.push_back(view(column));
  }
  etdump::Groups groups = [&] {
    nb::gil_scoped_release released;
    return etdump::group_rows(views);
  }();
  return nb::make_tuple(give(std::move(groups.code)), give(std::move(groups.first)));
}

}  // namespace

NB_MODULE(etdump, m) {
  m.doc() = "ETDump files as columns, and the tree of their events.";
  translate_failures();

  nb::list roles;
  for (const char* role : {"method", "load", "operator_call", "delegate_call", "control", "kernel", "runtime",
                           "delegate", "phase", "enqueue", "layer"}) {
    roles.append(role);
  }
  m.attr("ROLES") = nb::tuple(roles);

  m.def(
      "recognise",
      [](const nb::bytes& head) {
        return etdump::recognise({static_cast<const std::uint8_t*>(head.data()), head.size()});
      },
      nb::arg("head"), "Tell whether these are the first bytes of an ETDump.");
  m.def("decode", &decode, nb::arg("data"),
        "Decode the bytes of an ETDump file (uint8) into columns; the GIL is released meanwhile.\n\n"
        "Time and memory are proportional to the size of the file, whatever it contains. Nothing is raised\n"
        "for a damaged file: 'fatal' and 'damages' say where it is damaged and how.");
  m.def("arrange", &arrange, nb::arg("run"), nb::arg("chain"), nb::arg("instruction"), nb::arg("role"),
        nb::arg("start_ns"), nb::arg("dur_ns"), nb::arg("shape"), nb::arg("placing"), nb::arg("in_engine"),
        "Return (parent, depth, self_ns, call, modeled, overlaps) of the events of ETDump runs.");
  m.def("group_rows", &group_rows, nb::arg("columns"),
        "Number the rows of int32 columns by their distinct combinations: (code of each row, first row of "
        "each group).");
}
