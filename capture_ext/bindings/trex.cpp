// Module torchtrt_viz._native.trex: layer information of TensorRT engines as columns.
#include <Python.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/failures.hpp"
#include "bindings/handover.hpp"
#include "formats/engine/graph.hpp"
#include "formats/engine/layer_name.hpp"
#include "formats/engine/tensor_type.hpp"

namespace engine = torchtrt_viz::engine;
namespace nb = nanobind;
using namespace torchtrt_viz::bindings;

namespace {

std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::object text_of(std::string_view bytes) {
  PyObject* object = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (object == nullptr) throw nb::python_error();
  return nb::steal<nb::object>(object);
}

nb::object text_or_none(std::string_view bytes) { return bytes.empty() ? nb::none() : text_of(bytes); }

nb::tuple texts_of(const std::vector<std::string>& values, std::int64_t first, std::int64_t end) {
  nb::object out = nb::steal<nb::object>(PyTuple_New(end - first));
  if (!out.is_valid()) throw nb::python_error();
  for (std::int64_t i = first; i < end; ++i) {
    PyTuple_SetItem(out.ptr(), i - first, text_of(values[static_cast<std::size_t>(i)]).release().ptr());
  }
  return nb::borrow<nb::tuple>(out);
}

nb::dict side_of(engine::SideColumns&& side) {
  nb::dict out;
  out["first"] = give(std::move(side.first));
  out["count"] = give(std::move(side.count));
  out["types"] = give(std::move(side.types));
  out["shapes"] = give(std::move(side.shapes));
  out["bytes"] = give(std::move(side.bytes));
  return out;
}

nb::dict tensors_of(engine::TensorColumns&& tensors) {
  nb::dict out;
  out["name"] = texts(tensors.name);
  out["type"] = give(std::move(tensors.type));
  out["format"] = give(std::move(tensors.format));
  out["location"] = give(std::move(tensors.location));
  out["first_size"] = give(std::move(tensors.first_size));
  out["size_count"] = give(std::move(tensors.size_count));
  out["sizes"] = give(std::move(tensors.sizes));
  out["bytes"] = give(std::move(tensors.bytes));
  return out;
}

nb::dict columns_of(engine::Columns&& columns) {
  nb::dict out;
  nb::list operators;
  for (std::size_t i = 0; i + 1 < columns.first_operator.size(); ++i) {
    operators.append(texts_of(columns.operators, columns.first_operator[i], columns.first_operator[i + 1]));
  }
  for (auto [name, values] :
       {std::pair("module", &columns.module), std::pair("explanation", &columns.explanation)}) {
    nb::list list;
    for (const std::string& value : *values) list.append(text_or_none(value));
    out[name] = list;
  }
  out["operators"] = operators;
  out["name"] = texts(columns.name);
  out["texts"] = texts(columns.texts.values());
  out["type"] = give(std::move(columns.type));
  out["role"] = give(std::move(columns.role));
  out["profile"] = give(std::move(columns.profile));
  out["precision"] = give(std::move(columns.precision));
  out["weights_dtype"] = give(std::move(columns.weights_type));
  out["weights_count"] = give(std::move(columns.weights_count));
  out["weights_bytes"] = give(std::move(columns.weights_bytes));
  out["tactic"] = give(std::move(columns.tactic));
  out["tactic_value"] = give(std::move(columns.tactic_value));
  out["stream"] = give(std::move(columns.stream));
  out["inputs"] = side_of(std::move(columns.inputs));
  out["outputs"] = side_of(std::move(columns.outputs));
  out["tensors"] = tensors_of(std::move(columns.tensors));
  out["attributes"] = nb::bytes(columns.attributes.data(), columns.attributes.size());
  out["attributes_end"] = give(std::move(columns.attributes_end));
  out["header"] = nb::bytes(columns.header.data(), columns.header.size());
  out["bindings"] = nb::bytes(columns.bindings.data(), columns.bindings.size());
  out["detailed"] = columns.detailed;
  out["left_out"] = columns.left_out;
  return out;
}

}  // namespace

NB_MODULE(trex, m) {
  m.doc() = "Layer information of TensorRT engines as columns.";
  translate_failures();

  m.def(
      "read_layers",
      [](const nb::bytes& document) -> nb::object {
        engine::Columns columns;
        const std::string_view view = view_of(document);
        const engine::Outcome outcome = [&] {
          nb::gil_scoped_release released;
          return engine::read_layers(view, columns);
        }();
        if (outcome == engine::Outcome::kNotJson) return nb::none();
        if (outcome == engine::Outcome::kNoLayers) return nb::bool_(false);
        return columns_of(std::move(columns));
      },
      nb::arg("document"),
      "Return columns of the layers; None for what is no strict JSON, False for other JSON.");

  m.def(
      "parse_name",
      [](const nb::bytes& name) {
        engine::LayerName parsed;
        engine::parse_name(view_of(name), parsed);
        nb::list parts;
        for (const engine::Part& part : parsed.parts) {
          parts.append(nb::make_tuple(text_of(part.text), text_or_none(part.kind), text_or_none(part.target),
                                      text_or_none(part.path), text_or_none(part.module())));
        }
        return nb::make_tuple(text_or_none(engine::wrapper_name(parsed.wrapper)), nb::tuple(parts),
                              parsed.profile, parsed.myelin_graph, text_or_none(parsed.shorthand),
                              text_or_none(parsed.module()));
      },
      nb::arg("name"),
      "Return (wrapper, parts, profile, Myelin region, shorthand, module) of a layer's name.");

  m.def(
      "onnx_layers",
      [](const nb::bytes& metadata) {
        nb::list out;
        for (const std::string_view node : engine::onnx_layers(view_of(metadata))) out.append(text_of(node));
        return nb::tuple(out);
      },
      nb::arg("metadata"), "Return the ONNX nodes that a layer's Metadata lists.");

  m.def(
      "element_type",
      [](const nb::bytes& text) { return text_or_none(engine::element_type(view_of(text)).name); },
      nb::arg("text"), "Return the element type that a description names, None when it names none.");

  m.def(
      "element_bits",
      [] {
        nb::dict out;
        for (const engine::ElementType& type : engine::element_types()) out[text_of(type.name)] = type.bits;
        return out;
      },
      "Return every element type with its bits.");

  m.def(
      "tensor_bytes",
      [](const std::vector<std::int64_t>& shape, const nb::bytes& type) {
        return engine::tensor_bytes(shape, engine::element_type(view_of(type)));
      },
      nb::arg("shape"), nb::arg("type"),
      "Return the bytes of a tensor's elements, None when they are unknown.");
}
