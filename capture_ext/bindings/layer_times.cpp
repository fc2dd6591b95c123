// Module torchtrt_viz._native.layer_times: the callback of a TensorRT profiler in Python. Needs numpy alone.
#include "tensorrt/layer_times.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>

#include <utility>

#include "bindings/failures.hpp"
#include "bindings/handover.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace torchtrt_viz::bindings;
using torchtrt_viz::LayerTimes;

NB_MODULE(layer_times, m) {  // NOLINT(performance-unnecessary-value-param): the macro's
  m.doc() = "Layer times as a TensorRT profiler reports them, in columns.";
  translate_failures();
  nb::class_<LayerTimes>(m, "LayerTimes")
      .def(nb::init<>())
      .def("record", &LayerTimes::record, "layer_name"_a, "ms"_a)
      .def("mark", &LayerTimes::mark)
      .def("__len__", &LayerTimes::size)
      .def("clear", &LayerTimes::clear)
      .def("columns", [](const LayerTimes& self) {
        auto columns = self.snapshot();
        nb::dict out;
        out["name"] = give(std::move(columns.name));
        out["dur_ns"] = give(std::move(columns.dur_ns));
        out["reported_ns"] = give(std::move(columns.reported_ns));
        out["marks"] = give(std::move(columns.marks));
        out["names"] = texts(columns.names);
        return out;
      });
}
