"""Exports of Nsight Systems: SQLite files and folders of Parquet tables (``nsys export``)."""
