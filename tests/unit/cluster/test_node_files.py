"""What containerd, the pod network and the kubelet are told."""

import json
import tomllib
from pathlib import Path

from tests.cluster.certificates import Pair
from tests.cluster.network import Network
from tests.cluster.node import Node, cni_config, containerd_config, kubelet_config

NODE = Node(1, Path('/cache/a "quoted" place'), Network(2))


def test_containerd_reads_its_own_folder_and_our_pause_image() -> None:
    plugins = tomllib.loads(containerd_config(NODE))["plugins"]
    runtime = plugins["io.containerd.grpc.v1.cri"]
    assert runtime["sandbox_image"] == "localhost/pause:dev"
    assert runtime["restrict_oom_score_adj"] is True
    assert runtime["cni"]["conf_dir"] == '/cache/a "quoted" place/node-1/cni'


def test_pods_get_addresses_of_their_node_only() -> None:
    (bridge,) = cni_config(NODE)["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.232.9.0/24"}]]
    assert "ipMasq" not in bridge


def test_the_kubelet_listens_on_its_node_and_lets_nobody_in_unasked() -> None:
    pair = Pair(Path("/pki/node-1.crt"), Path("/pki/node-1.key"))
    config = kubelet_config(NODE, Path("/pki/ca.crt"), pair)
    assert json.loads(json.dumps(config)) == config
    assert config["address"] == "10.231.2.11"
    assert config["cgroupRoot"] == "/kb2-node-1"
    assert config["readOnlyPort"] == 0
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}
