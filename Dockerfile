# Runs the worker and every other command: docker run traceweir worker
FROM python:3.12-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /source
# A worker with a sentence-transformers model needs "embeddings": docker build --build-arg EXTRAS=embeddings .
ARG EXTRAS=""
RUN python -m venv /opt/traceweir
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY schemas schemas
COPY scorers scorers
COPY streams streams
RUN /opt/traceweir/bin/pip install -c constraints.txt ".[otel,dashboard${EXTRAS:+,${EXTRAS}}]" \
    && /opt/traceweir/bin/pip uninstall --yes pip

FROM python:3.12-slim-bookworm
ENV PATH=/opt/traceweir/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TRACEWEIR_LOG_FORMAT=json \
    TRACEWEIR_STATE_DIR=/var/lib/traceweir
RUN useradd --system --uid 10001 --home-dir /var/lib/traceweir --create-home traceweir
COPY --from=build /opt/traceweir /opt/traceweir
USER traceweir
WORKDIR /var/lib/traceweir
ENTRYPOINT ["traceweir"]
CMD ["--help"]
