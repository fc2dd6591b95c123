from . import charts as charts
from .chart_view import ChartView as ChartView
from .explore import Explorer as Explorer
from .table import Table as Table
from .timeline import Timeline as Timeline
from .verdict import VerdictPanel as VerdictPanel
