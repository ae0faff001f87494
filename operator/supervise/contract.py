"""Names that agents, supervise and whoever writes the pod spec share; see docs/supervise.md."""

FILE_VARIABLE = "SUPERVISION_HEARTBEAT_FILE"
INTERVAL_VARIABLE = "SUPERVISION_INTERVAL_SECONDS"
POD_VARIABLE = "SUPERVISION_POD_NAME"
NAMESPACE_VARIABLE = "SUPERVISION_NAMESPACE"
TOKEN_FOLDER_VARIABLE = "SUPERVISION_TOKEN_DIR"  # noqa: S105 - a name, not a secret
HOST_VARIABLE = "KUBERNETES_SERVICE_HOST"
PORT_VARIABLE = "KUBERNETES_SERVICE_PORT"

DEFAULT_FILE = "logs/heartbeat.json"  # on any machine
POD_FILE = "/var/run/supervision/heartbeat.json"  # in a pod
POD_INTERVAL = 30.0
TOKEN_FOLDER = "/var/run/supervision-token"  # noqa: S105 - a path, not a secret
TOKEN_FILE = "token"  # noqa: S105
CA_FILE = "ca.crt"

STATUS_PATH = "/apis/supervision.dev/v1alpha1/namespaces/{namespace}/heartbeats/{pod}/status"
MAX_METRICS_BYTES = 4 * 1024
MAX_PROBLEM_LENGTH = 512
