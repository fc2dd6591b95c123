"""The layout of a session on disk: manifest and archives, file names of ranks, whether a file is whole."""
