"""How to reach the API server: an own client configuration, loaded from a file or from the pod.

Nothing global is set, so two clusters can be open in one process. Tokens are looked at again once
a minute, by the hook that the client library calls before each request.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import (
    list_kube_config_contexts,
    load_incluster_config,
    load_kube_config,
)
from kubernetes.aio.config.config_exception import ConfigException

from supervisor_operator.errors import ClusterError, TransientError

_load_incluster: Any = load_incluster_config  # the library has no types here
_load_kubeconfig: Any = load_kube_config
_contexts: Any = list_kube_config_contexts
_TOKEN_LIFE = 60.0
DEFAULT_FILE = "~/.kube/config"
OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_ADDRESS = (
    "host",
    "ssl_ca_cert",
    "ca_cert_data",
    "assert_hostname",
    "verify_ssl",
    "tls_server_name",
    "proxy",
    "proxy_headers",
    "connection_pool_maxsize",
    "disable_strict_ssl_verification",
    "client_session_kwargs",
)


async def load_configuration(kubeconfig: str | None, context: str | None = None) -> Configuration:
    """From this file, else $KUBECONFIG, else as a pod of the cluster, else ~/.kube/config."""
    configuration = Configuration()
    # Watches last for minutes and must not use up the connections of everybody else.
    configuration.connection_pool_maxsize = 0
    # Older clusters' certificates lack extensions that Python 3.13 asks for and kubectl does not.
    configuration.disable_strict_ssl_verification = True
    files = kubeconfig or os.environ.get("KUBECONFIG")
    try:
        if not files and not context and "KUBERNETES_SERVICE_HOST" in os.environ:
            _load_incluster(configuration)
        else:
            await _load_files(configuration, _existing(files or DEFAULT_FILE), context)
    except (ConfigException, OSError) as error:
        raise ClusterError(f"the way to the cluster cannot be read: {error}") from error
    _settle_proxy(configuration)
    return configuration


def context_namespace(kubeconfig: str | None, context: str | None) -> str:
    """The namespace of a kubeconfig's context, as kubectl takes it; else that of our pod."""
    files = kubeconfig or os.environ.get("KUBECONFIG")
    if not files and not context and OWN_NAMESPACE.is_file():
        return OWN_NAMESPACE.read_text().strip()
    try:
        known, active = _contexts(config_file=_existing(files or DEFAULT_FILE))
    except ConfigException as error:
        raise ClusterError(f"the way to the cluster cannot be read: {error}") from error
    chosen = next((one for one in known if one["name"] == context), None) if context else active
    found: str = ((chosen or {}).get("context") or {}).get("namespace") or "default"
    return found


async def authorization(configuration: Configuration) -> dict[str, str]:
    """The header for the next request; a token that cannot be read now may be a moment later."""
    try:
        token = await configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    except (ConfigException, OSError) as error:
        raise TransientError(f"our token cannot be read: {error}") from error
    return {"Authorization": token.strip()} if token else {}


def _settle_proxy(configuration: Configuration) -> None:
    """Ask the environment for a proxy now; the library would, on two threads, at each request.

    That took more than half of a request's CPU. It also looked for a password in ~/.netrc, which
    is not where our credentials come from.
    """
    server = urlsplit(configuration.host)
    if configuration.proxy is None and not proxy_bypass(server.hostname or ""):
        configuration.proxy = getproxies().get(server.scheme)
    configuration.client_session_kwargs = {"trust_env": False}


def _existing(files: str) -> str:
    if any(Path(file).expanduser().is_file() for file in files.split(os.pathsep) if file):
        return files
    raise ClusterError(
        f"there is no kubeconfig at {files}, and this is no pod of a cluster:"
        " give --kubeconfig or set KUBECONFIG"
    )


def without_credentials(configuration: Configuration) -> Configuration:
    """The same API server for strangers: neither our token nor our certificate goes with them.

    A client certificate would win over the token of whoever is asking.
    """
    bare = Configuration()
    for name in _ADDRESS:
        setattr(bare, name, getattr(configuration, name))
    return bare


async def _load_files(configuration: Any, files: str, context: str | None) -> None:
    loader = await _load_kubeconfig(
        config_file=files,
        context=context,
        client_configuration=configuration,
        persist_config=False,
    )
    read_at = time.monotonic()

    async def refresh(configuration: Any) -> None:
        nonlocal read_at
        if time.monotonic() - read_at >= _TOKEN_LIFE:
            read_at = time.monotonic()
            await loader.load_and_set(configuration)

    configuration.refresh_api_key_hook = refresh
