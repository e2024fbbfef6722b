# The demo in a container: `docker build -t gpen-zoo .` then `docker run -p 7860:7860 -v gpen-zoo:/data gpen-zoo`.
# No weights are needed to build or to start; official ones belong into the volume.
FROM python:3.11-slim

# OpenCV's wheel is linked against these two.
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgl1 libglib2.0-0 \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY requirements.txt ./
# In this order basicsr's build finds torch instead of fetching it again (see start.py).
RUN pip install --no-cache-dir $(grep -E '^(torch|torchvision|numpy)[><=]' requirements.txt) cython setuptools wheel \
 && pip install --no-cache-dir --no-build-isolation -r requirements.txt

COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
 && useradd --create-home --uid 1000 zoo && mkdir -p /data && chown zoo /data
USER zoo
ENV GPEN_ZOO_HOME=/data \
    GRADIO_ANALYTICS_ENABLED=False \
    PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/healthz', timeout=4)"]
# A red health check alone restarts nothing outside Swarm and Kubernetes; an exit does, with `--restart on-failure`.
CMD ["gpen-zoo", "serve", "--host", "0.0.0.0", "--exit-when-wedged"]
