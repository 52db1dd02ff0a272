# The worker and every other command: docker run tracegate worker
FROM python:3.12-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /source
# "embeddings" for a worker with a sentence-transformers model: docker build --build-arg EXTRAS=embeddings .
ARG EXTRAS=""
RUN python -m venv /opt/tracegate
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY schemas schemas
COPY scorers scorers
COPY streams streams
RUN /opt/tracegate/bin/pip install -c constraints.txt ".${EXTRAS:+[${EXTRAS}]}" \
    && /opt/tracegate/bin/pip uninstall --yes pip

FROM python:3.12-slim-bookworm
ENV PATH=/opt/tracegate/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TRACEGATE_STATE_DIR=/var/lib/tracegate
RUN useradd --system --uid 10001 --home-dir /var/lib/tracegate --create-home tracegate
COPY --from=build /opt/tracegate /opt/tracegate
USER tracegate
WORKDIR /var/lib/tracegate
ENTRYPOINT ["tracegate"]
CMD ["--help"]
