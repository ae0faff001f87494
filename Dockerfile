# The operator and the in-pod part in one image. The wheels are made beforehand, so the build needs
# no network and no index; they must fit the base's Python, 3.11:
#   pip wheel --require-hashes --wheel-dir wheels/dependencies -r requirements/runtime.txt -r requirements/api.txt
#   pip wheel --no-deps --wheel-dir wheels/project .
# Dependencies and project are layers of their own: a change of the sources moves only the small one.
ARG BASE_IMAGE=python:3.11.13-slim-bookworm

FROM ${BASE_IMAGE} AS dependencies
COPY wheels/dependencies /wheels
# The API classes and models of the Kubernetes client are loaded lazily and never used here: their
# bytecode would be a third of the image.
RUN python3 -m venv /tools && python3 -m venv --without-pip /app \
 && /tools/bin/pip --python /app/bin/python install --no-index --no-deps --no-compile /wheels/*.whl \
 && python3 -m compileall -q -x '/kubernetes/(aio/)?client/(api|models)/' /app/lib

FROM dependencies AS project
COPY wheels/project /wheels
RUN /tools/bin/pip --python /app/bin/python install --no-index --no-deps --target /project \
      /wheels/supervisor_operator-*.whl \
 && PYTHONPATH=/project /tools/bin/pip --python /app/bin/python check

FROM ${BASE_IMAGE}
COPY --from=dependencies /app /app
COPY --from=project /project /project
# USER is a name for logs and leases: the number below has none in /etc/passwd.
ENV PATH=/project/bin:/app/bin:$PATH \
    PYTHONPATH=/project \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    USER=supervisor-operator
USER 65532:65532
ENTRYPOINT ["python3", "-m", "supervisor_operator"]
