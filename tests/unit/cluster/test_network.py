"""What follows from a cluster's index: no two clusters share a name, an address or a range."""

from ipaddress import IPv4Address, IPv4Network
from itertools import pairwise
from pathlib import Path

from tests.cluster import network
from tests.cluster.network import INDEXES, MAX_NODES, Network

ALL = [Network(index) for index in INDEXES]


def test_ranges_of_all_clusters_lie_apart() -> None:
    ordered = sorted(
        IPv4Network(text, strict=False)
        for one in ALL
        for text in (f"{one.gateway}/24", one.service_range, one.pod_range)
    )
    assert len(ordered) == 3 * len(INDEXES)
    assert not any(low.overlaps(high) for low, high in pairwise(ordered))


def test_every_node_has_its_part_of_the_cluster() -> None:
    for one in ALL:
        subnets = [IPv4Network(one.pod_subnet(node)) for node in range(MAX_NODES)]
        assert len(set(subnets)) == MAX_NODES
        assert all(subnet.subnet_of(IPv4Network(one.pod_range)) for subnet in subnets)
        addresses = {IPv4Address(one.node_address(node)) for node in range(MAX_NODES)}
        assert IPv4Address(one.gateway) not in addresses
        assert IPv4Address(one.api_service) in IPv4Network(one.service_range)


def test_names_fit_an_interface_and_begin_alike_for_one_cluster_only() -> None:
    names = [one.cable(node) for one in ALL for node in range(MAX_NODES)]
    assert max(map(len, names)) <= 15
    assert [name for name in names if name.startswith(f"{Network(1).bridge}n")] == [
        "kb1n0",
        "kb1n1",
        "kb1n2",
        "kb1n3",
    ]


def test_the_bridge_carries_the_mark_of_its_folder() -> None:
    one, other = network.mark(Path("/cache/run-1")), network.mark(Path("/cache/run-2"))
    assert one != other
    assert one == network.mark(Path("/cache/run-1"))
    assert [len(part) for part in one.split(":")] == [2] * 6
    assert int(one[:2], 16) & 0b11 == 0b10, "a local address of one machine, not a group"


def test_a_folder_that_claimed_nothing_owns_nothing(tmp_path: Path) -> None:
    assert network.owned(tmp_path) == []


def test_a_node_knows_its_neighbours_and_no_way_out() -> None:
    lines = network.node_routes(Network(3), node=0, nodes=3)
    assert "addr add 10.231.3.10/24 dev eth0" in lines
    assert "route add 10.233.3.1 via 10.231.3.1" in lines
    assert "route add unreachable 10.233.3.0/24" in lines
    assert "route add 10.232.13.0/24 via 10.231.3.11" in lines
    assert "route add 10.232.14.0/24 via 10.231.3.12" in lines
    assert not any("default" in line or " 10.232.12.0/24" in line for line in lines)


def test_the_host_lets_nodes_reach_the_api_server_and_nothing_else() -> None:
    rules = [line.strip() for line in network.host_rules(Network(3), 41234).splitlines()]
    assert rules[1] == "table ip kb3 {"
    assert 'iifname "kb3" ip daddr 10.231.3.1 tcp dport 41234 dnat to 127.0.0.1:41234' in rules
    assert rules[rules.index('iifname "kb3" drop') - 1] == 'iifname "kb3" ct status dnat accept'


def test_pods_and_node_reach_the_api_by_its_service_address() -> None:
    rules = network.node_rules(Network(3), 41234)
    assert rules.count("ip daddr 10.233.3.1 tcp dport 443 dnat to 10.231.3.1:41234") == 2
