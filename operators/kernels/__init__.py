"""Compiled loops (numba) of the operators: arrays in, arrays out, no Arrow, no Python objects."""
