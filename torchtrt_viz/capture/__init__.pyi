from .engine import Engine as Engine
from .options import CaptureOptions as CaptureOptions
from .tensorrt_python import build_log as build_log
from .torch_ops import load_torch_ops as load_torch_ops
