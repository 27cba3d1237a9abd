# The server with every engine's driver; what runs is chosen by settings. Built by `docker compose build`.
# The base is named by version and day; `docker buildx imagetools inspect` says its digest, to pin it harder still.
FROM python:3.13.9-slim-trixie AS build

WORKDIR /app
COPY requirements/server.txt requirements/server.txt
RUN python -m venv /opt/refdesk \
    && /opt/refdesk/bin/pip install --no-cache-dir --require-hashes -r requirements/server.txt
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
# What builds the package is pinned like what it runs on.
COPY requirements/build.txt requirements/build.txt
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.txt \
    && /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --no-deps --wheel-dir /app/dist . \
    && /opt/refdesk/bin/pip install --no-cache-dir --no-deps /app/dist/*.whl

FROM python:3.13.9-slim-trixie

# By number, so that a cluster can see that it is not root.
RUN mkdir -p /data && chown 10001:10001 /data
COPY --from=build /opt/refdesk /opt/refdesk
ENV PATH=/opt/refdesk/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    REFDESK_HOME=/data
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8350
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8350/health', timeout=4)"]
ENTRYPOINT ["refdesk"]
CMD ["serve", "--host", "0.0.0.0"]
