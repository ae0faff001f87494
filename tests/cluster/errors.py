"""What can go wrong before there is a cluster."""


class ClusterError(Exception):
    """One line for the person at the terminal: what, why, and the next step."""


class UsageError(ClusterError):
    """The command itself is wrong; exit code 2."""
