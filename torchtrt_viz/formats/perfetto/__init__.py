"""Perfetto traces: `reader` reads protobuf, `writer` writes protobuf and trace-event JSON."""
