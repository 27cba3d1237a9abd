# The server with every engine's driver; what runs is chosen by settings. Built by `docker compose build`.
FROM python:3.13-slim

RUN useradd --create-home --uid 10001 refdesk
WORKDIR /app
COPY requirements/server.txt requirements/server.txt
RUN pip install --no-cache-dir --require-hashes -r requirements/server.txt
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
RUN pip install --no-cache-dir --no-deps .

USER refdesk
ENV REFDESK_HOME=/home/refdesk/data
EXPOSE 8350
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8350/health', timeout=4)"]
ENTRYPOINT ["refdesk"]
CMD ["serve", "--host", "0.0.0.0"]
