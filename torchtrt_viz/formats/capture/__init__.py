"""The folder of a saved capture: ``capture.json`` and the columns of engines that no ETDump holds."""
