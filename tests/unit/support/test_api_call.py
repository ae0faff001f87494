from __future__ import annotations

import pytest
from yarl import URL

from tests.support.api_call import Call, read_call

SUPERVISORS = "/apis/supervision.dev/v1alpha1"


def read(method: str, url: str) -> Call:
    return read_call(method, URL(url), "agent")


@pytest.mark.parametrize(
    ("method", "url", "verb", "plural", "namespace", "name", "subresource"),
    [
        ("GET", "/api/v1/pods", "list", "pods", "", "", ""),
        ("GET", "/api/v1/pods?watch=true", "watch", "pods", "", "", ""),
        ("GET", "/api/v1/namespaces/shop/pods?watch=1", "watch", "pods", "shop", "", ""),
        ("GET", "/api/v1/namespaces/shop/pods/a", "get", "pods", "shop", "a", ""),
        ("POST", "/api/v1/namespaces/shop/pods", "create", "pods", "shop", "", ""),
        ("DELETE", "/api/v1/namespaces/shop/pods/a", "delete", "pods", "shop", "a", ""),
        ("DELETE", "/api/v1/namespaces/shop/pods", "deletecollection", "pods", "shop", "", ""),
        ("GET", "/api/v1/namespaces", "list", "namespaces", "", "", ""),
        ("GET", "/api/v1/namespaces/shop", "get", "namespaces", "", "shop", ""),
        ("PUT", "/api/v1/namespaces/shop/status", "update", "namespaces", "", "shop", "status"),
        ("GET", "/api/v1/nodes/one", "get", "nodes", "", "one", ""),
        (
            "PUT",
            f"{SUPERVISORS}/namespaces/shop/supervisors/clerk/status",
            *("update", "supervisors", "shop", "clerk", "status"),
        ),
        (
            "PATCH",
            f"{SUPERVISORS}/namespaces/shop/heartbeats/clerk-r1/status",
            *("patch", "heartbeats", "shop", "clerk-r1", "status"),
        ),
        ("GET", "/version", "get", "", "", "", ""),
        ("GET", "/apis/apps/v1", "get", "", "", "", ""),
    ],
)
def test_request_reads_in_the_words_of_rbac(  # noqa: PLR0913, PLR0917 - one row
    method: str, url: str, verb: str, plural: str, namespace: str, name: str, subresource: str
) -> None:
    call = read(method, url)
    found = (call.verb, call.plural, call.namespace, call.name, call.subresource)
    assert found == (verb, plural, namespace, name, subresource)


def test_only_what_is_stored_is_a_write() -> None:
    pods = "/api/v1/namespaces/shop/pods"
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert read("POST", pods).is_write
    assert read("DELETE", pods).is_write
    assert not read("POST", f"{pods}?dryRun=All").is_write
    assert not read("POST", review).is_write
    assert not read("GET", pods).is_write


def test_watch_knows_where_it_starts() -> None:
    assert read("GET", "/api/v1/pods?watch=true&resourceVersion=12").revision == "12"
    assert read("GET", "/api/v1/pods?watch=true").revision == ""
