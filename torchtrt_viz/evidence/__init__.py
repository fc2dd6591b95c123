"""What programs get instead of prose: tables as JSON, with units, row ids, coverage and the Python of each.

`envelope` has the document, `paging` its size, `values` what becomes of single values, `sources` what is said
of the files, `expressions` the Python that makes a table again. The command line and the MCP server write the
same document; ``schema.json`` describes it.
"""
