"""The web page of the dashboard: pages that the server renders, with small scripts for charts and for live figures."""
