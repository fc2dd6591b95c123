"""What an engineer sees and touches in a notebook: timeline, tables, charts.

The widgets need the extra ``lab``; each module says so when it is missing.
"""
