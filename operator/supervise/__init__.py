"""Supervision of one agent, without a cluster: `supervise run`, `supervise beat`, Heartbeat."""

from supervise.heartbeat import Heartbeat

__all__ = ["Heartbeat"]
