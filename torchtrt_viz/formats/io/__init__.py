"""Bytes in and out, whatever their format: sources, options of a load, lenient text, files written whole."""
