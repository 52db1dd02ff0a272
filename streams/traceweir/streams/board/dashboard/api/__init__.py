"""The JSON API of the dashboard. FastAPI makes its OpenAPI document from the functions of the routers."""
