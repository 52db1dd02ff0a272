"""Kafka in, Kafka out."""
