from .backend import TensorRTBackend as TensorRTBackend
from .package import ExportedPackage as ExportedPackage
from .package import export_package as export_package
from .package import load_package as load_package
from .partitioner import TensorRTPartitioner as TensorRTPartitioner
from .program import ExportedFile as ExportedFile
from .program import Method as Method
from .program import export_program as export_program
