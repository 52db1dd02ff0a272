"""Reads labels from files and from MLflow, and writes them to the topic `labels`."""
