"""SweepArea: continuous queries kept exact over a data lake.

The packages below stand as folders at the top of the repository and are linked here, so that their import names
(``sweeparea.tables``, ..) cannot clash with other libraries'.
"""

__version__ = "0.1.0"
