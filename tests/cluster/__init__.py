"""A real Kubernetes on this machine, from programs built out of Go modules.

`python -m tests.cluster --help` is the way in for people, `open_cluster` the one for tests.
Programs are found or built (`programs`), started and stopped (`processes`), put together to a
tier (`local`: `control`, then `fakes` or `nodes`), or borrowed from elsewhere (`ways`). A real node
(`node`, `network`, `cgroups`) runs `images` made here, and `faults` are done to it from outside.
"""
