from .demo import run_demo as run_demo
from .engine import PDEngine as PDEngine
