"""XPlanes (``*.xplane.pb``) of JAX and TensorFlow: what XLA's profiler recorded on hosts, GPUs and TPUs."""
