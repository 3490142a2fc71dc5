"""Airflow's plugin: found by its entry point."""
