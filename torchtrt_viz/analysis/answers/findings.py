"""The findings with the most time at stake, in sentences with numbers."""

from __future__ import annotations

import pandas as pd

from torchtrt_viz.analysis.columns.answers import EXPLAIN
from torchtrt_viz.analysis.core.tables import floats
from torchtrt_viz.analysis.device.operator_tables import device_coverage
from torchtrt_viz.analysis.findings.finding import Finding
from torchtrt_viz.analysis.findings.looks import STAKES
from torchtrt_viz.errors import OptionError
from torchtrt_viz.model.frame_docs import returns
from torchtrt_viz.model.trace_data import TraceData

__all__ = ["explain"]


@returns(EXPLAIN)
def explain(trace: TraceData, *, top: int = 3, min_pct: float = 3.0) -> pd.DataFrame:
    """Say in sentences what matters most in a capture.

    Parameters
    ----------
    top
        How many findings.
    min_pct
        Findings with less at stake are not worth a sentence, percent.

    Returns
    -------
    pandas.DataFrame
        One row per finding, the largest time at stake against the length of the capture first.

        Ordered by the time at stake against the length of the capture (sums without a place on the time axis
        by ``impact_pct``), at most ``top`` rows; none when nothing stands out. What noise could turn around
        is left out: that one thing leads has to hold in 95 % of resamples of the iterations, and the interval
        of its share is given; with fewer than four iterations it has to be a fifth above the next.

        ``attrs["coverage"]`` says how much of the devices' time no operator explains (empty without device
        work), ``attrs["device_unexplained_pct"]`` the share.

    Examples
    --------
    >>> tv.analysis.explain(trace, top=1)["domain"].tolist()
    ['host']
    """
    if not isinstance(top, int) or isinstance(top, bool) or top < 1:
        raise OptionError("top", top, "a number of findings, 1 or more")
    found: list[Finding] = []
    for look in STAKES:
        found += look(trace)
    whole = trace.duration_ns
    found = [finding for finding in found if 100.0 * finding.weight(whole) >= min_pct]
    found.sort(key=lambda finding: -finding.weight(whole))
    found = found[:top]
    frame = pd.DataFrame(
        {
            "finding": [finding.text for finding in found],
            "impact_ns": floats([finding.impact_ns for finding in found]),
            "impact_pct": floats([100.0 * finding.share for finding in found]),
            "of": [finding.of for finding in found],
            "domain": [finding.domain for finding in found],
            "source": [finding.source for finding in found],
            "remedy": [finding.remedy for finding in found],
        }
    )
    frame = EXPLAIN.typed(frame)
    known = device_coverage(trace)
    frame.attrs.update({key: known[key] for key in ("coverage", "device_unexplained_pct")})
    return frame
