# The operator and the in-pod part in one image. First version: not built by a test yet.
# Wheels are made beforehand (`pip wheel -w wheels .`), so the build itself needs no network.
ARG BASE_IMAGE=python:3.12-slim

FROM ${BASE_IMAGE} AS build
COPY wheels /wheels
RUN python3 -m venv /app && /app/bin/pip install --no-index --find-links /wheels supervisor-operator

FROM ${BASE_IMAGE}
COPY --from=build /app /app
ENV PATH=/app/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["python3", "-m", "supervisor_operator"]
