"""The numbers of rows in an order by which rows can be cut or that can stand beside them."""

from __future__ import annotations

ROW_NUMBER, RANK, DENSE_RANK = "ROW_NUMBER", "RANK", "DENSE_RANK"
NUMBERINGS = (ROW_NUMBER, RANK, DENSE_RANK)
"""The functions by whose values rows can be cut, in the order of the kernel's."""
UP_TO_PEERS, ALL = "ROWS UP TO PEERS", "ROWS"
COUNTED = (*NUMBERINGS, UP_TO_PEERS, ALL)
"""What can stand beside a row: those numbers, how many rows its group has up to its last peer, and how many at all."""
