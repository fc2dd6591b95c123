"""Files about TensorRT engines, one room since they are joined into one set.

`trex`, `torchtrt` and `trtexec` are the formats that `load` knows; `file_set` joins the files of one engine;
`blob` is the TR01/TR02 payload of a ``TensorRTBackend`` delegate.
"""
