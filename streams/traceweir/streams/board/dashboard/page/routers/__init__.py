"""Serves the pages of the dashboard. Each page asks the store what the JSON API asks, and shows it as HTML."""
