"""`python -m tests.showcase up|demo`."""

from __future__ import annotations

import argparse
import sys

from tests.cluster.errors import ClusterError
from tests.showcase.demo import demo
from tests.showcase.up import up
from tests.support.kubectl import KubectlError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.showcase", description=__doc__)
    parser.add_argument("command", choices=("up", "demo"))
    command = parser.parse_args().command
    try:
        {"up": up, "demo": demo}[command]()
    except (ClusterError, KubectlError) as error:
        print(f"make {command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
